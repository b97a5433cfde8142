"""Former modules of migration operations, which released migrations import."""
