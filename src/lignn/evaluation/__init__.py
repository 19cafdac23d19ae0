"""Evaluation on any graph: compare methods, tune settings, and tell what was found."""
