"""The methods and the parameters of `NodeClassifier`, each declared once.

The classifier, the command line, `compare`, `tune` and the studies derive their options, checks, presets and titles
from here. This module imports nothing heavy, so that `lignn --help` is quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

DEFAULT_METHOD, DEFAULT_BACKBONE = "lignn", "gcn"
BASELINE = "backbone"
"""The method that others are compared with: the network alone."""
_NO_NETWORKS = {"__init__", "adapter", "backbone", "first_product", "layers", "norms", "registry", "stack"}
BACKBONES = tuple(sorted({file.stem for file in (Path(__file__).parent / "backbones").glob("*.py")} - _NO_NETWORKS))
"""The networks: modules of `lignn.backbones` with a class of the module's name."""
PRECISIONS = ("float32", "float64")
FEATURES = ("auto", "raw")
AUTO = "auto"
"""The method that is a race of several; also a contraction that `fit` chooses, and features that it prepares."""
QUALITIES = ("fast", "good", "best")
DEFAULT_QUALITY = "good"
CONTRACTIONS = (AUTO, "free", "proved")
NO_MEASURED = "contraction 'measured' is gone; use 'proved', which promises one equilibrium, or 'free'"
HELD_BACK = "held back"
"""Value of `refit` that trains again on the labels that `fit` held back by itself, and on no others."""


@dataclass(frozen=True)
class MetricDeclaration:
    """How a metric is written, and what it applies to. `lignn.training.metrics` computes it.

    Attributes:
        title: how people write it.
        several: whether it is defined if a node may have several classes.
        lower_is_better: whether it is a loss. Scores inside are always better if larger, so it is negated there.
    """

    title: str
    several: bool = True
    lower_is_better: bool = False

    @property
    def sign(self) -> int:
        """-1 for a loss, else 1."""
        return -1 if self.lower_is_better else 1

    @property
    def factor(self) -> int:
        """100 for a metric that tables show in percent, else 1."""
        return 1 if self.lower_is_better else 100

    @property
    def in_tables(self) -> str:
        """The title with its unit in tables."""
        return self.title if self.lower_is_better else f"{self.title} (%)"


DEFAULT_METRIC = "f1_micro"
METRICS = {
    DEFAULT_METRIC: MetricDeclaration("F1-micro"),
    "f1_macro": MetricDeclaration("F1-macro"),
    "balanced_accuracy": MetricDeclaration("balanced accuracy", several=False),
    "roc_auc": MetricDeclaration("ROC AUC"),
    "average_precision": MetricDeclaration("average precision"),
    "log_loss": MetricDeclaration("log loss", several=False, lower_is_better=True),
}
"""The metrics that may choose the epoch."""

Kind = Literal[
    "whole number",
    "number",
    "number or 'adaptive'",
    "duration",
    "true or false",
    "text",
    "table",
    "text or table",
    "names",
]
KINDS: dict[Kind, tuple[type, ...]] = {
    "whole number": (Integral,),
    "number": (Real,),
    "number or 'adaptive'": (Real, str),
    "duration": (Real,),
    "true or false": (bool,),
    "text": (str,),
    "table": (Mapping,),
    "text or table": (str, Mapping),
    "names": (str, Sequence),
}
"""The types that a parameter of each kind may have. Numbers exclude True and False."""


