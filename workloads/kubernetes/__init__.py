"""Derive health and figures of workloads from raw Kubernetes objects.

Pure functions on plain values: no Django, no clock, no network. ``reduce`` keeps the few facts that
the rules need, ``tally`` sums pods per workload, and ``health`` and ``records`` produce the row.
"""
