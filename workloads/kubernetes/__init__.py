"""What a snapshot of raw Kubernetes objects says about workloads.

Pure functions on plain values: no Django, no clock, no network. Raw objects go through `reduce`,
which keeps the few facts that the rules need; `tally` adds pods up per workload; `health` and
`records` turn both into what is stored.
"""
