"""Pipelines that prove who they are with the token of their platform: what is trusted, and why."""
