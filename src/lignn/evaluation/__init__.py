"""Evaluation on any graph: compare methods, tune settings, and run many runs in several processes."""
