"""A proxy learns from answers, decides clear rows, tells what it does, and travels as JSON."""

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from querymesh.errors import PredicateError
from querymesh.query.costly.proxy.audit import Audit
from querymesh.query.costly.proxy.fitted import FittedProxy, fit_proxy, proxy_from_json
from querymesh.query.costly.proxy.options import Proxy

N = 1000


def clear_rows(n: int, seed: int = 0) -> tuple[list[pa.Array], pa.Array]:
    """Texts and a number; which are true is told by one word."""
    rng = np.random.default_rng(seed)
    answers = rng.random(n) < 0.4
    words = rng.integers(0, 300, (n, 5))
    texts = [
        " ".join(f"w{each}" for each in some) + (" superb" if answer else " dull")
        for some, answer in zip(words, answers, strict=True)
    ]
    return [pa.array(texts), pa.array(rng.integers(0, 9, n))], pa.array(answers)


@cache
def fitted(options: Proxy = Proxy()) -> FittedProxy:  # noqa: B008
    """A proxy of rows that are clear."""
    proxy = fit_proxy(options, *clear_rows(N))
    assert isinstance(proxy, FittedProxy), proxy
    return proxy


def test_clear_rows_are_decided_and_rightly_so() -> None:
    proxy = fitted(Proxy(audit=0.0))
    args, answers = clear_rows(3000, seed=1)
    split = proxy.split(args, 3000)
    assert len(split.to_ask) < 600
    known = np.asarray(split.known.is_valid())
    assert (np.asarray(split.says_true)[known] == np.asarray(answers)[known]).mean() > 0.95


def test_one_seed_makes_one_proxy() -> None:
    again = fit_proxy(Proxy(), *clear_rows(N))
    assert isinstance(again, FittedProxy)
    assert again.to_json() == fitted().to_json()
    assert fitted().to_json() != fitted(Proxy(seed=5)).to_json()


def test_rows_with_a_null_argument_are_asked() -> None:
    args = [pa.array(["so superb", None, "so dull", "superb"]), pa.array([1, 2, None, 3])]
    split = fitted(Proxy(audit=0.0)).split(args, 4)
    assert {1, 2} <= set(split.to_ask.tolist())


def test_null_answers_are_false_and_null_arguments_are_not_learned_from() -> None:
    (texts, numbers), answers = clear_rows(N)
    texts = pa.array([None if at % 9 == 0 else v for at, v in enumerate(texts.to_pylist())])
    answers = pa.array([v or None for v in answers.to_pylist()], pa.bool_())
    proxy = fit_proxy(Proxy(), [texts, numbers], answers)
    assert isinstance(proxy, FittedProxy)
    assert proxy.clear_share <= 8 / 9


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows_are_split_as_well(n: int) -> None:
    args, _ = clear_rows(10)
    split = fitted().split([arg.slice(0, n) for arg in args], n)
    assert len(split.known) == n


def test_an_audited_row_is_asked_whenever_it_comes() -> None:
    proxy = fitted(Proxy(audit=0.1))
    args, _ = clear_rows(2000, seed=2)
    split = proxy.split(args, 2000)
    clear = split.says_true | split.says_false
    assert 0.05 < split.audited[clear].mean() < 0.15
    assert not split.audited[~clear].any()
    part = proxy.split([arg.slice(700, 300) for arg in args], 300)
    assert part.audited.tolist() == split.audited[700:1000].tolist()


def test_what_cannot_be_learned_is_off_and_says_why() -> None:
    args, answers = clear_rows(N)
    rare = pa.array(np.arange(N) % 50 == 0)
    why = fit_proxy(Proxy(), args, rare)
    assert isinstance(why, str)
    assert "72 must for this guarantee: set sample_rows to 9,000 or more" in why
    assert "none of the sample passes" in str(fit_proxy(Proxy(), args, pa.array([False] * N)))
    noise = pa.array(np.random.default_rng(99).random(N) < 0.5)
    assert "give it features= that tell more" in str(fit_proxy(Proxy(), args, noise))
    assert "no arguments" in str(fit_proxy(Proxy(), [], answers))
    assert "off" in str(fit_proxy(Proxy(), [args[0].slice(0, 0)], answers.slice(0, 0)))
    nothing = [pa.nulls(N, pa.string())]
    assert "off" in str(fit_proxy(Proxy(), nothing, answers))


def test_a_predicate_that_passes_everything_needs_no_call() -> None:
    args, _ = clear_rows(N)
    proxy = fit_proxy(Proxy(audit=0.0), args, pa.array([True] * N))
    assert isinstance(proxy, FittedProxy)
    assert proxy.split(args, N).known.true_count > 0.9 * N


def test_it_travels_as_json() -> None:
    proxy = fitted()
    text = json.dumps(proxy.to_json(), allow_nan=False)
    assert len(text) < 200_000
    again = proxy_from_json(json.loads(text), proxy.options)
    args, _ = clear_rows(500, seed=3)
    assert again.split(args, 500).known == proxy.split(args, 500).known
    assert again.describe() == proxy.describe()
    fallen = proxy_from_json(
        json.loads(json.dumps(proxy.asking_everything("so").to_json())), proxy.options
    )
    assert fallen.fallen_back == "so"


