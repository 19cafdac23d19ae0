"""What a race chooses: the best candidate, or a greedy ensemble that is better on labels it was not chosen on.

Members of an ensemble are added one by one, with replacement, as long as the score grows:

Caruana et al., "Ensemble selection from libraries of models", ICML 2004.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lignn.classifier.race.fold_fits import Task
from lignn.classifier.race.folds import Fold
from lignn.classifier.race.judge import Judge, gap
from lignn.classifier.race.search import Search

SURE = 0.01
"""Share of the predictions that may depend on the start of a solve in a candidate that can be relied on."""
_PARTS = 4
"""Parts of the labels that score a single fold, each of which is left out in turn."""
MEMBERS = 5
"""The most members, counted with repetition."""


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes:
        weights: weight of each member by the number of the candidate; one member with weight 1 if no ensemble won.
        single: score of the candidate that is best on other folds than it is scored on, as tables show it.
        ensemble: the same for ensembles; None if there was nothing to choose among.
        runner_up: the number of the best candidate that is no part of it, and of those whose predictions do not depend
            on the start of a solve, if it does; None if there is none.
    """

    weights: dict[int, float]
    single: float
    ensemble: float | None
    runner_up: int | None = None


def choose(search: Search, judge: Judge, left: float = math.inf) -> Choice:
    """Return the best candidate, or an ensemble if ensembles win on other folds than they are chosen on.

    Each fold in turn is left out: an ensemble, and a single candidate, are chosen on the others and scored on it.

    Args:
        search: the search.
        judge: of its setup.
        left: seconds that are left to fit the members once more. If no candidate is so quick, the quickest is chosen.
    """
    if search.reached == 1:
        search = divided(search)
        judge = Judge.of(search.setup)
    folds = list(range(search.reached))
    quick = [each for each in sorted(search.alive) if search.elapsed(each) <= left]
    quick = quick or [min(search.alive, key=search.elapsed)]
    among = reliable(search, judge, quick)
    best = preferred(search, judge, among)
    weights, single, ensemble = {best: 1.0}, judge.score(search.predictions(best, folds), folds), None
    if len(folds) > 1 and len(among) > 1:
        held_out: dict[str, list[Tensor]] = {"single": [], "ensemble": []}
        for fold in folds:
            members = greedy(search, judge, among, [each for each in folds if each != fold], left)
            held_out["single"].append(_mean(search, {members[0]: 1.0}, [fold])[0])
            held_out["ensemble"].append(_mean(search, _weights(members), [fold])[0])
        single, ensemble = (judge.score(held_out[name], folds) for name in ("single", "ensemble"))
        if judge.rank(held_out["ensemble"], folds) > judge.rank(held_out["single"], folds):
            weights = _weights(greedy(search, judge, among, folds, left))
    tried = [
        each for each in range(len(search.setup.candidates)) if 0 in search.folds_of(each) and not search.is_idle(each)
    ]
    others = [each for each in search.ranked(judge, quick, search.reached) if each not in weights]
    others += [each for each in search.ranked(judge, tried, 1) if each not in (*weights, *others)]
    if any(search.depends(each) > SURE for each in weights):
        others = [each for each in others if search.depends(each) <= SURE]
    return Choice(weights, single, ensemble, next(iter(others), None))


def divided(search: Search) -> Search:
    """Return a search of one fold as one of several, which share its fits: other labels score each of them."""
    (fold, *_), setup = search.setup.folds, search.setup
    nodes = fold.scored.nonzero().flatten()
    number = torch.arange(len(nodes)) % _PARTS
    parts, results = [], {}
    for part in range(_PARTS):
        scored = torch.zeros_like(fold.scored)
        scored[nodes[number == part]] = True
        parts.append(Fold(fold.split, scored))
        for task, one in search.results.items():
            if task.fold == 0 and one.probabilities is not None:
                rows = one.probabilities[number == part]
                results[Task(task.candidate, part)] = replace(one, probabilities=rows)
    return Search(replace(setup, folds=tuple(parts)), results=results, alive=search.alive, reached=_PARTS)


def reliable(search: Search, judge: Judge, among: Sequence[int]) -> list[int]:
    """Return the candidates that may win.

    One whose predictions depend on the start of a solve may only if it leads all that do not by more than the error.
    """
    folds = range(search.reached)
    sure = [each for each in among if search.depends(each) <= SURE]
    rows = {each: search.predictions(each, folds) for each in among}
    leading = [
        each
        for each in among
        if each not in sure and all(gap(judge, folds, rows[each], rows[one]).beyond_its_error for one in sure)
    ]
    return sorted(leading or sure) if sure else list(among)


def preferred(search: Search, judge: Judge, among: Sequence[int]) -> int:
    """Return the best candidate.

    It has the lowest log loss of those whose score is not behind the best one by more than the error. Of those that
    held-out labels cannot tell from it, neither by score nor by log loss, it is one whose predictions do not depend on
    the start, then one in which a new label takes effect without training, then the cheapest.
    """
    folds = range(search.reached)
    ranked = search.ranked(judge, among, search.reached)
    rows = {each: search.predictions(each, folds) for each in ranked}
    good = [each for each in ranked if not gap(judge, folds, rows[ranked[0]], rows[each]).beyond_its_error]
    leader = max(good, key=lambda each: judge.rank(rows[each], folds)[1])

    def as_good(each: int) -> bool:
        return not judge.is_behind(rows[leader], rows[each], folds)

    def order(each: int) -> tuple[bool, bool, float]:
        return search.depends(each) > SURE, not search.results[Task(each, 0)].takes_labels, search.cost(each)

    return min(filter(as_good, good), key=order)


def greedy(
    search: Search, judge: Judge, among: Sequence[int], folds: Sequence[int], left: float = math.inf
) -> list[int]:
    """Return the members in the order in which they were added; the first is the best alone, of equal ones the first.

    A member is added only if the score grows, and if all members can be fitted once more in the seconds that are left.
    Of members with which the score is the same, the one with the lowest log loss is added.
    """
    predictions = {each: torch.cat(search.predictions(each, folds)) for each in among}
    members: list[int] = []
    total, top = torch.zeros_like(predictions[among[0]]), -float("inf")
    while len(members) < MEMBERS:
        spent = sum(search.elapsed(each) for each in set(members))
        possible = [each for each in among if not members or each in members or spent + search.elapsed(each) <= left]
        means = {each: (total + predictions[each]) / (len(members) + 1) for each in possible}
        best = max(possible, key=lambda each: judge.rank([means[each]], folds))
        score = judge.score([means[best]], folds)
        if score <= top:
            break
        members.append(best)
        total, top = total + predictions[best], score
    return members


def _weights(members: Sequence[int]) -> dict[int, float]:
    return {member: count / len(members) for member, count in Counter(members).items()}


def _mean(search: Search, weights: dict[int, float], folds: Sequence[int]) -> list[Tensor]:
    """Return the predictions of an ensemble on some folds."""
    parts = [[weight * one for one in search.predictions(member, folds)] for member, weight in weights.items()]
    return [torch.stack(each).sum(0) for each in zip(*parts, strict=True)]


def mean_of(search: Search, weights: dict[int, float]) -> list[Tensor]:
    """Return the predictions of an ensemble on the folds that all candidates left were compared on."""
    return _mean(search, weights, range(search.reached))
