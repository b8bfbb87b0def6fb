"""Answers in a folder: found by others, whatever happens meanwhile, and never a wrong one."""

import logging
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pytest

from querymesh.errors import UnsupportedError
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.store import answer_store as stores
from querymesh.query.costly.store import pace
from querymesh.query.costly.store.answer_store import AnswerStore, opened
from querymesh.storage import Storage
from soak import SOAK


def key(number):
    return blake2b(b"%d" % number, digest_size=16).digest()


def answers(*numbers, at=1000.0):
    return {key(number): (number % 2 == 0, at) for number in numbers}


def known(store, numbers):
    """Which of some numbers a store has an answer for; it is the right one."""
    found = store.find([key(number) for number in numbers])
    assert all(
        found[key(number)][0] == (number % 2 == 0) for number in numbers if key(number) in found
    )
    return {number for number in numbers if key(number) in found}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """How long anything takes is up to the test."""

    class Clock:
        now = 50.0

    monkeypatch.setattr(pace, "monotonic", lambda: Clock.now)
    return Clock


@pytest.fixture(params=["local", "object store"])
def path(request, tmp_path):
    return str(tmp_path) if request.param == "local" else f"mock:///{tmp_path.name}"


def files_of(store):
    """The names of what is in its folder."""
    return sorted(store._storage.names())


def test_what_one_process_kept_others_find(path, clock):
    one, other = opened(Memo(path), "f"), opened(Memo(path), "f")
    assert known(other, range(5)) == set()
    one.keep(answers(1, 2))
    assert known(one, range(5)) == {1, 2}
    assert known(other, range(5)) == set(), "it looked just now"
    clock.now += 0.5
    assert known(other, range(5)) == {1, 2}
    other.keep(answers(3))
    clock.now += 0.5
    assert known(one, range(5)) == {1, 2, 3}
    assert known(opened(Memo(path), "f"), range(5)) == {1, 2, 3}
    assert known(opened(Memo(f"{path}/"), "f"), range(5)) == {1, 2, 3}


