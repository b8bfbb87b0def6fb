"""The kinds of index and their options."""

from dataclasses import fields

import pytest

import querymesh as qm
from querymesh.index.tune.indexing import INDEXES, Indexing
from querymesh.index.tune.kinds import KINDS, PAPER, Amri, Auto, Bitmap, Hash, Index, index_of

OPTIONS = {Hash: {"hashes"}, Bitmap: {"bits", "budget"}, Amri: {"bits", "budget"}, Auto: set()}


def test_each_kind_that_can_be_tuned_has_a_class_by_its_name() -> None:
    assert set(KINDS) == set(INDEXES)
    for name, kind in KINDS.items():
        assert kind.kind == name
        assert index_of(name) == kind()
        assert index_of(name).indexing == Indexing()
        assert getattr(qm.indices, kind.__name__) is kind


def test_an_index_that_was_made_is_taken_as_it_is() -> None:
    made = Amri(bits=5)
    assert index_of(made) is made


def test_an_unknown_index_lists_the_known_ones() -> None:
    with pytest.raises(qm.OptionError, match=r"did you mean 'amri'.* amri, auto, bitmap, hash"):
        index_of("amrii")
    for wrong in (None, 3, Amri):
        with pytest.raises(qm.OptionError, match=r"a name or one of querymesh\.indices, not"):
            index_of(wrong)


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_kind_takes_its_own_options_and_no_others(kind: type[Index]) -> None:
    assert {field.name for field in fields(kind)} == OPTIONS[kind] | {"indexing"}
    for name in {"hashes", "bits", "budget"}:
        if name in OPTIONS[kind]:
            assert getattr(kind(**{name: 3}).indexing, name) == 3
            continue
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            kind(**{name: 3})


def test_the_options_of_a_kind_go_before_indexing() -> None:
    told = Amri(bits=3, indexing=Indexing(bits=9, budget=7, seed=4)).indexing
    assert (told.bits, told.budget, told.seed) == (3, 7, 4)
    assert Hash(indexing=Indexing(hashes=2)).indexing.hashes == 2
    assert Hash(hashes=0, indexing=Indexing(hashes=2)).indexing.hashes == 0, "none is not unsaid"


def test_only_hash_indices_for_every_pattern_leave_nothing_to_choose() -> None:
    assert not Hash().chooses
    assert Hash(hashes=2).chooses
    assert Hash(indexing=Indexing(hashes=2)).chooses
    assert all(kind().chooses for kind in (Bitmap, Amri, Auto))


def test_the_paper_s_settings_are_one_call() -> None:
    assert Amri.paper().indexing == PAPER
    paper = Amri.paper(bits=12).indexing
    assert (paper.bits, paper.assessment, paper.schedule) == (12, "cdia-highest", "hybrid")


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        (Hash, {"hashes": -1}, "hashes must be at least 0, not -1"),
        (Hash, {"hashes": "two"}, "hashes must be an integer, not 'two'"),
        (Bitmap, {"bits": 99}, r"bits=99\): a state has 0 to"),
        (Amri, {"budget": 2.5}, "budget must be an integer, not 2.5"),
        (Auto, {"indexing": {"bits": 3}}, r"indexing is a querymesh\.indices\.Indexing, not dict"),
    ],
)
def test_a_wrong_value_is_an_option_error_and_a_value_error(
    kind: type[Index], wrong: dict[str, object], said: str
) -> None:
    with pytest.raises(qm.OptionError, match=said) as told:
        kind(**wrong)
    assert isinstance(told.value, ValueError)
