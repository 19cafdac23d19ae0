"""The routes of the service, one file a subject."""
