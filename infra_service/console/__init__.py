"""The operators' console: the admin site, its home page, names of objects, and templates."""
