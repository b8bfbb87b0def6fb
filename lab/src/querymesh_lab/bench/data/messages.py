"""Messages, and four predicates on them in plain Python: about 2, 37, 42 and 45 µs a row.

Each does what such functions do in earnest: match a sender, check a card number, weigh the words,
compare a domain with a brand letter by letter. The cost lies in the work, not in a sleep, and is
the same for either verdict. Costs far apart would leave little to any order (run the cheap one
first), which is why three of them are near each other: that is where orders matter.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pyarrow as pa

from querymesh_lab.bench.data.classed import ClassedRows, PassRates, describing_columns, draw
from querymesh_lab.bench.data.row_predicate import RowPredicate

BRAND = "northwind-bankings"
FAR_LETTERS = "cfjlmpqsuvxyz"
CARD_DIGITS = 60
WORDS = 14
GOOD = tuple(f"fin{k:02}" for k in range(30))
BAD = tuple(f"bad{k:02}" for k in range(30))
WEIGHTS = {**dict.fromkeys(GOOD, 1), **dict.fromkeys(BAD, -1)}
ENDINGS = (
    "ations", "ation", "ments", "ment", "ness", "ible", "able", "ings", "ing", "ers", "er", "ies",
    "ied", "ed", "ly", "es", "s", "al", "ic", "ous", "ive", "ful", "ism", "ist", "ity", "dom",
)  # fmt: skip
KNOWN_HOSTS = frozenset({"mail.example", "post.example", "relay.example"})
BLOCKED = frozenset({bytes(16)})

_SENDER = re.compile(r"([a-z]+)\.([a-z]+)(\d+)@([a-z.]+)$")


def known_sender(sender: str) -> bool:
    """Whether the address is well formed, its host one of ours, and it is not blocked."""
    match = _SENDER.match(sender.strip().lower())
    if match is None or match.group(4) not in KNOWN_HOSTS:
        return False
    return not blocked(sender)


def blocked(sender: str) -> bool:
    """Whether the address is on the block list, which is kept as digests."""
    return hashlib.blake2b(sender.encode(), digest_size=16).digest() in BLOCKED


def valid_card(digits: str) -> bool:
    """Luhn's check over a string of digits."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        total += sum(map(int, str(int(digit) * (1 + place % 2))))
    return total % 10 == 0


def good_tone(words: str) -> bool:
    """Whether good words outweigh bad ones."""
    score = 0
    for word in words.split():
        plain = word.strip(".,;").lower()
        for ending in ENDINGS:
            if plain.endswith(ending):
                plain = plain[: -len(ending)]
        score += WEIGHTS.get(plain, 0)
    return score > 0


def lookalike_domain(domain: str) -> bool:
    """Whether the domain is within three edits of the brand (Levenshtein, by rows)."""
    before = list(range(len(BRAND) + 1))
    for row, letter in enumerate(domain, start=1):
        here = [row]
        left = row
        for column, other in enumerate(BRAND):
            best = before[column] if letter == other else before[column] + 1
            above = before[column + 1] + 1
            if above < best:
                best = above
            if left + 1 < best:
                best = left + 1
            here.append(best)
            left = best
        before = here
    return before[-1] <= 3


PREDICATES: tuple[RowPredicate, ...] = (
    RowPredicate("known_sender", ("sender",), known_sender),
    RowPredicate("valid_card", ("card",), valid_card),
    RowPredicate("good_tone", ("words",), good_tone),
    RowPredicate("lookalike_domain", ("domain",), lookalike_domain),
)
"""In the order of the columns of a design's rates."""

RELATION = "Messages"


def messages(rows: int, rates: PassRates, seed: int = 0) -> ClassedRows:
    """Messages whose verdicts follow the pass rates by class."""
    rng = np.random.default_rng(seed)
    classes, passes = draw(rates, rows, rng)
    columns = describing_columns(classes, rng)
    columns["sender"] = _senders(passes[:, 0], rng)
    columns["card"] = _cards(passes[:, 1], rng)
    columns["words"] = _words(passes[:, 2], rng)
    columns["domain"] = _domains(passes[:, 3], rng)
    return ClassedRows(pa.table(columns), classes, passes)


def _senders(known: np.ndarray, rng: np.random.Generator) -> pa.Array:
    numbers = rng.integers(1, 10_000, len(known))
    hosts = np.where(known, "mail.example", "mass.invalid")
    return pa.array([f"ann.lee{n}@{host}" for n, host in zip(numbers, hosts, strict=True)])


def _cards(valid: np.ndarray, rng: np.random.Generator) -> pa.Array:
    digits = rng.integers(0, 10, (len(valid), CARD_DIGITS))
    doubled = digits[:, -2::-2] * 2
    rest = (np.where(doubled > 9, doubled - 9, doubled)).sum(axis=1) + digits[:, -3::-2].sum(axis=1)
    wrong = np.where(valid, 0, rng.integers(1, 10, len(valid)))
    digits[:, -1] = (wrong - rest) % 10
    text = (digits + ord("0")).astype(np.uint8).tobytes().decode("ascii")
    return pa.array([text[i : i + CARD_DIGITS] for i in range(0, len(text), CARD_DIGITS)])


def _words(good: np.ndarray, rng: np.random.Generator) -> pa.Array:
    vocabulary = np.array(GOOD + BAD)
    majority = WORDS // 2 + rng.integers(1, WORDS // 2, len(good))
    of_good = np.where(good, majority, WORDS - majority)
    is_bad = np.arange(WORDS) >= of_good[:, None]
    chosen = rng.integers(0, len(GOOD), is_bad.shape) + len(GOOD) * is_bad
    mixed = rng.permuted(chosen, axis=1)
    return pa.array([" ".join(row) for row in vocabulary[mixed].tolist()])


def _domains(near: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """Near ones differ from the brand in at most two letters, far ones in every one."""
    letters = np.tile(np.array(list(BRAND)), (len(near), 1))
    strange = rng.choice(list(FAR_LETTERS), letters.shape)
    for _ in range(2):
        place = rng.integers(0, letters.shape[1], len(near))
        letters[np.arange(len(near)), place] = strange[np.arange(len(near)), place]
    letters = np.where(near[:, None], letters, strange)
    return pa.array(["".join(row) for row in letters.tolist()])