@dataclass(frozen=True)
class Range:
    """Numbers that `lignn tune` may try.

    Attributes:
        low, high: the ends of the range.
        log: whether factors matter, not differences.
    """

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter of `NodeClassifier`, and the command line's option of the same name.

    Attributes:
        kind: what its value is.
        panel: the section of `--help` that shows it.
        help: one sentence that says what it does; `--help` adds the choices.
        choices: names that it accepts.
        takes_objects: whether an object may be given instead of a name.
        optional: whether None is allowed and stands for the preset's value.
        search: what `lignn tune` tries: a range, or values.
        metavar: how `--help` shows the value.
    """

    kind: Kind
    panel: str
    help: str = ""
    choices: tuple[str, ...] = ()
    takes_objects: bool = False
    optional: bool = True
    search: Range | tuple[Any, ...] = ()
    metavar: str | None = None


_METHOD, _TRAINING, _SOLVE, _RACE = "Method and network", "Training", "Equilibrium", "Race (--method auto)"
_PAIRS: dict[str, Any] = {"kind": "table", "panel": _METHOD, "metavar": "NAME=VALUE"}


@dataclass(frozen=True)
class MethodDeclaration:
    """What other packages need to know about a method without building it.

    Attributes:
        title: how people write it; `{}` stands for the network.
        summary: what it does, for reports.
        network: "labels" for a backbone on labels and features, "features" for a backbone on features alone, "one hop"
            for 3ference's SGC, "own" for a network that is not a backbone, "base" for a whole method (Correct and
            Smooth), "members" for several methods, "rows" for a classifier of rows, "none" for no network.
        parameters: parameters of `NodeClassifier` that this method has but not every method, and other options that a
            preset may set.
        needs: what the graph must have.
        presets: values of these parameters by preset.
        unproved: what differs in them if the contraction is not proved: labels that may act strongly have to be seen.
        residual: what differs in them over a residual network.
    """

    title: str
    summary: str
    network: Literal["labels", "features", "one hop", "own", "base", "members", "rows", "none"]
    parameters: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset({"edges"})
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unproved: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    residual: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_SOLVER = ("solver", "tol", "max_steps")
_LOSS: dict[str, dict[str, Any]] = {
    "practical": {"loss": "logits", "teaching": 1.0},
    "paper": {"loss": "probabilities"},
}
_HALF = {name: {"mask_rate": 0.5, **loss} for name, loss in _LOSS.items()}
_FEATURES = frozenset({"features", "edges"})
_HIDDEN: dict[str, dict[str, Any]] = {"practical": {"label_folds": 10}, "paper": {}}
"""In how many folds a classifier of rows hides known labels while it learns."""

METHODS: dict[str, MethodDeclaration] = {
    BASELINE: MethodDeclaration(
        "{}",
        "the network alone: labels supervise, they are never an input",
        "features",
        ("loss",),
        frozenset({"features"}),
        _LOSS,
    ),
    "lpa": MethodDeclaration("LPA", "label propagation: no network, no features", "none", _SOLVER),
    "correct_and_smooth": MethodDeclaration(
        "{} + C&S",
        "Correct and Smooth: label propagation after the trained network",
        "base",
        ("loss", "label_folds", "most_columns"),
        _FEATURES,
        {name: {**_LOSS[name], **_HIDDEN[name]} for name in _LOSS},
    ),
    "label_input": MethodDeclaration(
        "Label Input {}",
        "known labels are inputs beside the features",
        "labels",
        ("mask_rate", "loss"),
        presets=_HALF,
    ),
    "label_reuse": MethodDeclaration(
        "Label Reuse {}",
        "as Label Input, and predictions are fed back once",
        "labels",
        ("mask_rate", "loss"),
        presets=_HALF,
    ),
    "lignn": MethodDeclaration(
        "LI-{}",
        "predictions are fed back until they reach an equilibrium, and trained through it",
        "labels",
        (
            "mask_rate",
            "feature_mask",
            "forward_mask",
            "gradient",
            "warm_start",
            *_SOLVER,
            "adjoint",
            "contraction",
            "loss",
            "hide",
        ),
        presets={
            "practical": {
                "mask_rate": 0.8,
                "feature_mask": 0.0,
                "forward_mask": False,
                "solver": "picard",
                "tol": 1e-3,
                "max_steps": 50,
                "gradient": "exact",
                "warm_start": True,
                "adjoint": "relative",
                "contraction": AUTO,
                **_LOSS["practical"],
            },
            "paper": {
                "mask_rate": 0.5,
                "feature_mask": 0.0,
                "forward_mask": False,
                "solver": "picard",
                "tol": None,  # the paper's rule, 1e-4 / c
                "max_steps": 10,
                "gradient": "paper",
                "warm_start": False,
                "adjoint": "paper",
                "contraction": "free",
                **_LOSS["paper"],
            },
        },
        unproved={"practical": {"mask_rate": 0.5}},
        residual={
            "practical": {
                "mask_rate": 0.5,
                "hide": "labels",
                "warm_start": False,
                "max_steps": 5,
                "gradient": "last_step",
                "contraction": "free",
            }
        },
    ),
    "lae": MethodDeclaration(
        "LaE {}",
        "the authors' successor of LI-GNN: the equilibrium of the last prediction is trained through",
        "labels",
        ("mask_rate", "feature_mask", "tol", "max_steps", "contraction", "loss"),
        presets={
            "practical": {
                "feature_mask": 0.0,
                "mask_rate": 0.5,
                "contraction": AUTO,
                "loss": "logits",
                "averaged_epochs": 1,  # the state of the last prediction has to be that of the trained weights
            },
            "paper": {"mask_rate": 0.5, "contraction": "free", "loss": "probabilities"},
        },
    ),
    "reslpa": MethodDeclaration(
        "ResLPA {}",
        "label propagation with residuals that a network estimates from features",
        "features",
        ("mask_rate", *_SOLVER),
        _FEATURES,
        {name: {"mask_rate": 0.5} for name in _LOSS},
    ),
    "threeference": MethodDeclaration(
        "3ference", "labels of the neighbours are inputs of a network of one hop", "one hop", _SOLVER
    ),
    "ignn": MethodDeclaration(
        "IGNN*", "an equilibrium of representations; labels are never an input", "own", _SOLVER, _FEATURES
    ),
    "eignn": MethodDeclaration(
        "EIGNN", "a linear equilibrium of representations; labels are never an input", "own", _SOLVER, _FEATURES
    ),
    "logistic": MethodDeclaration(
        "logistic regression",
        "logistic regression on features, the mean of neighbours' features and counts of their known labels",
        "rows",
        needs=frozenset(),
    ),
    "boosted": MethodDeclaration(
        "boosted trees",
        "trees of LightGBM on features, the mean of neighbours' features and counts of their known labels",
        "rows",
        ("label_folds", "most_columns"),
        frozenset(),
        _HIDDEN,
    ),
    "ensemble": MethodDeclaration(
        "ensemble", "the mean of several methods' probabilities", "members", needs=frozenset()
    ),
}

_EVERYBODYS = {"hidden": 64, "lr": 0.01, "max_epochs": 1000}
PRESETS: dict[str, dict[str, Any]] = {
    "practical": {
        **_EVERYBODYS,
        "patience": 50,
        "weight_decay": 5e-4,
        "dropout": 0.5,
        "input_dropout": 0.5,
        "features": "auto",
        "unit_rows": True,
        "refit": HELD_BACK,
        "folds": 2,
        "least_epochs": 100,
        "ties": "log_loss",
        "averaged_epochs": 30,
        "evaluate_every": 5,
    },
    "paper": {
        **_EVERYBODYS,
        "patience": 100,
        "weight_decay": 0.0,
        "dropout": 0.0,
        "input_dropout": 0.0,
        "features": "raw",
        "refit": False,
        "folds": 1,
    },
}
"""Values for parameters that are not given, for all methods. A method's declaration adds its own.

