"""Libraries: modules that import no app and read no setting of an app."""
