"""The tool that looks for missing tests: the changes it makes, and that it puts modules back."""

import importlib.util
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[2] / "tools" / "mutate.py"
_SPEC = importlib.util.spec_from_file_location("mutate", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
mutate = sys.modules["mutate"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(mutate)


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("x = a < b <= c", {"x = a <= b <= c", "x = a < b < c"}),
        ("x = a is None", {"x = a is not None"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = -a", {"x = a"}),
        ("x = a + b", {"x = a - b"}),
        ("x += a", {"x -= a"}),
        ("x = 7", {"x = 8", "x = 6"}),
        ("x = True", {"x = False"}),
        ("x = max(a, b)", {"x = min(a, b)"}),
        ("x = np.argmin(a)", {"x = np.argmax(a)"}),
        ("if a:\n    b()", {"if not a:\n    b()"}),
        ("x = b if a else c", {"x = b if not a else c"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if not a]"}),
        ("def f():\n    return a", {"def f():\n    return None"}),
        ("def f(x: int | None = None) -> A | B:\n    pass", set()),
        ("raise E(f'{a + 1}' + b)", set()),
        ('x = "text" + a', set()),
        ("Alias = Left | Right | None", set()),
    ],
)
def test_small_wrong_changes(code: str, changed: set[str], tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(code)
    assert {mutant.text().strip() for mutant in mutate.mutants_of(module)} == changed


def test_the_real_module_is_put_back_whatever_happens(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("x = 1  # with a comment\n")
    before = module.stat().st_mtime_ns
    first, *_ = mutate.mutants_of(module)

    def interrupted() -> None:
        with mutate.in_place(first):
            assert module.read_text() == "x = 2\n"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert module.read_text() == "x = 1  # with a comment\n"
    assert module.stat().st_mtime_ns == before