Some are no parameters: `unit_rows` divides the rows of sparse features by their lengths, `ties` is what decides between
epochs of the same validation score; for `least_epochs`, `averaged_epochs` and `evaluate_every` see `POLICY`.
"""

RESIDUAL_PRESETS: dict[str, dict[str, Any]] = {
    "practical": {
        "lr": 0.005,
        "dropout": 0.2,
        "input_dropout": 0.0,
        "patience": 150,
        "averaged_epochs": 1,
    },
    "paper": {},
}
"""Values for residual networks by preset: they have many layers, and learn slowly."""

BACKBONE_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "practical": {"mlp": {"num_layers": 2, "batch_norm": False}},
    "paper": {},
}
"""Options of single networks by preset: batch normalisation by all nodes keeps an MLP from learning of few labels."""


@dataclass(frozen=True)
class Rule:
    """A number that decides in the course of a fit; `NodeClassifier(policy={name: number})` changes it.

    Attributes:
        default: its value where the preset has none.
        off: the value that switches the rule off.
        help: what it decides, and why.
    """

    default: float
    off: float
    help: str


POLICY: dict[str, Rule] = {
    "least_epochs": Rule(1, 1, "no earlier epoch is chosen: one after a few updates can be best by chance"),
    "averaged_epochs": Rule(1, 1, "epochs whose weights are averaged: the score of a single one is partly luck"),
    "evaluate_every": Rule(1, 1, "epochs between two validation scores: the best of fewer is less of an accident"),
    "underfits": Rule(
        0.5, 1000, "loss, in units of a guess's, above which a fit starts over with weaker limits on its weights"
    ),
    "learned": Rule(0.2, 1000, "loss, in units of a guess's, below which a model may teach itself"),
    "sure": Rule(0.9, 0, "probability from which on a prediction teaches"),
    "pooled": Rule(50, 0, "labels held back below which others are held back too, in folds: few calibrate badly"),
}
"""The rules of a fit by name. Each can be switched off, see docs/how_it_works/fit.md."""

PARAMETERS: dict[str, Parameter] = {
    "method": Parameter("text", _METHOD, "auto, a race of several; or ", choices=tuple(METHODS), takes_objects=True),
    "backbone": Parameter("text", _METHOD, choices=BACKBONES, takes_objects=True),
    "preset": Parameter("text", _METHOD, "Values of parameters that are not given: ", tuple(PRESETS), optional=False),
    "hidden": Parameter("whole number", _METHOD, "Width of the hidden layers.", search=(32, 64, 128, 256)),
    "dropout": Parameter(
        "number", _METHOD, "Share of the hidden units that is dropped in training.", search=Range(0.0, 0.8)
    ),
    "input_dropout": Parameter(
        "number", _TRAINING, "Share of the entries of the features that is dropped in training.", search=(0.0, 0.5)
    ),
    "both_directions": Parameter(
        "true or false", _METHOD, "Let rgcn pass messages against the edges too, with weights of their own."
    ),
    "feature_mask": Parameter(
        "number", _METHOD, "Share of the nodes whose features are hidden in an epoch.", search=Range(0.0, 0.8)
    ),
    "lr": Parameter("number", _TRAINING, "Learning rate of Adam.", search=Range(0.001, 0.03, log=True)),
    "weight_decay": Parameter("number", _TRAINING, "Weight decay of Adam.", search=Range(1e-6, 1e-2, log=True)),
    "max_epochs": Parameter("whole number", _TRAINING, "Maximum number of epochs."),
    "patience": Parameter("whole number", _TRAINING, "Stop after this many epochs without a better validation score."),
    "metric": Parameter("text", _TRAINING, "Validation score that chooses the epoch: ", choices=tuple(METRICS)),
    "class_weight": Parameter(
        "text or table",
        _TRAINING,
        "Weight of each class in the loss: 'balanced', or a class and its weight; may be repeated.",
        metavar="balanced|CLASS=WEIGHT",
    ),
    "teaching": Parameter(
        "number",
        _TRAINING,
        "Weight in the loss of what the model teaches itself: classes of unlabelled nodes that it is sure of.",
        search=(0.0, 1.0),
    ),
    "seed": Parameter("whole number", _TRAINING, "Seed of weights, masks and splits.", optional=False),
    "inductive": Parameter("true or false", _TRAINING, "Train without the edges of held-out nodes.", optional=False),
    "mask_rate": Parameter(
        "number or 'adaptive'",
        _SOLVE,
        "Share of the nodes whose label input is hidden in an epoch.",
        search=Range(0.1, 0.9),
        metavar="SHARE|adaptive",
    ),
    "forward_mask": Parameter("true or false", _SOLVE, "Hide label inputs in the forward solve too."),
    "max_steps": Parameter("whole number", _SOLVE, "Maximum number of steps of a solve."),
    "tol": Parameter("number", _SOLVE, "Tolerance of a solve."),
    "solver": Parameter("text", _SOLVE, choices=("picard", "anderson", "broyden"), takes_objects=True),
    "gradient": Parameter("text", _SOLVE, choices=("paper", "exact", "last_step"), takes_objects=True),
    "warm_start": Parameter("true or false", _SOLVE, "Start a solve from the last epoch's state."),
    "contraction": Parameter("text", _SOLVE, "What is promised about the equilibrium: ", choices=CONTRACTIONS),
    "calibrate": Parameter(
        "true or false", _TRAINING, "Fit a temperature and a doubt to the held-out labels.", optional=False
    ),
    "refit": Parameter(
        "true or false",
        _TRAINING,
        "Train once more on all known labels, also those of a given validation part; default: on those that fit itself "
        "held back.",
    ),
    "folds": Parameter("whole number", _TRAINING, "Largest number of fits that hold back labels, if few are known."),
    "policy": Parameter(
        "table",
        _TRAINING,
        f"Rules of the fit: {', '.join(POLICY)}; may be repeated.",
        metavar="NAME=NUMBER",
    ),
    "batch_parts": Parameter(
        "whole number", _TRAINING, "Of a store: parts in a batch, each of which gives an update; approximate."
    ),
    "precision": Parameter("text", _TRAINING, choices=PRECISIONS, optional=False),
    "device": Parameter("text", _TRAINING, "Device of PyTorch to compute on, e.g. cpu or cuda.", optional=False),
    "features": Parameter(
        "text", _METHOD, "Columns of tables as features: prepared, or numbers as they are: ", FEATURES, True
    ),
    "method_options": Parameter(help="More options of the method by name, e.g. lam=0.5; may be repeated.", **_PAIRS),
    "backbone_options": Parameter(
        help="More options of the backbone by name, e.g. num_layers=3; may be repeated.", **_PAIRS
    ),
    "quality": Parameter("text", _RACE, "How many candidates, on how many folds: ", QUALITIES),
    "time": Parameter("duration", _RACE, "End the race after this long, e.g. 2m.", metavar="TIME"),
    "backbones": Parameter("names", _RACE, "Networks to try, e.g. gcn,sage.", metavar="NAME,…"),
    "jobs": Parameter("whole number", _RACE, "Number of processes; each has one thread."),
}
"""Every parameter of `NodeClassifier`, in the order of its signature."""

OF_TRAINING = (
    *("lr", "weight_decay", "input_dropout", "max_epochs", "patience"),
    *("averaged_epochs", "evaluate_every", "batch_parts", "teaching", "learned", "sure"),
)
OF_NETWORK = ("hidden", "dropout", "both_directions", "num_layers", "batch_norm")
OF_SOLVER = _SOLVER
OF_RACE = ("quality", "time", "backbones", "jobs")
SHARED = ("metric", "class_weight", "seed", "inductive", "calibrate", "refit", "precision", "device", "features")
"""Parameters that mean the same for every candidate of a race; any other one names a single method."""
DEFAULTS: dict[str, Any] = {
    "preset": next(iter(PRESETS)),
    "seed": 0,
    "inductive": False,
    "calibrate": True,
    "precision": PRECISIONS[0],
    "device": "cpu",
}
"""Defaults of the parameters that are never None."""
OF_LOSS = "class_weight"
OF_TAUGHT = "teaching"
RELAXED = ("weight_decay", "input_dropout")
"""Regularisation of a preset that is given up if the training labels cannot be learned with it."""

METHODS_WITH = {
    parameter: [name for name, method in METHODS.items() if parameter in method.parameters] or list(METHODS)
    for parameter in PARAMETERS
} | {
    OF_LOSS: [name for name, method in METHODS.items() if method.network != "none"],
    OF_TAUGHT: [name for name, method in METHODS.items() if OF_TAUGHT in method.presets.get("practical", {})],
    **{name: [AUTO] for name in OF_RACE},
}
"""The methods that have each parameter."""


def is_race(parameters: Mapping[str, Any]) -> bool:
    """Return whether a classifier with these parameters tries several methods.

    Without a method it does, unless an option of a single one is given, such as `backbone`: that is for `lignn`.
    """
    method = parameters.get("method")
    if method is not None:
        return isinstance(method, str) and method == AUTO
    there = {name: value for name, value in parameters.items() if value is not None}
    given = {name for name, value in there.items() if name not in DEFAULTS or value != DEFAULTS[name]}
    return bool(given & {*OF_RACE}) or given <= {*SHARED}


def written(backbone: str) -> str:
    """Return a network as people write it."""
    return {"jknet": "JKNet"}.get(backbone, backbone.upper())


def title(method: str, backbone: str) -> str:
    """Return a method over a backbone as people write it: GCN, GCN + C&S, LI-GCN."""
    return METHODS[method].title.format(written(backbone))
