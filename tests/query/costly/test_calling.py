"""The options that say how a function is called."""

from email.message import Message
from typing import Any
from urllib.error import HTTPError

import pytest

from querymesh.errors import OptionError, PredicateError
from querymesh.query.costly.calling import (
    LONGEST_PAUSE_S,
    LONGEST_RETRY_AFTER_S,
    Calling,
)


def http_error(status: int, **headers: str) -> HTTPError:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return HTTPError("http://host", status, "told", message, None)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"batch": 0}, "batch must be at least 1"),
        ({"batch": 2.5}, "batch must be an integer"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"concurrency": True}, "concurrency must be an integer"),
        ({"rate_limit": 0}, "rate_limit is calls a second, above 0"),
        ({"rate_limit": float("inf")}, "rate_limit is calls a second, above 0"),
        ({"rate_limit": "10"}, "rate_limit must be a number"),
        ({"retries": -1}, "retries must be at least 0"),
        ({"retry_on": (3,)}, "retry_on names classes of exceptions"),
        ({"retry_on": 429}, "retry_on names classes of exceptions"),
        ({"retry_on": (KeyboardInterrupt,)}, "retry_on names classes of exceptions"),
        ({"timeout_s": 0}, "timeout_s is seconds, above 0"),
        ({"timeout_s": float("nan")}, "timeout_s is seconds, above 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        Calling(**options)


def test_errors_to_try_again_are_one_class_or_several() -> None:
    assert Calling(retry_on=ValueError).retry_on == (ValueError,)
    assert Calling(retry_on=[ValueError, KeyError]).retry_on == (ValueError, KeyError)  # type: ignore[arg-type]


def test_only_errors_that_are_named_are_tried_again() -> None:
    calling = Calling(retries=1, retry_on=(ValueError,))
    assert calling.pause_after(ValueError(), 1, jitter=0.5) == 0.1
    assert calling.pause_after(ConnectionResetError(), 1, jitter=0.5) is None
    assert calling.pause_after(ValueError(), 2, jitter=0.5) is None


def test_a_result_of_the_wrong_kind_is_never_tried_again() -> None:
    assert Calling(retries=1, retry_on=(Exception,)).pause_after(PredicateError(), 1, 0.5) is None


@pytest.mark.parametrize(
    ("status", "again"),
    [(408, True), (429, True), (500, True), (503, True), (400, False), (401, False), (501, False)],
)
def test_an_http_answer_is_tried_again_where_that_may_help(status: int, again: bool) -> None:
    class LibraryError(Exception):  # not an OSError
        status_code = status

    for error in (http_error(status), LibraryError()):
        assert (Calling(retries=1).pause_after(error, 1, 0.5) is not None) is again


def test_pauses_double_up_to_a_bound() -> None:
    pauses = [Calling().pause_s(attempt, jitter=0.5) for attempt in range(1, 5)]
    assert pauses == [0.1, 0.2, 0.4, 0.8]
    assert Calling().pause_s(10_000, jitter=0.5) == LONGEST_PAUSE_S


def test_the_pause_an_endpoint_asks_for_is_kept_unless_it_is_absurd() -> None:
    calling = Calling(retries=1)
    assert calling.pause_after(http_error(429, Retry_After="7"), 1, jitter=0.0) == 7.0
    assert 7.0 < (calling.pause_after(http_error(429, Retry_After="7"), 1, jitter=1.0) or 0) < 7.2
    too_long = http_error(429, Retry_After=str(LONGEST_RETRY_AFTER_S + 1))
    assert calling.pause_after(too_long, 1, jitter=0.0) is None


def test_rows_are_called_for_together_unless_each_is_a_call_that_counts() -> None:
    assert Calling().rows_a_call(100, by_row=False) == 100
    assert Calling().rows_a_call(100, by_row=True) == 100
    assert Calling().rows_a_call(100, by_row=True, is_paid=True) == 1
    assert Calling(timeout_s=1.0).rows_a_call(100, by_row=True) == 1
    assert Calling(batch=7, timeout_s=1.0).rows_a_call(100, by_row=True) == 7
    assert Calling(batch=7, rate_limit=1.0).rows_a_call(100, by_row=True) == 1
    assert Calling(batch=7, rate_limit=1.0).rows_a_call(100, by_row=False) == 7
