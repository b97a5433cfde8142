"""Former addresses of operations of migrations, which released migrations import."""
