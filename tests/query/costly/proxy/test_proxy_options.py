"""Options of a proxy: what has no meaning is refused, with what to write instead."""

from typing import Any

import pytest

from querymesh.errors import OptionError
from querymesh.query.costly.proxy.options import Proxy, proxy_of


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"recall": 0.0}, "proxy: recall is a share"),
        ({"recall": 1.5}, "proxy: recall is a share"),
        ({"recall": "high"}, "proxy: recall must be a number"),
        ({"recall": float("nan")}, "proxy: recall is a share"),
        ({"precision": -1}, "proxy: precision is a share"),
        ({"precision": True}, "proxy: precision must be a number"),
        ({"recall": 1.0, "precision": 1.0}, "every row is asked"),
        ({"confidence": 1.0}, "confidence lies between 0 and 1"),
        ({"confidence": 0}, "confidence lies between 0 and 1"),
        ({"audit": 1.01}, "audit is a share from 0 to 1"),
        ({"audit": float("nan")}, "audit is a share from 0 to 1"),
        ({"features": "embedding"}, "features is a function"),
        ({"sample_rows": 99}, "sample_rows must be at least 100"),
        ({"sample_rows": 500.0}, "sample_rows must be an integer"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_what_has_no_meaning_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Proxy(**wrong)


def test_one_side_may_be_exact_and_nothing_need_be_audited() -> None:
    assert Proxy(recall=1.0, audit=0).recall == 1.0
    assert Proxy(precision=1.0, audit=1.0).audit == 1.0


def test_what_is_no_proxy_is_refused_by_the_name_of_the_predicate() -> None:
    assert proxy_of("angry", None) is None
    assert proxy_of("angry", Proxy()) == Proxy()
    with pytest.raises(OptionError, match=r"angry: proxy is a querymesh\.Proxy, not float"):
        proxy_of("angry", 0.95)  # type: ignore[arg-type]
