"""Simulate a company's day against a running service, with rising load until it is too slow."""
