"""How the states of a join are indexed: one class for each kind, as `qm.run(..., index=...)` takes.

`index="amri"` is short for `index=qm.indices.Amri()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from querymesh.index.tune.indexing import Indexing
from querymesh.options import check_integer, check_kind, check_short_name

PAPER = Indexing(
    assessment="cdia-highest",
    schedule="hybrid",
    migration="nothing",
    threshold=0.1,
    error=0.05,
    window=60_000,
    every=100_000,
    worth=0.0,
    memory=0.0,
)
"""As AMRI § 9 has it, of its Figures 8, 9a and 9b."""


@dataclass(frozen=True, kw_only=True)
class Index:
    """A kind of index with its settings; `indexing` has every choice of AMRI at once."""

    kind: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ()
    """The options of this kind, which go before `indexing`."""

    indexing: Indexing = field(default_factory=Indexing)

    def __post_init__(self) -> None:
        check_kind("indexing", self.indexing, Indexing, "querymesh.indices")
        given = {name: getattr(self, name) for name in self.own}
        chosen = {name: value for name, value in given.items() if value is not None}
        for name, value in chosen.items():
            check_integer(name, value, least=0)
        object.__setattr__(self, "indexing", replace(self.indexing, **chosen))

    @property
    def chooses(self) -> bool:
        """Whether what is indexed depends on what is asked while it runs."""
        return True


@dataclass(frozen=True, kw_only=True)
class Hash(Index):
    """A hash index for each access pattern: the fastest, and the largest.

    - `hashes`: how many a state has at most, for its most frequent patterns; unless told, one for
      each pattern that is asked
    """

    kind: ClassVar[str] = "hash"
    own: ClassVar[tuple[str, ...]] = ("hashes",)

    hashes: int | None = None

    @property
    def chooses(self) -> bool:
        """Only a limited number must be chosen."""
        return self.indexing.hashes is not None


@dataclass(frozen=True, kw_only=True)
class Bitmap(Index):
    """One bit-address index a state, chosen once, after its first search requests.

    - `bits`: of each state's index; unless told, as many as its partitions have rows for
    - `budget`: bits for all states together, divided where they save most
    """

    kind: ClassVar[str] = "bitmap"
    own: ClassVar[tuple[str, ...]] = ("bits", "budget")

    bits: int | None = None
    budget: int | None = None


@dataclass(frozen=True, kw_only=True)
class Amri(Bitmap):
    """One bit-address index a state that follows the access patterns (AMRI), with the options of
    `Bitmap`."""

    kind: ClassVar[str] = "amri"

    @classmethod
    def paper(cls, **options: Any) -> Amri:
        """With the settings of AMRI § 9: compact counts of the hybrid kind, looked at now and then,
        and rows stored already left as they are."""
        return cls(indexing=PAPER, **options)


@dataclass(frozen=True, kw_only=True)
class Auto(Index):
    """Whichever of hash and bit-address indices costs less, by what this machine takes for each."""

    kind: ClassVar[str] = "auto"


KINDS: Mapping[str, type[Index]] = {each.kind: each for each in (Hash, Bitmap, Amri, Auto)}


def index_of(given: str | Index) -> Index:
    """The index that was asked for, by name with its defaults or as it is."""
    if isinstance(given, Index):
        return given
    check_short_name("index", given, KINDS, "indices.Amri(bits=12)")
    return KINDS[given]()
