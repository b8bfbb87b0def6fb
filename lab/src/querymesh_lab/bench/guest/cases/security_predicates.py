"""Python conditions on real data: of the values of one row, and of whole Arrow arrays."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh_lab.bench.data import csic, kdd
from querymesh_lab.bench.data.row_predicate import RowPredicate
from querymesh_lab.bench.guest.condition import ArrayPredicate

compute: Any = pc
"""Arrow's functions are made when it is imported: type checkers do not know them."""

DECODED_ATTACK, STRANGE_VALUE, _, _ = csic.PREDICATES
_, ODD_BYTES, FAR_FROM_TYPICAL, _ = kdd.PREDICATES


def _false_for_null(verdicts: pa.Array) -> pa.Array:
    return compute.fill_null(verdicts, False)


# CSIC


def attack_words(query: pa.Array) -> pa.Array:
    """Words and signs of injection, in the text and in its usual encodings."""
    pattern = "(?i)(select|union|drop|insert|script|waitfor|passwd|%27|%3c|--|set-cookie)"
    return compute.match_substring_regex(query, pattern)


def many_signs(query: pa.Array) -> pa.Array:
    """More than eight signs that are neither letters, digits nor what joins parameters."""
    return compute.greater(compute.count_substring_regex(query, "[^a-z0-9=&+]"), 8)


def long_value(query: pa.Array) -> pa.Array:
    """Some parameter is longer than any form allows."""
    return compute.match_substring_regex(query, "=[^&]{32,}")


def writing_page(path: pa.Array, query: pa.Array) -> pa.Array:
    """A page that takes input, and a parameter that changes something."""
    page = compute.match_substring_regex(path, "[.](jsp|php|asp)$")
    return compute.and_(page, compute.match_substring_regex(query, "(pwd|precio|cantidad|modo)="))


CSIC_ARRAYS = (
    ArrayPredicate("attack_words", ("query",), attack_words),
    ArrayPredicate("many_signs", ("query",), many_signs),
    ArrayPredicate("long_value", ("query",), long_value),
    ArrayPredicate("writing_page", ("path", "query"), writing_page),
)


# KDD


def no_flood(count: pa.Array, srv_count: pa.Array, same: pa.Array, serror: pa.Array) -> pa.Array:
    """The logistic score of the last two seconds, as `kdd.no_flood` has it."""
    c, s, a, e = (
        np.asarray(column, dtype=np.float64) for column in (count, srv_count, same, serror)
    )
    return pa.array(1 / (1 + np.exp(4.0 - 0.02 * c - 0.008 * s - 0.5 * a - 2.5 * e)) < 0.5)


def unlike_sizes(src_bytes: pa.Array, dst_bytes: pa.Array) -> pa.Array:
    """Far more bytes one way than the other."""
    sent, received = (np.log1p(np.asarray(c, dtype=np.float64)) for c in (src_bytes, dst_bytes))
    return pa.array(np.abs(sent - received) > 3.0)


def far_from_typical(*rates: pa.Array) -> pa.Array:
    """The host's recent traffic is near none of the typical centres."""
    same, different, port, serror, rerror = (np.asarray(r, dtype=np.float64) for r in rates)
    here = np.stack([different, same, port, 1 - serror, rerror], axis=1)
    nearest = np.full(len(same), np.inf)
    for centre in kdd.TYPICAL:
        nearest = np.minimum(nearest, np.abs(here - np.array(centre)).sum(axis=1))
    return pa.array(nearest > 0.55)


KDD_ARRAYS = (
    ArrayPredicate("no_flood", kdd.PREDICATES[0].columns, no_flood),
    ArrayPredicate("unlike_sizes", ("src_bytes", "dst_bytes"), unlike_sizes),
    ArrayPredicate("far_from_typical", FAR_FROM_TYPICAL.columns, far_from_typical),
)


# Web log

_TRAP = re.compile(r"(\.\./|;|\||<|>|%00|\bselect\b|\bunion\b|\.(?:php|cgi|asp|env|git))", re.I)


CRAWLERS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "66.249.64.0/19", "46.105.0.0/16", "157.55.0.0/16", "180.76.0.0/16", "199.16.156.0/22",
        "65.55.0.0/16", "100.43.80.0/20", "208.115.96.0/19",
    )
)  # fmt: skip
"""Networks from which search engines come."""


def no_crawler(ip: str) -> bool:
    """An address of version 4 that no search engine comes from."""
    try:
        address = ipaddress.IPv4Address(ip)
    except ValueError:
        return False
    return not any(address in network for network in CRAWLERS)


def deep_path(path: str) -> bool:
    """Many parts, or one that is suspicious once decoded."""
    text = unquote(unquote(path))
    return text.count("/") > 3 or _TRAP.search(text) is not None


