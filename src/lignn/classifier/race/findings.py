"""What helps on a graph: features, edges or known labels? Groups of candidates against each other, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lignn.classifier.race.candidates import Candidate
from lignn.classifier.race.judge import Gap, Judge, gap
from lignn.classifier.race.search import Search


def majority(search: Search, folds: Sequence[int]) -> list[Tensor]:
    """Return predictions that always have the most frequent training label, or for multi-label tasks each one's share.

    It is that of the labels that the fit of each fold was trained on.
    """
    graph, found = search.setup.graph, []
    for number in folds:
        fold = search.setup.folds[number]
        assert graph.y is not None
        y = graph.y[fold.split.train & graph.labelled]
        if graph.is_multilabel:
            row = y.float().mean(0)
        else:
            row = torch.zeros(graph.num_classes)
            row[y.bincount().argmax()] = 1
        found.append(row.expand(int(fold.scored.sum()), -1))
    return found


def in_short(search: Search, judge: Judge) -> str:
    """Return in one sentence whether edges and labels help, and what a table of features alone has."""
    plain = _best(search, judge, lambda one: one.uses == ("features",))
    through = _best(search, judge, lambda one: one.uses == ("features", "edges"))
    inputs = _best(search, judge, lambda one: "labels" in one.uses and one.has_network)
    graph = _best(search, judge, lambda one: "edges" in one.uses or "labels" in one.uses)
    found = []
    if plain is not None and graph is not None:
        found.append(f"your edges {_verdict(_between(search, judge, graph, plain))}")
    if through is not None and inputs is not None:
        found.append(f"labels as inputs {_verdict(_between(search, judge, inputs, through))}")
    if plain is not None:
        declared, folds = judge.metric.declared, search.folds_of(plain)
        score = declared.sign * declared.factor * judge.score(search.predictions(plain, folds), folds)
        found.append(f"a table of features alone has {score:.2f}")
    text = "; ".join(found)
    return f"{text[:1].upper()}{text[1:]}." if found else ""


def _verdict(found: Gap) -> str:
    if found.sign:
        return "help" if found.sign > 0 else "do harm"
    return "do not help" if found.none else "may help or not: more labels would tell"


def sentences(search: Search, judge: Judge) -> list[str]:
    """Return what the candidates say of the graph."""
    plain = _best(search, judge, lambda one: one.uses == ("features",))
    through = _best(search, judge, lambda one: one.uses == ("features", "edges"))
    inputs = _best(search, judge, lambda one: "labels" in one.uses and one.has_network)  # against networks without
    spread = _best(search, judge, lambda one: one.uses == ("labels",))
    graph = _best(search, judge, lambda one: "edges" in one.uses or "labels" in one.uses)
    told = [_against_guess(search, judge)]
    edges = labels = None
    if plain is not None and graph is not None:
        edges = _between(search, judge, graph, plain)
        told.append(_about_edges(search, graph, plain, edges))
    if through is not None and inputs is not None:
        labels = _between(search, judge, inputs, through)
        told.append(_about_labels(search, inputs, through, labels, edges))
    with_features = _best(search, judge, lambda one: "features" in one.uses)
    if spread is not None and with_features is not None:
        told.append(_about_features(search, with_features, spread, _between(search, judge, with_features, spread)))
    return told


def _best(search: Search, judge: Judge, belongs: Callable[[Candidate], bool]) -> int | None:
    """Return the best candidate of a group: of those that were tried on most folds, the one with the best score."""
    found = [number for number, one in enumerate(search.setup.candidates) if belongs(one)]
    among = [number for number in found if search.folds_of(number) and not search.is_idle(number)]
    if not among:
        return None
    most = max(len(search.folds_of(number)) for number in among)
    among = [number for number in among if len(search.folds_of(number)) == most]
    folds = search.folds_of(among[0])
    return max(among, key=lambda number: judge.rank(search.predictions(number, folds), folds))


def _between(search: Search, judge: Judge, one: int, other: int) -> Gap:
    """Return the difference of two candidates on the folds that both have."""
    folds = sorted(set(search.folds_of(one)) & set(search.folds_of(other)))
    return gap(judge, folds, search.predictions(one, folds), search.predictions(other, folds))


def _against_guess(search: Search, judge: Judge) -> str:
    folds = range(search.reached)
    best = search.ranked(judge, search.alive, search.reached)[0]
    found = gap(judge, folds, search.predictions(best, folds), majority(search, folds))
    title = _title(search, best)
    if found.sign > 0:
        return f"{title} is {found} above always answering the most frequent label."
    return f"Nothing is clearly better than always answering the most frequent label: at best {title}, {found}."


def _about_edges(search: Search, graph: int, plain: int, found: Gap) -> str:
    with_edges, without = _title(search, graph), _title(search, plain)
    if found.sign > 0:
        return f"The graph helps: {with_edges} is {found} above {without}, which uses features alone."
    if found.sign < 0:
        return f"The graph does harm: {without}, which uses features alone, is above {with_edges} ({found})."
    compared = f"{with_edges} against {without}: {found}"
    if found.none:
        return f"A model without the graph is as good: your edges do not help ({compared})."
    return f"Whether your edges help is not clear: more labels would tell ({compared})."


def _about_labels(search: Search, inputs: int, through: int, found: Gap, edges: Gap | None) -> str:
    with_labels, without = _title(search, inputs), _title(search, through)
    compared = f"{with_labels} against {without}: {found}"
    if found.sign > 0:
        return f"Neighbours' labels help as inputs ({compared})."
    if not found.none:
        return f"Whether neighbours' labels help as inputs is not clear: more labels would tell ({compared})."
    if edges is not None and edges.sign > 0:
        return f"Neighbours' features matter, their labels do not ({compared})."
    return f"Neighbours' labels do not help as inputs ({compared})."


def _about_features(search: Search, with_features: int, spread: int, found: Gap) -> str:
    compared = f"{_title(search, with_features)} against {_title(search, spread)}: {found}"
    if found.sign > 0:
        return f"Features help ({compared})."
    if found.none:
        return f"Edges and labels alone are as good: features do not help ({compared})."
    return f"Whether features help is not clear: more labels would tell ({compared})."


def _title(search: Search, number: int) -> str:
    return search.setup.candidates[number].title
