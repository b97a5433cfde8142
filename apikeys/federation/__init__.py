"""Federation: pipelines authenticate with the token of their platform."""
