"""Collect workloads from a Kubernetes cluster and report them.

`client` sends HTTP requests to the API server, `listing` reads a cluster once, `mirror` and
`watching` follow its changes, and `sync` creates the reports. The collector keeps only counts,
amounts, names and images of a `spec`, and does not log them.
"""