def robot(agent: str) -> bool:
    """The program says itself that nobody sits before it."""
    words = set(re.findall(r"[a-z]+", agent.lower()))
    return not words.isdisjoint({"bot", "crawler", "spider", "curl", "wget", "java", "googlebot"})


def refused(path: pa.Array, status: pa.Array) -> pa.Array:
    """Not served as asked, or asked for a program."""
    program = compute.match_substring_regex(path, "[.](php|cgi|asp|env|git)")
    return compute.or_(compute.greater_equal(status, 300), program)


def says_robot(agent: pa.Array) -> pa.Array:
    """The program's name is a robot's."""
    return compute.match_substring_regex(agent, "(?i)(bot|crawl|spider|curl|wget|java)")


def no_referrer(referrer: pa.Array) -> pa.Array:
    """Nobody sent it there."""
    return compute.equal(referrer, "-")


NO_CRAWLER = RowPredicate("no_crawler", ("ip",), no_crawler)
DEEP_PATH = RowPredicate("deep_path", ("path",), deep_path)
WEBLOG_ROWS = (NO_CRAWLER, DEEP_PATH, RowPredicate("robot", ("agent",), robot))
WEBLOG_ARRAYS = (
    ArrayPredicate("says_robot", ("agent",), says_robot),
    ArrayPredicate("no_referrer", ("referrer",), no_referrer),
    ArrayPredicate("refused", ("path", "status"), refused),
)


# Honeypot

LISTED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "1.0.0.0/8", "14.0.0.0/8", "27.0.0.0/8", "36.0.0.0/8", "42.0.0.0/8", "58.0.0.0/7",
        "60.0.0.0/8", "61.0.0.0/8", "101.0.0.0/8", "110.0.0.0/7", "112.0.0.0/5", "120.0.0.0/6",
        "175.0.0.0/8", "180.0.0.0/8", "182.0.0.0/7", "202.0.0.0/7", "210.0.0.0/7", "218.0.0.0/7",
        "220.0.0.0/6",
    )
)  # fmt: skip
"""Networks that somebody watches already."""


def unlisted_source(src: int) -> bool:
    """The address is in none of the networks on the list."""
    address = ipaddress.IPv4Address(src)
    return not any(address in network for network in LISTED)


def odd_source_port(spt: int | None, dpt: int | None) -> bool:
    """A source port that no ordinary system picks, towards one that is not its own."""
    if spt is None or dpt is None:
        return False
    return (spt < 1024 or str(spt)[-3:] == "000" or spt in (6000, 12200)) and spt != dpt


def worth_a_look(host: str, proto: str, dpt: int | None) -> bool:
    """A service that the honeypot of this place pretends to have."""
    if proto != "TCP" or dpt is None:
        return False
    place = host.partition("-")[2]
    served = {"tokyo": (22, 445, 1433), "singapore": (22, 3306, 3389), "oregon": (22, 80, 1433)}
    return dpt in served.get(place, (22, 23, 80, 445, 3389))


def night(datetime: pa.Array) -> pa.Array:
    """Between midnight and six."""
    return compute.less(compute.hour(datetime), 6)


def remote_service(dpt: pa.Array) -> pa.Array:
    """A port by which one gets in."""
    port = compute.cast(dpt, pa.int64())  # pandas makes floats of numbers with NULLs
    return compute.is_in(port, value_set=pa.array([22, 23, 135, 445, 1433, 3306, 3389]))


def repeated_octets(src: pa.Array) -> pa.Array:
    """An address of which two neighbouring parts are near each other, as scanners' lists have."""
    at = np.asarray(src, dtype=np.int64)
    parts = np.stack([(at >> shift) & 255 for shift in (24, 16, 8, 0)], axis=1)
    return pa.array((np.abs(np.diff(parts, axis=1)) < 24).any(axis=1))


def low_source_port(spt: pa.Array) -> pa.Array:
    """A source port that needs rights, or one that tools set by hand."""
    low = compute.or_(compute.less(spt, 1024), compute.equal(spt, 6000))
    return _false_for_null(low)


UNLISTED_SOURCE = RowPredicate("unlisted_source", ("src",), unlisted_source)
ODD_SOURCE_PORT = RowPredicate("odd_source_port", ("spt", "dpt"), odd_source_port)
HONEYPOT_ROWS = (
    UNLISTED_SOURCE,
    ODD_SOURCE_PORT,
    RowPredicate("worth_a_look", ("host", "proto", "dpt"), worth_a_look),
)
HONEYPOT_ARRAYS = (
    ArrayPredicate("night", ("datetime",), night),
    ArrayPredicate("remote_service", ("dpt",), remote_service),
    ArrayPredicate("repeated_octets", ("src",), repeated_octets),
    ArrayPredicate("low_source_port", ("spt",), low_source_port),
)
