"""Greedy ensembles: members are added one by one, with replacement, as long as the score grows.

Caruana et al., "Ensemble selection from libraries of models", ICML 2004.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lignn.classifier.race.judge import Judge
from lignn.classifier.race.search import Search

MEMBERS = 5
"""The most members, counted with repetition."""


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes:
        weights: weight of each member by the number of the candidate; one member with weight 1 if no ensemble won.
        single: score of the candidate that is best on other folds than it is scored on, as tables show it.
        ensemble: the same for ensembles; None if there was nothing to choose among.
    """

    weights: dict[int, float]
    single: float
    ensemble: float | None


def choose(search: Search, judge: Judge, left: float = math.inf) -> Choice:
    """Return the best candidate, or an ensemble if ensembles win on other folds than they are chosen on.

    Each fold in turn is left out: an ensemble, and a single candidate, are chosen on the others and scored on it.

    Args:
        search: the search.
        judge: of its setup.
        left: seconds that are left to fit the members once more. If no candidate is so quick, the quickest is chosen.
    """
    folds = list(range(search.reached))
    among = [each for each in sorted(search.alive) if search.elapsed(each) <= left]
    among = among or [min(search.alive, key=search.elapsed)]
    best = search.ranked(judge, among, search.reached)[0]
    if len(folds) < 2 or len(among) < 2:
        return Choice({best: 1.0}, judge.score(search.predictions(best, folds), folds), None)
    held_out: dict[str, list[Tensor]] = {"single": [], "ensemble": []}
    for fold in folds:
        others = [each for each in folds if each != fold]
        members = greedy(search, judge, among, others, left)
        held_out["single"].append(_mean(search, {members[0]: 1.0}, [fold])[0])
        held_out["ensemble"].append(_mean(search, _weights(members), [fold])[0])
    single, ensemble = (judge.score(held_out[name], folds) for name in ("single", "ensemble"))
    weights = _weights(greedy(search, judge, among, folds, left)) if ensemble > single else {best: 1.0}
    return Choice(weights, single, ensemble)


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
