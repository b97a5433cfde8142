"""Django settings of an agent: commands and log lines, without secrets, tables or views."""
