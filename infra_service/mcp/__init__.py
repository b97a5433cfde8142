"""The Model Context Protocol: read-only tools for assistants, over the views of the API."""
