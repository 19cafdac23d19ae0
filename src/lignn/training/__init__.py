"""Training: one loop for all methods, with early stopping, history and checkpoints."""

from lignn.training.assembly import Assembly, assemble, score_on, scorer
from lignn.training.loop import End, History, Interrupted, Progress, Scorer, Scores, Settings, train
from lignn.training.metrics import Metric, f1_micro

__all__ = [
    "Assembly",
    "End",
    "History",
    "Interrupted",
    "Metric",
    "Progress",
    "Scorer",
    "Scores",
    "Settings",
    "assemble",
    "f1_micro",
    "score_on",
    "scorer",
    "train",
]
