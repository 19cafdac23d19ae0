"""Training: one loop for all methods, and hooks for what happens around its epochs."""

from lignn.training.assembly import Assembly, assemble, score_on, scorer
from lignn.training.checkpoint import Checkpoints
from lignn.training.history import End, History, Interrupted, Scorer, Scores
from lignn.training.hooks import Hook, Progress, Watch
from lignn.training.loop import train
from lignn.training.metrics import Metric, f1_micro
from lignn.training.run import Run
from lignn.training.settings import Training

__all__ = [
    "Assembly",
    "Checkpoints",
    "End",
    "History",
    "Hook",
    "Interrupted",
    "Metric",
    "Progress",
    "Run",
    "Scorer",
    "Scores",
    "Training",
    "Watch",
    "assemble",
    "f1_micro",
    "score_on",
    "scorer",
    "train",
]
