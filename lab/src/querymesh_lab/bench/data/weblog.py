"""10,000 lines of a web server's combined log, taken apart; the text of the line is kept."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa

FILE = "weblogs/apache_logs_10k.log.gz"
_LINE = re.compile(
    r'(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d+) (\d+|-) "([^"]*)" "([^"]*)"'
)
COLUMNS = ("ip", "time", "method", "path", "status", "size", "referrer", "agent")


def requests(folder: Path, rows: int | None = None) -> pa.Table:
    """The lines that are whole, in the order of the file."""
    with gzip.open(folder / FILE, "rt", encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n") for line in file]
    parsed = [(line, found) for line in lines if (found := parse_line(line)) is not None][:rows]
    columns = {name: [row[k] for _, row in parsed] for k, name in enumerate(COLUMNS)}
    return pa.table({"id": range(len(parsed)), "line": [line for line, _ in parsed], **columns})


def parse_line(line: str) -> tuple[str, str, str, str, int, int, str, str] | None:
    """The parts of a line, or None of one that is cut off; no size is 0.

    >>> parse_line('1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 - "-" "curl"')
    ('1.2.3.4', '17/May/2015:10:05:03 +0000', 'GET', '/a', 200, 0, '-', 'curl')
    """
    found = _LINE.match(line)
    if found is None:
        return None
    ip, time, method, path, status, size, referrer, agent = found.groups()
    return ip, time, method, path, int(status), 0 if size == "-" else int(size), referrer, agent
