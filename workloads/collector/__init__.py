"""Collect workloads from a Kubernetes cluster and report them.

`client` sends HTTP requests to the API server, `listing` reads a cluster once, `mirror` and
`watching` follow its changes, `sync` turns both into reports. Of a `spec`, only counts, amounts,
names and images are kept, and nothing of it is logged.
"""
