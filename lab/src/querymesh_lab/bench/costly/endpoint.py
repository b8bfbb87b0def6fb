"""The endpoint as tests and benchmarks hold it: a real HTTP server on loopback in its own process.

with Endpoint(Manners(delay_s=0.05)) as endpoint:
    ask(endpoint.address, "bot", ["Googlebot/2.1"])
    endpoint.counts().calls
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from types import TracebackType
from typing import Any, Self

from querymesh_lab.bench.costly import server
from querymesh_lab.bench.costly.counts import Counts
from querymesh_lab.bench.costly.manners import Manners

HOST = "127.0.0.1"
END_S = 10.0


class Endpoint:
    """A server that is started with this, and ended by `close`, or when this process ends."""

    def __init__(self, manners: Manners | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", server.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps((manners or Manners()).as_json()) + "\n")
        self._process.stdin.flush()
        port = self._process.stdout.readline()
        if not port:
            raise ChildProcessError(f"the endpoint ended with {self._process.wait()}")
        self.address = f"{HOST}:{int(port)}"

    def behave(self, manners: Manners) -> None:
        """Other settings from now on; faults, limits and counts begin anew."""
        self._call("POST", "/manners", manners.as_json())

    def counts(self) -> Counts:
        """What was seen since the start, or since `behave`."""
        return Counts.from_json(self._call("GET", "/counts"))

    def close(self) -> None:
        """End the server, with the calls that it has open."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, method: str, path: str, content: Any = None) -> Any:
        connection = HTTPConnection(self.address, timeout=END_S)
        try:
            connection.request(method, path, json.dumps(content))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()
