"""What an error of a remote call says: its HTTP status, when to come back, whether it was made.

Read from attributes that errors of HTTP libraries have, so that none of these is needed here::

    requests, httpx, openai   error.response.status_code   error.response.headers
    urllib                    error.code                   error.headers
    aiohttp                   error.status                 error.headers
    botocore                  error.response["ResponseMetadata"]
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_PERHAPS_ANSWERED = frozenset({408, 504})
"""Timeouts on the other side: the answer may have been made, and paid for."""


def status_of(error: BaseException) -> int | None:
    """The status of the HTTP answer that an error stands for, if it does.

    >>> from urllib.error import HTTPError
    >>> status_of(HTTPError("http://host", 429, "Too Many Requests", {}, None))
    429
    """
    for told in _told_by(error):
        for name in ("status_code", "status", "code", "HTTPStatusCode"):
            status = _attribute(told, name)
            if isinstance(status, int) and 100 <= status <= 599:
                return int(status)
    return None


def retry_after_s(error: BaseException) -> float | None:
    """In how many seconds the other side wants to be asked again, if it said so."""
    for told in _told_by(error):
        found = _seconds(_attribute(told, "retry_after"))
        if found is None:
            found = _seconds(_header(told, "Retry-After"))
        if found is not None:
            return found
    return None


def was_refused(error: BaseException) -> bool:
    """Whether a call surely did not do any work that is paid for.

    The answer was an HTTP error, or there was nobody to connect to. What raised anything else, or
    took too long, may have been answered.
    """
    status = status_of(error)
    if status is not None:
        return status >= 400 and status not in _PERHAPS_ANSWERED
    return any(
        isinstance(each, ConnectionRefusedError | socket.gaierror) for each in chain_of(error)
    )


def _told_by(error: BaseException) -> Iterator[Any]:
    yield error
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        yield response.get("ResponseMetadata", {})
    elif response is not None:
        yield response


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from; libraries wrap what the socket raised."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__, getattr(each, "reason", None)]


def _attribute(told: Any, name: str) -> Any:
    if isinstance(told, Mapping):
        return told.get(name)
    try:
        return getattr(told, name, None)
    except Exception:  # a property of somebody's error that raises
        return None


def _header(told: Any, name: str) -> Any:
    headers = _attribute(told, "HTTPHeaders" if isinstance(told, Mapping) else "headers")
    if not hasattr(headers, "get"):
        return None
    return headers.get(name, headers.get(name.lower()))


def _seconds(given: Any) -> float | None:
    if given is None or isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        seconds = float(given)
    except ValueError:
        return _seconds_until(str(given))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str) -> float | None:
    """Until a date as HTTP writes it."""
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)
