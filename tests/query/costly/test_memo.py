"""What people may say about remembering."""

import os
from pathlib import Path

import pytest

from querymesh.errors import OptionError
from querymesh.query.costly.memo import Memo, memo_of


def test_a_path_is_one_that_every_process_understands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert Memo("answers").path == str(tmp_path / "answers")
    assert Memo("~/answers").path == "/home/someone/answers"
    assert Memo(tmp_path / "answers") == Memo(str(tmp_path / "answers"))
    for address in ("s3://bucket/answers", "s3a://bucket/answers", "file:///tmp/answers"):
        assert Memo(address).path == address


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"path": ""}, "path is a folder or an address, not ''"),
        ({"path": b"/tmp"}, "path is a folder"),
        ({"path": 3}, "path is a folder"),
        ({"size": 0}, "memo: size must be at least 1"),
        ({"size": 1.5}, "memo: size must be an integer"),
        ({"ttl": 0}, "memo: ttl is seconds above 0, not 0"),
        ({"ttl": -1.0}, "ttl is seconds above 0"),
        ({"ttl": float("nan")}, "ttl is seconds above 0"),
        ({"ttl": float("inf")}, "ttl is seconds above 0"),
        ({"ttl": "1h"}, "memo: ttl must be a number"),
        ({"version": 2}, "version is a text, not 2"),
    ],
)
def test_what_is_no_option_is_refused(wrong, said):
    with pytest.raises(OptionError, match=said):
        Memo(**wrong)


def test_a_memo_is_given_in_four_ways():
    given = Memo(size=3)
    assert memo_of("f", given) is given
    assert memo_of("f", True) == Memo()
    assert memo_of("f", False) is False
    assert memo_of("f", None) is None
    with pytest.raises(OptionError, match=r"predicate f: memo is a querymesh.Memo.* not PosixPath"):
        memo_of("f", Path(os.sep))
