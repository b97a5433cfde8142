"""Derive health and figures of workloads from raw Kubernetes objects.

The functions are pure: they do not use Django, a clock or the network. ``reduce`` keeps the facts
that the rules need, ``tally`` sums pods per workload, and ``health`` and ``records`` produce the
row.
"""
