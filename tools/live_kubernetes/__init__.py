"""Tests of the collector with a real Kubernetes control plane."""
