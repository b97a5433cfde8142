"""A real Kubernetes control plane, and the collector run against it."""
