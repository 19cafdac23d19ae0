"""The report of `lignn tune`: what mattered, and every trial; one HTML file that needs no other."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from lignn.declarations import METRICS
from lignn.evaluation import page
from lignn.evaluation.tune import Tuned
from lignn.notebook import BLUE, GREY

_IMPORTANCE = "Share of the variance of validation scores that each setting explains (fANOVA)"
_TRIALS = "Validation score of every trial by the value of each setting; grey: pruned"


def write(found: Tuned, graph: str, file: Path) -> None:
    """Write the report of a search on the graph of this name."""
    metric = METRICS[found.metric].in_tables
    rows = [
        (", ".join(f"{k}={v}" for k, v in t.settings.items()) or "the preset", f"{t.val:.2f}", str(t.runs))
        for t in found.trials
    ]
    best, preset = found.trials[0], found.preset
    blocks: list[page.Block] = [
        f"The best validation score is too optimistic. On the test nodes, which were not used to choose: best "
        f"{best.test:.2f}, preset {preset.test:.2f} ({metric}).",
        *([page.Picture("importance", _IMPORTANCE, draw_importance(found))] if found.importance else []),
        page.Picture("trials", _TRIALS, draw_trials(found)),
        page.Table(f"Trials, validation {metric}", ("settings", "validation", "splits"), rows),
    ]
    page.write_html(file, f"Settings for {graph}", [page.Section("What mattered", blocks)])


def draw_importance(found: Tuned) -> Figure:
    """Draw the importance of every setting."""
    figure = Figure(figsize=(5.4, 0.8 + 0.35 * len(found.importance)), layout="constrained")
    axes = figure.subplots()
    axes.barh(list(found.importance), list(found.importance.values()), color=BLUE)
    axes.invert_yaxis()
    axes.set(xlabel="importance", xlim=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_trials(found: Tuned) -> Figure:
    """Draw the validation scores against each setting."""
    names = list(dict.fromkeys(name for trial in found.trials for name in trial.settings)) or ["settings"]
    figure = Figure(figsize=(5.4, 1.6 * len(names)), layout="constrained")
    most = max(trial.runs for trial in found.trials)
    for axes, name in zip(figure.subplots(len(names), 1, squeeze=False)[:, 0], names, strict=True):
        for trial in found.trials:
            if name in trial.settings:
                axes.plot(str(trial.settings[name]) if isinstance(trial.settings[name], str) else trial.settings[name],
                          trial.val, "o", color=BLUE if trial.runs == most else GREY)  # fmt: skip
        axes.set(xlabel=name, ylabel="validation")
        axes.spines[["top", "right"]].set_visible(False)
    return figure