VALUES = [
    (pa.float64(), [0.5, -0.0, None]),
    (pa.int64(), [1, -(2**63), None]),
    (pa.string(), ["", "é", "x" * 5000, None]),
    (pa.binary(), [b"\xff", None]),
    (pa.list_(pa.float32()), [[], [0.5, None], None]),
    (pa.struct([("label", pa.string()), ("score", pa.float64())]), [{"label": "a", "score": 1.0}]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None]),
    (pa.timestamp("us", "UTC"), [None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_values_may_be_of_any_type(path, kind, values):
    kept = {key(at): (value, float(at)) for at, value in enumerate(values)}
    opened(Memo(path), "f", kind).keep(kept)
    assert opened(Memo(path), "f", kind).find(list(kept)) == kept


def test_functions_versions_codes_and_types_are_apart(tmp_path):
    path = str(tmp_path)
    others = [
        opened(Memo(path, version="2"), "f"),
        opened(Memo(path), "F"),
        opened(Memo(path), "g"),
        opened(Memo(path), "f", pa.null()),
        opened(Memo(path), "f", code="1f"),
        opened(Memo(path, version="'f"), ""),
    ]
    opened(Memo(path), "f").keep(answers(1))
    assert [known(other, [1]) for other in others] == [set()] * len(others)
    for other in others:
        other.keep({key(2): (None, 1.0)})
    assert known(opened(Memo(path), "f"), [1, 2]) == {1}
    names = [name.lower() for name in os.listdir(path)]
    assert len(set(names)) == 7, "also where a store takes small and capital letters for one"


@pytest.mark.parametrize("name", ["été", "CON", "x" * 300, "Straße", "模型", "..", "a/b", ""])
def test_any_name_is_one_plain_folder(tmp_path, name):
    opened(Memo(tmp_path), name).keep(answers(1))
    (folder,) = os.listdir(tmp_path)
    assert folder.isascii()
    assert len(folder) < 64
    assert known(opened(Memo(tmp_path), name), [1]) == {1}


def test_without_a_path_there_is_no_store():
    assert opened(Memo(), "f") is None


def test_an_address_that_nobody_knows_is_an_error_that_says_so():
    with pytest.raises(UnsupportedError, match=r"x9://b/f-\w+ cannot be opened for remembered"):
        opened(Memo("x9://b"), "f")


def test_files_are_for_their_owner_only(tmp_path):
    opened(Memo(tmp_path), "f").keep(answers(1))
    (folder,) = tmp_path.iterdir()
    (file,) = folder.iterdir()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


class Counting(Storage):
    """A folder that counts what is asked of it, and lets a test step in."""

    def __init__(self, folder):
        super().__init__(folder)
        self.listed = self.read_files = 0
        self.before_read = self.before_delete = lambda: None

    def names(self, path=""):
        self.listed += 1
        return super().names(path)

    def read(self, path):
        self.read_files += 1
        step, self.before_read = self.before_read, lambda: None
        step()
        return super().read(path)

    def delete(self, paths):
        step, self.before_delete = self.before_delete, lambda: None
        step()
        super().delete(paths)


def test_it_looks_once_in_half_a_second_and_reads_each_file_once(path, clock):
    storage = Counting(f"{path}/f")
    store = AnswerStore(storage, Memo(), pa.bool_())
    other = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    for number in range(5):
        other.keep(answers(number))
    for _ in range(10):
        assert known(store, range(9)) == set(range(5))
    assert (storage.listed, storage.read_files) == (1, 5)
    for _ in range(20):
        clock.now += 0.1
        known(store, range(9))
    assert 4 <= storage.listed <= 5
    assert storage.read_files == 5


def test_a_slow_folder_is_looked_into_less_often(path, clock):
    storage = Counting(f"{path}/f")
    AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_()).keep(answers(1))
    store = AnswerStore(storage, Memo(), pa.bool_())

    def slow():
        clock.now += 2.0

    storage.before_read = slow
    assert known(store, [1]) == {1}
    clock.now += 19.0
    known(store, [1])
    assert storage.listed == 1
    clock.now += 1.0
    known(store, [1])
    assert storage.listed == 2


def test_many_small_files_become_one_and_nothing_is_lost(path, clock, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 4)
    store = opened(Memo(path), "f")
    most = 0
    for number in range(60):
        store.keep(answers(number))
        clock.now += 0.5
        known(store, [1])
        most = max(most, len(files_of(store)))
    assert most <= 10, "between four and eight, and those that are much larger"
    assert known(store, range(80)) == set(range(60))
    assert known(opened(Memo(path), "f"), range(80)) == set(range(60))


def test_a_full_file_is_left_as_it_is(path, clock, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    monkeypatch.setattr(stores, "FULL_BYTES", 24 * 100)
    store = opened(Memo(path), "f")
    store.keep(answers(*range(200)))
    (full,) = files_of(store)
    for number in range(200, 220):
        store.keep(answers(number))
        clock.now += 0.5
        known(store, [1])
    assert full in files_of(store)
    assert len(files_of(store)) < 8
    assert known(opened(Memo(path), "f"), range(230)) == set(range(220))


def test_what_a_third_one_writes_while_files_are_made_one_stays(path, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    storage = Counting(f"{path}/f")
    third = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    for number in range(6):
        third.keep(answers(number))
    storage.before_read = lambda: third.keep(answers(10))
    storage.before_delete = lambda: third.keep(answers(11))
    one = AnswerStore(storage, Memo(), pa.bool_())
    assert known(one, range(6)) == set(range(6))
    assert len(files_of(one)) == 3, "one of six, and two that came meanwhile"
    fresh = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    assert known(fresh, range(20)) == {*range(6), 10, 11}


def test_files_that_go_while_they_are_read_are_looked_for_in_the_new_one(path, monkeypatch, caplog):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    storage = Counting(f"{path}/f")
    other = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    for number in range(6):
        other.keep(answers(number))
    merging = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    storage.before_read = lambda: known(merging, [1])
    one = AnswerStore(storage, Memo(), pa.bool_())
    assert known(one, range(6)) == set(range(6))
    assert not caplog.records


def test_two_that_make_one_file_at_the_same_time_lose_nothing(path, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    storage = Counting(f"{path}/f")
    other = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    for number in range(6):
        other.keep(answers(number))
    second = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    storage.before_delete = lambda: known(second, [1])
    assert known(AnswerStore(storage, Memo(), pa.bool_()), range(6)) == set(range(6))
    fresh = AnswerStore(Storage(f"{path}/f"), Memo(), pa.bool_())
    assert known(fresh, range(9)) == set(range(6))


def test_what_somebody_did_not_complete_is_removed_a_day_later(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 1)
    store = opened(Memo(tmp_path), "f")
    store.keep(answers(1))
    (folder,) = tmp_path.iterdir()
    for name in ("old.answers.1.part", "new.answers.2.part"):
        (folder / name).write_bytes(b"half")
    os.utime(folder / "old.answers.1.part", (1, 1))
    for number in range(2, 5):
        store.keep(answers(number))
        clock.now += 0.5
        known(store, [1])
    assert [name for name in os.listdir(folder) if "part" in name] == ["new.answers.2.part"]


def damaged(folder):
    """Files that nobody should believe, in a folder with good ones."""
    whole = folder.read(next(iter(folder.names())))
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 4
    return {
        "cut.answers": whole[:-9], "half.answers": whole[: len(whole) // 2], "none.answers": b"",
        "changed.answers": bytes(changed), "foreign.answers": b"PK\3\4" * 50,
        "started.answers.0.part": whole[:9], "README": b"hello", ".answers": b"x",
    }  # fmt: skip


def test_damaged_and_foreign_files_are_passed_over_with_one_word(path, clock, caplog, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    store = opened(Memo(path), "f")
    store.keep(answers(1))
    folder = store._storage
    strange = damaged(folder)
    for name, content in strange.items():
        folder.write(name, content)
    folder.make("folder.answers")
    store = opened(Memo(path), "f")
    with caplog.at_level(logging.WARNING, "querymesh"):
        for number in range(2, 20):
            assert known(store, range(9)) == set(range(1, min(number, 9)))
            store.keep(answers(number))
            clock.now += 0.5
    assert known(opened(Memo(path), "f"), range(30)) == set(range(1, 20))
    assert len(caplog.records) <= 2, "one of them is the fresh store's"
    said = caplog.records[0].getMessage()
    assert "cannot be read" in said
    assert "the function is asked instead" in said
    assert {name: folder.read(name) for name in strange} == strange, "they are not ours to remove"


def test_a_folder_that_is_a_file_is_told_once_and_asked_around(tmp_path, clock, caplog):
    (tmp_path / "file").write_text("")
    store = opened(Memo(tmp_path / "file" / "answers"), "f")
    for number in range(5):
        store.keep(answers(number))
        assert known(store, range(5)) == set(range(number + 1)), "it knows what waits"
        clock.now += 6.0
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert sum("cannot be read" in each for each in told) == 1
    assert sum("cannot be written" in each for each in told) == 1


def test_what_could_not_be_written_is_written_when_it_can_be(tmp_path, clock):
    blocked = tmp_path / "answers"
    blocked.write_text("in the way")
    store = opened(Memo(blocked), "f")
    store.keep(answers(1))
    store.keep(answers(2))
    blocked.unlink()
    store.keep(answers(3))
    assert not blocked.exists(), "it waits a while before it tries again"
    clock.now += 5.0
    store.keep({})
    assert known(opened(Memo(blocked), "f"), range(5)) == {1, 2, 3}


def test_what_waits_is_bounded(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(stores, "MOST_WAITING", 10)
    blocked = tmp_path / "answers"
    blocked.write_text("in the way")
    store = opened(Memo(blocked), "f")
    for number in range(25):
        store.keep(answers(number))
    blocked.unlink()
    clock.now += 5.0
    store.keep({})
    assert known(opened(Memo(blocked), "f"), range(30)) == set(range(15, 25))


READ_ONLY = """
import os, sys
from hashlib import blake2b
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.store.answer_store import opened
if os.geteuid() == 0:
    os.seteuid(65534)  # nobody: root may write everywhere
store = opened(Memo(sys.argv[1]), "f")
key = blake2b(b"1", digest_size=16).digest()
print(store.find([key]))
store.keep({b"x" * 16: (True, 1.0)})
store.keep({b"y" * 16: (True, 1.0)})
print(len(store.find([b"x" * 16, b"y" * 16])))
"""


@pytest.mark.parametrize(("mode", "found"), [(0o555, "{b'"), (0o000, "{}")], ids=["read", "locked"])
def test_folders_that_one_may_not_write_or_read_are_told_of_once(mode, found):
    path = Path("/tmp") / f"querymesh-test-{os.getpid()}-{mode}"
    try:
        opened(Memo(path), "f").keep(answers(1))
        (folder,) = path.iterdir()
        os.chmod(next(folder.iterdir()), 0o644)
        os.chmod(folder, mode)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=True
        )
        first, waiting = done.stdout.splitlines()
        assert first.startswith(found)
        assert waiting == "2"
        assert done.stderr.count("cannot be written") == 1
        assert done.stderr.count("cannot be read") == (mode == 0)
        assert len(done.stderr.splitlines()) == 1 + (mode == 0)
    finally:
        os.chmod(folder, 0o700)
        shutil.rmtree(path)


def test_values_that_are_not_of_the_type_are_told_of_and_do_no_harm(path, clock, caplog):
    store = opened(Memo(path), "f", pa.int8())
    for wrong in ("text", 1000, 2**80, [1]):
        store.keep({key(1): (wrong, 1.0)})
        clock.now += 6.0
    store.keep({key(2): (2, 1.0)})
    found = opened(Memo(path), "f", pa.int8()).find([key(1), key(2)])
    assert found == {key(2): (2, 1.0)}
    assert len(caplog.records) == 1
    assert "cannot be written" in caplog.text


def test_old_answers_are_not_found_and_go_when_files_are_made_one(path, clock, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    now = time.time()
    for number in range(8):
        opened(Memo(path), "f").keep(answers(number, at=now - 100.0 * number))
    fresh, lasting = Memo(path, ttl=250.0), Memo(path)
    assert known(opened(lasting, "f"), range(8)) == set(range(8))
    for number in range(8, 14):
        opened(lasting, "f").keep(answers(number, at=now - 100.0 * number))
    store = opened(fresh, "f")
    assert known(store, range(14)) == {0, 1, 2}
    clock.now += 0.5
    known(store, [1])
    assert known(opened(lasting, "f"), range(14)) <= {0, 1, 2}
    store.keep(answers(5, at=now))
    assert 5 in known(store, [5]), "asked again"
    assert 5 in known(opened(fresh, "f"), [5])


def test_of_two_answers_the_newer_is_taken(path):
    opened(Memo(path), "f", pa.string()).keep({key(1): ("new", 20.0)})
    opened(Memo(path), "f", pa.string()).keep({key(1): ("old", 10.0)})
    store = opened(Memo(path), "f", pa.string())
    assert store.find([key(1)]) == {key(1): ("new", 20.0)}
    store.keep({key(1): ("newer", 30.0)})
    assert store.find([key(1)]) == {key(1): ("newer", 30.0)}


def test_several_answers_are_written_as_one_where_more_follow(path, clock):
    store = opened(Memo(path), "f")
    for number in range(30):
        store.keep(answers(number), more=True)
        clock.now += 0.1
    assert len(files_of(store)) <= 7
    store.keep(answers(30))
    assert known(opened(Memo(path), "f"), range(40)) == set(range(31))


def test_a_process_holds_so_much_and_no_more(path, monkeypatch, caplog):
    monkeypatch.setattr(stores, "MOST_HELD_BYTES", 24 * 100)
    memo = Memo(path, size=1)
    for start in range(0, 200, 40):
        opened(memo, "f").keep(answers(*range(start, start + 40)))
    store = opened(memo, "f")
    held = known(store, range(200))
    assert 40 <= len(held) <= 100
    assert sum(each.size_bytes for each in store._held) <= 24 * 100
    assert "cannot be held (they take more than" in caplog.text
    assert len(known(opened(Memo(path), "f"), range(200))) == 200, "a larger memo has room"


WRITES = """
import os, random, sys
from hashlib import blake2b
from querymesh.query.costly.store import answer_store as stores, pace
from querymesh.query.costly.memo import Memo
stores.MOST_FILES, pace.INTERVAL_S, pace.SHARE = 3, 0.0, 0.0
path, me = sys.argv[1], int(sys.argv[2])
key = lambda number: blake2b(b"%d" % number, digest_size=16).digest()
store = stores.opened(Memo(path), "f")
for turn in range(100_000):
    numbers = [me * 1_000_000 + turn * 3 + at for at in range(3)]
    store.keep({key(number): (number % 2 == 0, 1.0) for number in numbers})
    os.write(1, b"".join(b"%d\\n" % number for number in numbers))
    some = [random.randrange(40) * 1_000_000 + random.randrange(300) for _ in range(20)]
    found = store.find([key(number) for number in some])
    assert all(found[key(n)][0] == (n % 2 == 0) for n in some if key(n) in found)
"""


def test_nothing_that_was_kept_is_lost_when_writers_are_killed(tmp_path):
    """Three processes write and make files one; each is killed at some moment, and replaced."""
    path, dice = tmp_path / "answers", random.Random(19)
    alive, logs = [], []

    def start():
        command = [sys.executable, "-c", WRITES, str(path), str(len(logs))]
        logs.append(tmp_path / f"log{len(logs)}")
        with open(logs[-1], "wb") as log:
            alive.append(subprocess.Popen(command, stdout=log, stderr=log))

    for _ in range(3):
        start()
    try:
        for _ in range(6 * SOAK or 4):
            victim = alive.pop(0)
            ended = time.monotonic() + 60
            while os.path.getsize(logs[len(logs) - len(alive) - 1]) == 0:
                assert victim.poll() is None
                assert time.monotonic() < ended
                time.sleep(0.02)
            time.sleep(dice.uniform(0.0, 0.4))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            start()
    finally:
        for process in alive:
            process.kill()
            process.wait()
    said = [line for log in logs for line in log.read_text().splitlines(keepends=True)]
    kept = {int(line) for line in said if line.endswith("\n")}
    assert len(kept) > 50
    store = opened(Memo(path), "f")
    assert known(store, sorted(kept)) == kept
