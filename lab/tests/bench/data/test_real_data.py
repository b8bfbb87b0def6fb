import pytest

from querymesh_lab.bench.data import csic, honeypot, kdd, weblog
from querymesh_lab.bench.data.real_folder import data_folder, holds
from querymesh_lab.bench.guest.cases import security_predicates

folder = data_folder()
needs_csic = pytest.mark.skipif(not holds(folder, csic.FILES), reason="no CSIC requests here")
needs_kdd = pytest.mark.skipif(not holds(folder, [kdd.FILE]), reason="no KDD connections here")
needs_weblog = pytest.mark.skipif(not holds(folder, [weblog.FILE]), reason="no web log here")
needs_honeypot = pytest.mark.skipif(not holds(folder, [honeypot.FILE]), reason="no attacks here")


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


def test_a_log_line_that_is_cut_off_is_left_out():
    assert weblog.parse_line('1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a') is None


@needs_weblog
def test_the_web_log_is_taken_apart():
    table = weblog.requests(folder)
    assert 9_900 < table.num_rows <= 10_000
    assert set(table.column("status").to_pylist()) >= {200, 304, 404}


@needs_weblog
def test_each_web_log_predicate_says_yes_to_some_and_no_to_others():
    table = weblog.requests(folder)
    for predicate in security_predicates.WEBLOG_ROWS:
        _says_both(table, predicate)


@needs_honeypot
def test_attacks_have_no_port_where_the_protocol_has_none():
    table = honeypot.attacks(folder)
    assert table.num_rows == 451_581
    assert table.column("dpt").null_count == 44_811
    assert str(table.schema.field("datetime").type) == "timestamp[us, tz=UTC]"


@needs_honeypot
def test_each_honeypot_predicate_says_yes_to_some_and_no_to_others():
    table = honeypot.attacks(folder, 4000)
    for predicate in security_predicates.HONEYPOT_ROWS:
        _says_both(table, predicate)


@pytest.mark.parametrize(
    ("files", "read", "predicates"),
    [
        (csic.FILES, csic.requests, security_predicates.CSIC_ARRAYS),
        ([kdd.FILE], kdd.connections, security_predicates.KDD_ARRAYS),
        ([weblog.FILE], weblog.requests, security_predicates.WEBLOG_ARRAYS),
        ([honeypot.FILE], honeypot.attacks, security_predicates.HONEYPOT_ARRAYS),
    ],
    ids=["csic", "kdd", "weblog", "honeypot"],
)
def test_each_predicate_of_arrays_says_yes_to_some_and_no_to_others(files, read, predicates):
    if not holds(folder, files):
        pytest.skip("these data are not here")
    table = read(folder, 4000).combine_chunks()
    for predicate in predicates:
        verdicts = predicate.fn(*(table.column(c).chunk(0) for c in predicate.columns))
        assert set(verdicts.to_pylist()) == {True, False}, predicate.name
