"""Django settings of an agent: only commands and logging, without secrets, tables or views."""
