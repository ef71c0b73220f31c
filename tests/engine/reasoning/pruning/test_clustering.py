"""Greedy clustering and its vote against plain references, on drawn similarities."""

from random import Random

import numpy as np
import pytest

from engine.reasoning.pruning.clustering import Clustering, Clusters
from engine.reasoning.solving.vote import vote


def clustered(score_NN: np.ndarray, rule: Clustering, seed: int = 0) -> list[list[int]]:
    clusters: Clusters[int] = Clusters(rule, Random(seed))
    for j in range(len(score_NN)):
        clusters.place(j, lambda others, j=j: [score_NN[i, j] for i in others])
    return clusters.groups


def plainly(score_NN: np.ndarray, threshold: float, most: int) -> list[list[int]]:
    """Every trace against all members of all clusters, written as the rule is said."""
    groups: list[list[int]] = []
    for j in range(len(score_NN)):
        means = [np.mean([score_NN[i, j] for i in group]) for group in groups]
        if means and (max(means) > threshold or (most and len(groups) == most)):
            groups[int(np.argmax(means))].append(j)
        else:
            groups.append([j])
    return groups


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("most", [0, 1, 3])
def test_clusters_are_those_of_the_plain_rule(threshold: float, most: int) -> None:
    for seed in range(8):
        score_NN = np.random.default_rng(seed).random((14, 14))
        rule = Clustering(threshold=threshold, clusters=most, compared=14)
        assert clustered(score_NN, rule) == plainly(score_NN, threshold, most)


def test_a_judge_that_knows_finds_the_answers_however_few_are_compared() -> None:
    answers = np.random.default_rng(3).integers(0, 5, 30)
    score_NN = (answers[:, None] == answers).astype(float)
    for compared in (1, 2, 30):
        groups = clustered(score_NN, Clustering(compared=compared), compared)
        assert sorted(map(len, groups)) == sorted(np.bincount(answers)[np.bincount(answers) > 0])
        assert all(len(set(answers[group])) == 1 for group in groups)


def test_only_some_members_of_a_cluster_are_asked_about_and_each_once() -> None:
    asked: list[list[int]] = []
    clusters: Clusters[int] = Clusters(Clustering(compared=3), Random(1))
    for j in range(12):
        clusters.place(j, lambda others: asked.append(others) or [1.0] * len(others))
    assert [len(others) for others in asked] == [1, 2, *[3] * 9]
    assert all(len(set(others)) == len(others) for others in asked)


def test_the_bounds_of_the_threshold() -> None:
    score_NN = np.full((6, 6), 0.4)
    assert len(clustered(score_NN, Clustering(threshold=0.0))) == 1
    assert len(clustered(score_NN, Clustering(threshold=1.0))) == 6


def test_the_first_of_equal_answers_wins_and_what_cannot_be_read_has_no_vote() -> None:
    assert vote([("a", 1), ("b", 1), ("b", 1), ("a", 1)]) == "a"
    assert vote([("a", 1), ("b", 2.5)]) == "b"
    assert vote([("", 9), ("c", 1)]) == "c"
    assert vote([("", 1)]) == vote([]) == ""
