"""What a Python worker keeps from one task to the next."""

import pytest

from querymesh.worker_cache import WorkerCache


def test_a_value_is_made_once_and_found_again() -> None:
    cache: WorkerCache[str, list[int]] = WorkerCache(2)
    made = cache.get_or_make("a", list)
    assert cache.get_or_make("a", lambda: [1]) is made
    assert cache.get("a") is made
    assert cache.get("b") is None
    assert len(cache) == 1


def test_the_longest_unused_is_forgotten_first() -> None:
    cache: WorkerCache[str, int] = WorkerCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get_or_make("a", lambda: 9) == 1
    cache.put("c", 3)
    assert list(cache) == ["a", "c"], "a was used after b"
    assert cache.get_or_make("b", lambda: 4) == 4, "what was forgotten is made anew"
    assert list(cache) == ["c", "b"]


def test_a_value_that_is_put_again_takes_the_place_of_the_old() -> None:
    cache: WorkerCache[str, int] = WorkerCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    assert (cache.get("a"), list(cache)) == (3, ["b", "a"])


@pytest.mark.parametrize("nothing", [None, 0, ""])
def test_a_value_may_be_nothing_and_is_not_made_again(nothing: object) -> None:
    cache: WorkerCache[str, object] = WorkerCache(1)
    assert cache.get_or_make("a", lambda: nothing) == nothing
    assert cache.get_or_make("a", lambda: "again") == nothing


def test_what_cannot_be_made_is_not_kept() -> None:
    cache: WorkerCache[str, int] = WorkerCache(1)
    cache.put("a", 1)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("b", lambda: 1 // 0)
    assert list(cache) == ["a"]


def test_a_worker_can_forget_everything() -> None:
    cache: WorkerCache[str, int] = WorkerCache(3)
    cache.put("a", 1)
    cache.clear()
    assert (len(cache), cache.get("a")) == (0, None)
