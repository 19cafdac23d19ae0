"""A race over models: candidates on folds of the known labels, the best of them or an ensemble as the result."""
