"""What errors of remote calls say, in the words of several libraries."""

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import pytest

from querymesh.query.costly.calls.refusals import retry_after_s, status_of, was_refused


class LibraryError(Exception):
    def __init__(self, **told: Any) -> None:
        self.__dict__.update(told)


REQUESTS = LibraryError(response=SimpleNamespace(status_code=429, headers={"retry-after": "3"}))
AIOHTTP = LibraryError(status=429, headers={"Retry-After": "3"})
OPENAI = LibraryError(status_code=429, code="rate_limit_exceeded", response=REQUESTS.response)
BOTO = LibraryError(
    response={"ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"retry-after": "3"}}}
)


@pytest.mark.parametrize("error", [REQUESTS, AIOHTTP, OPENAI, BOTO])
def test_status_and_pause_are_read_from_errors_of_several_libraries(error: Exception) -> None:
    assert status_of(error) == 429
    assert retry_after_s(error) == 3.0
    assert was_refused(error)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        *((2, 2.0), (0.5, 0.5), ("4", 4.0), (-1, 0.0)),
        *((None, None), (True, None), ("soon", None), (float("nan"), None), ([1], None)),
    ],
)
def test_an_error_may_say_itself_when_to_come_back(told: Any, seconds: float | None) -> None:
    assert retry_after_s(LibraryError(retry_after=told)) == seconds


def test_a_date_is_understood_as_well() -> None:
    at = datetime.now(UTC) + timedelta(seconds=60)
    found = retry_after_s(LibraryError(headers={"Retry-After": format_datetime(at, usegmt=True)}))
    assert found is not None
    assert 50 < found <= 60
    past = datetime.now(UTC) - timedelta(days=1)
    assert retry_after_s(LibraryError(headers={"Retry-After": format_datetime(past)})) == 0.0


def test_nobody_is_paid_for_a_refusal_but_perhaps_for_what_took_too_long() -> None:
    assert was_refused(LibraryError(status=503))
    assert was_refused(ConnectionRefusedError())
    assert was_refused(URLError(ConnectionRefusedError()))
    assert was_refused(socket.gaierror())
    assert not was_refused(LibraryError(status=504))
    assert not was_refused(TimeoutError())
    assert not was_refused(ConnectionResetError())
    assert not was_refused(ValueError("no JSON"))


def test_what_libraries_wrap_is_found() -> None:
    wrapped = LibraryError()
    wrapped.__cause__ = ConnectionRefusedError()
    assert was_refused(wrapped)


def test_an_error_whose_attributes_raise_says_nothing() -> None:
    class OddError(Exception):
        @property
        def status(self) -> int:
            raise RuntimeError

        @property
        def headers(self) -> Any:
            raise RuntimeError

    assert status_of(OddError()) is None
    assert retry_after_s(OddError()) is None
