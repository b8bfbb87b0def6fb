"""The examples run as they are, each in a process of its own, and find what there is to find."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
LONGEST_S = 600


def module_of(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An example as a module, for its conditions and its data."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = __import__(name)
    monkeypatch.delitem(sys.modules, name)
    return module


def filtered(example: ModuleType, _: Path) -> int:
    kinds = ("web", "mail", "dns")
    scans = [example.scanner(kind).fn for kind in kinds]
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT ['web', 'mail', 'dns'][1 + id % 3], sha256(id::VARCHAR) "
            f"FROM range({example.ROWS}) AS t(id)"
        ).fetchall()
    return sum(all(scan(*row) for scan in scans) for row in rows)


def enriched(example: ModuleType, _: Path) -> int:
    def is_result(number: int) -> bool:
        web = number % 2 == 0
        account = str(number * 1013 if web else number * 97 + 1).rjust(12, "0")
        return (web or number % 9 == 0) and example.valid_account(account)

    return sum(map(is_result, range(example.FILES * example.ROWS)))


def joined(example: ModuleType, folder: Path) -> int:
    """By the meaning of a window: no tuple is older than its own, seen from the newest of them."""
    for name, rows, column in example.STREAMS:
        example.write_stream(folder, name, rows, column)
    with duckdb.connect() as connection:
        found = connection.execute(
            f"""SELECT count(*) FROM '{folder}/Trades/*.parquet' t
                JOIN '{folder}/Quotes/*.parquet' q ON t.symbol = q.symbol AND t.price > q.bid
                JOIN '{folder}/News/*.parquet' n ON t.symbol = n.symbol
                WHERE greatest(t.ts, q.ts, n.ts) - t.ts <= INTERVAL 10 SECONDS
                  AND greatest(t.ts, q.ts, n.ts) - q.ts <= INTERVAL 10 SECONDS
                  AND greatest(t.ts, q.ts, n.ts) - n.ts <= INTERVAL 1 MINUTE"""
        ).fetchone()
    assert found is not None
    return int(found[0])


def asked(example: ModuleType, _: Path) -> int:
    kinds = ("broken", "on its way", "late", "fine", "lovely")
    texts = (kinds[number % 5] for number in range(example.ROWS) if number % 3 != 2)
    return sum(map(example.complains, texts))


EXPECTED = {
    "filter": filtered, "enrichment_stream": enriched, "llm_filter": asked, "window_join": joined,
}  # fmt: skip
DECIDED = {
    "filter": r"service in \{\w+\}",
    "llm_filter": r"again: [\d,]+ tickets, 0 calls",
    "enrichment_stream": r"channel in \{\w+\}",
    "window_join": r"join of 3 streams: t, q, n",
}


def test_every_example_is_checked() -> None:
    assert SCRIPTS == sorted(EXPECTED) == sorted(DECIDED)


@pytest.mark.spark(own_process=True)
@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_finds_its_rows_and_says_what_was_decided(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, EXAMPLES / f"{name}.py"]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    first, _, rest = ended.stdout.partition("\n")
    (tmp_path / "again").mkdir()
    expected = EXPECTED[name](module_of(name, monkeypatch), tmp_path / "again")
    assert expected > 100
    assert int(first.split()[0].replace(",", "")) == expected
    assert re.search(DECIDED[name], rest), rest
    assert "µs a row" in rest
    by_batch = [float(found) for found in re.findall(r"batch \d+: ([\d.]+) evaluations", rest)]
    assert not by_batch or by_batch[-1] < 0.8 * by_batch[0], "it has switched"
    assert "problems" not in rest


def test_the_stream_of_orders_has_two_conditions_that_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example = module_of("enrichment_stream", monkeypatch)
    assert example.valid_account("WEST12345698765432GB82")
    assert not example.valid_account("WEST12345698765433GB82")
    assert example.by_clerk("order 8, clerk 7 signed")
    assert not example.by_clerk("order 8, paid")
