"""Functions are told apart by their code and the plain values it uses, the same everywhere."""

import functools
import os
import subprocess
import sys
import textwrap
import types

import pytest

from querymesh.query.costly.store.fingerprint import fingerprint


def made(source, name="ask", module="users"):
    """A function of a module with such a source."""
    room = types.ModuleType(module)
    exec(compile(textwrap.dedent(source), f"{id(room)}.py", "exec"), room.__dict__)
    return room.__dict__[name]


BASE = '''
THRESHOLD = 0.5
calls = 0
def rate(text): return len(text) * 1.0
def ask(text, model="small", *, words={"a", "b", "c"}):
    """Ask."""
    global calls
    calls += 1
    return [rate(each) > THRESHOLD and each not in {"x", "y"} for each in text]
'''

EDITS = {
    "a constant": ("1.0", "2.0"),
    "the kind of a constant": ("1.0", "1"),
    "a global": ("0.5", "0.6"),
    "a default": ("small", "large"),
    "a helper": ("len(text)", "hash(text)"),
    "an operator": ("> THRESHOLD", ">= THRESHOLD"),
    "inside a comprehension": ("not in", "in"),
    "a set of constants": ('"x", "y"', '"x", "z"'),
    "a name": ("len(text)", "len(model)"),
    "its own name for a helper": ("rate", "price"),
}


@pytest.mark.parametrize(("old", "new"), EDITS.values(), ids=EDITS)
def test_an_edited_function_is_another(old, new):
    assert old in BASE
    assert fingerprint(made(BASE)) != fingerprint(made(BASE.replace(old, new)))


def test_the_same_source_is_the_same_function_wherever_it_stands():
    assert fingerprint(made(BASE)) == fingerprint(made("\n\n# moved\n" + BASE))


def test_what_the_function_counts_does_not_make_it_another():
    ask = made(BASE)
    before = fingerprint(ask)
    for _ in range(100):
        ask(["a", "x"])
    assert ask.__globals__["calls"] == 100
    assert fingerprint(ask) == before, "nor does that Python made it faster meanwhile"


def test_what_a_function_closes_over_tells_it_from_its_sisters():
    def above(limit):
        return lambda number: number > limit

    assert fingerprint(above(1)) == fingerprint(above(1))
    assert len({fingerprint(above(limit)) for limit in (1, 2, 1.0, True, "1", (1,), None)}) == 7
    assert len({fingerprint(above(above(limit))) for limit in (1, 2)}) == 2

    def counting():
        calls = 0

        def ask(text):
            nonlocal calls
            calls += 1
            return True

        return ask

    ask = counting()
    before = fingerprint(ask)
    ask("")
    assert fingerprint(ask) == before


def test_decorated_and_partial_functions_are_what_they_wrap():
    def cached(limit):
        @functools.lru_cache
        def ask(number):
            return number > limit

        return ask

    def traced(limit):
        inner = cached(limit)

        @functools.wraps(inner)
        def ask(number):
            return inner(number)

        return ask

    def ask(number, limit):
        return number > limit

    for make in (cached, traced, lambda limit: functools.partial(ask, limit=limit)):
        assert fingerprint(make(1)) == fingerprint(make(1))
        assert fingerprint(make(1)) != fingerprint(make(2))


CLASS = """
class Asking:
    def __init__(self, model):
        self.model, self.calls, self.session = model, 0, object()
    def __call__(self, text):
        self.calls += 1
        return self.rated(text)
    def rated(self, text):
        return len(text) > 3
"""


def test_an_object_is_its_class_and_what_it_was_made_with():
    kind = made(CLASS, "Asking")
    ask = kind("small")
    before = fingerprint(ask)
    ask("text")
    assert fingerprint(ask) == before == fingerprint(kind("small"))
    assert fingerprint(kind("large")) != before
    assert fingerprint(made(CLASS.replace("> 3", "> 4"), "Asking")("small")) != before
    assert fingerprint(ask.rated) == fingerprint(kind("small").rated)
    assert fingerprint(ask.rated) != fingerprint(kind("large").rated)


def test_what_is_not_the_users_is_not_looked_into():
    assert fingerprint(len) != fingerprint(abs)
    assert fingerprint(str.lower) != fingerprint(str.upper)
    uses = "import textwrap\nfrom textwrap import dedent\ndef ask(text): return dedent(text)"
    assert fingerprint(made(uses)) == fingerprint(made(uses))
    known = "known = [1]\ndef ask(number): return number in known"
    assert fingerprint(made(known)) == fingerprint(made(known.replace("[1]", "[2]")))


def test_functions_that_call_each_other_come_to_an_end():
    both = """
    def other(n): return ask(n - 1)
    def ask(n): return n if n < 1 else other(n)
    """
    assert fingerprint(made(both)) == fingerprint(made(both))
    assert fingerprint(made(both)) != fingerprint(made(both.replace("n - 1", "n - 2")))


TRAVELS = """
import sys
from pyspark import cloudpickle
from querymesh.query.costly.store.fingerprint import fingerprint
LIMIT, WORDS, text = 3, ("a", "b", "a"), "unused"
def rated(one): return one.text in {"x", "y", "z"} or len(one) > LIMIT
def make(model):
    def ask(one, default=(1, 2)): return rated(one) and model and (1, 2) != WORDS
    return ask
if len(sys.argv) == 1:
    ask = make("small")
    print(fingerprint(ask), cloudpickle.dumps(ask).hex())
else:
    ask = cloudpickle.loads(bytes.fromhex(sys.stdin.read()))
    print(fingerprint(ask))
"""


def test_a_function_that_has_travelled_to_a_task_is_the_same():
    def run(seed, *arguments, given=""):
        return subprocess.run(
            [sys.executable, "-c", TRAVELS, *arguments],
            env={**os.environ, "PYTHONHASHSEED": seed},
            input=given, capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip

    here, pickled = run("1")
    assert run("2", "task", given=pickled) == [here]
    assert run("3")[0] == here
