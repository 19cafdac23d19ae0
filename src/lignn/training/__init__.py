"""Training: one loop, early stopping, history, checkpoints; it knows no concrete method."""

from lignn.training.assembly import Assembly, assemble, f1_micro, score_on, scorer
from lignn.training.loop import End, History, Interrupted, Progress, Scorer, Scores, Settings, train

__all__ = [
    "Assembly",
    "End",
    "History",
    "Interrupted",
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
