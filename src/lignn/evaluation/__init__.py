"""Evaluation on any graph: methods compared, settings tuned, and the processes that many runs share."""
