"""Reading a real cluster: a thin producer of reports.

`client` speaks HTTP with the API server, `listing` makes one pass over a cluster, `mirror` and
`reflectors` follow its changes, `sync` turns both into reports. Nothing of a `spec` but counts,
amounts, names and images is kept, and none of it is logged.
"""
