import pytest

from querymesh_lab.bench.data import csic, kdd
from querymesh_lab.bench.data.real_folder import data_folder, holds

folder = data_folder()
needs_csic = pytest.mark.skipif(not holds(folder, csic.FILES), reason="no CSIC requests here")
needs_kdd = pytest.mark.skipif(not holds(folder, [kdd.FILE]), reason="no KDD connections here")


def test_a_request_line_is_taken_apart():
    parsed = csic.parse_request("post http://localhost:8080/shop/")
    assert parsed == ("post", "/shop/", "", "", 0, 0)


@pytest.mark.parametrize(
    ("query", "attack"),
    [
        ("id=2&cantidad=%27%3B+DROP+TABLE+usuarios%3B+SELECT+*+FROM+datos", True),
        ("nombre=%253Cscript%253Ealert(1)", True),
        ("id=3&nombre=vino+rioja&precio=100", False),
        ("", False),
    ],
)
def test_attacks_are_seen_through_their_encoding(query, attack):
    assert csic.decoded_attack(query) is attack


@needs_csic
def test_csic_has_every_request_of_both_files():
    table = csic.requests(folder)
    assert table.num_rows == 61_065
    assert set(table.column("method").to_pylist()) == {"get", "post", "put"}


@needs_csic
def test_each_csic_predicate_says_yes_to_some_and_no_to_others():
    table = csic.requests(folder, 4000)
    for predicate in csic.PREDICATES:
        _says_both(table, predicate)


@needs_kdd
def test_each_kdd_predicate_says_yes_to_some_and_no_to_others():
    table = kdd.connections(folder, 4000)
    assert len(table.column_names) == 42
    for predicate in kdd.PREDICATES:
        _says_both(table, predicate)


def _says_both(table, predicate):
    columns = [table.column(name).to_pylist() for name in predicate.columns]
    verdicts = {predicate.fn(*row) for row in zip(*columns, strict=True)}
    assert verdicts == {True, False}, predicate.name