def test_open_ends_travel_as_json() -> None:
    args, answers = clear_rows(N)
    cases = [
        (Proxy(recall=1.0), answers),
        (Proxy(precision=1.0), answers),
        (Proxy(), pa.array([True] * N)),
    ]
    for options, given in cases:
        proxy = fit_proxy(options, args, given)
        assert isinstance(proxy, FittedProxy)
        text = json.dumps(proxy.to_json(), allow_nan=False)
        assert proxy_from_json(json.loads(text), options).thresholds == proxy.thresholds


@pytest.mark.parametrize(
    "change",
    [
        {"lo": "0"},
        {"hi": float("inf")},
        {"all_true": 1},
        {"clear_share": 2},
        {"clear_share": None},
        {"sample_rows": -1},
        {"sample_rows": 1.5},
        {"fallen_back": 3},
        {"model": None},
        {"model": {"width": 0}},
        {"model": {"width": 3, "encoder": None, "logistic": {"bias": 0, "weights": "AAAA" * 4}}},
        {"model": {"width": 3, "encoder": {"buckets": 2, "columns": []}, "logistic": {}}},
    ],
)
def test_what_is_no_proxy_is_refused(change: dict[str, Any]) -> None:
    content = fitted().to_json() | change
    with pytest.raises(ValueError, match=r"must be|model|features"):
        proxy_from_json(content, Proxy())
    with pytest.raises(ValueError, match="a proxy is an object"):
        proxy_from_json([], Proxy())


def test_a_proxy_that_fell_back_asks_everything_and_says_so() -> None:
    proxy = fitted().asking_everything("recall is no longer 95%")
    args, _ = clear_rows(50)
    assert proxy.split(args, 50).to_ask.tolist() == list(range(50))
    line = proxy.describe(Audit(asked=5))
    assert line == "proxy: fell back, all rows are asked: recall is no longer 95%"


def test_it_tells_what_it_does_in_a_line() -> None:
    line = fitted().describe(Audit(asked=100, clear_true=900, audited_true=20, wrong_true=1))
    assert line.startswith("proxy (approximate): about ")
    for part in (
        "of rows decided without a call", "true above", "false below", "2.0% of them audited",
        "recall ≥ 95.0% and precision ≥ 95.0% with 95% confidence, from 1,000 answers",
        "880 of 1,000 rows decided without a call, 20 of 900 clear ones audited, 1 wrong",
    ):  # fmt: skip
        assert part in line
    assert "\n" not in line
    assert "not audited" in fitted(Proxy(audit=0.0)).describe()


def halves(texts: pa.Array, numbers: pa.Array) -> np.ndarray:
    """Features of the user's own: whether a word is there, and a number."""
    has = [("superb" in text) * 1.0 for text in texts.to_pylist()]
    return np.column_stack([has, np.asarray(numbers, dtype=float)])


def test_features_of_the_user_are_used_in_place_of_ours() -> None:
    options = Proxy(features=halves, audit=0.0)
    proxy = fitted(options)
    args, answers = clear_rows(500, seed=4)
    assert proxy.split(args, 500).known == answers
    again = proxy_from_json(json.loads(json.dumps(proxy.to_json())), options)
    assert again.split(args, 500).known == answers
    with pytest.raises(ValueError, match="features= of the user, which are not given"):
        proxy_from_json(proxy.to_json(), Proxy())


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros(N), "an array of shape"),
        (np.zeros((3, 2)), "an array of shape"),
        (np.zeros((N, 0)), "an array of shape"),
        (np.full((N, 2), np.nan), "no row of finite numbers"),
        ("text", "raised ValueError"),
    ],
)
def test_features_that_are_no_matrix_are_refused(returned: Any, message: str) -> None:
    def wrong(*args: pa.Array) -> Any:
        return returned[: len(args[0])] if len(returned) == N else returned

    with pytest.raises(PredicateError, match=message):
        fit_proxy(Proxy(features=wrong), *clear_rows(N))


def test_features_that_change_their_width_are_refused() -> None:
    width = [2]
    options = Proxy(features=lambda texts, numbers: halves(texts, numbers)[:, : width[0]])
    proxy = fitted(options)
    width[0] = 1
    with pytest.raises(PredicateError, match="returned 1 columns, and 2 when it was fitted"):
        proxy.split(clear_rows(5)[0], 5)


def test_a_row_whose_features_are_no_numbers_is_asked() -> None:
    def some(texts: pa.Array, numbers: pa.Array) -> np.ndarray:
        matrix = halves(texts, numbers)
        matrix[np.asarray(numbers) == 3, 0] = np.nan
        return matrix

    proxy = fitted(Proxy(features=some, audit=0.0))
    args, _ = clear_rows(500, seed=4)
    asked = set(proxy.split(args, 500).to_ask.tolist())
    assert set(np.flatnonzero(np.asarray(args[1]) == 3).tolist()) <= asked
    assert len(asked) < 250
