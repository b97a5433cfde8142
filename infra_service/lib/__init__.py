"""Libraries: modules that know no app, and no setting of an app."""
