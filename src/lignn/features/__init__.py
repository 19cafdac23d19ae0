"""Features from tables as people have them: kinds of columns, and scikit-learn's transformers by kind."""

from lignn.features.columns import Column
from lignn.features.kinds import describe
from lignn.features.own import OwnTransformer
from lignn.features.preparation import FeatureTransform, Preparation
from lignn.features.rows import append, as_table, same
from lignn.features.values import kind_of

__all__ = [
    "Column",
    "FeatureTransform",
    "OwnTransformer",
    "Preparation",
    "append",
    "as_table",
    "describe",
    "kind_of",
    "same",
]
