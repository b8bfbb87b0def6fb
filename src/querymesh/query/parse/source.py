"""Where in a query's text its parts stand, so that what we do not read can be handed on as written.

sqlglot's trees do not tell where a part begins and ends, and its own spelling of a tree is another
text than the user's: `CAST` would come back as `TRY_CAST`. So parts are found among the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import TokenType

from querymesh.query.expr import part_name
from querymesh.query.parse.syntax import tokenize

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_CLAUSES = {
    TokenType.SELECT,
    TokenType.FROM,
    TokenType.ON,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
}
_ENDS = {
    *(TokenType.JOIN, TokenType.INNER, TokenType.CROSS, TokenType.NATURAL, TokenType.LEFT),
    *(TokenType.RIGHT, TokenType.FULL, TokenType.LATERAL, TokenType.USING, TokenType.SEMICOLON),
    *(TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY),
    *(TokenType.LIMIT, TokenType.QUALIFY),
}
"""What ends a condition or a list of outputs and begins none."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some tokens of a text, one after the other: from `first` up to, not including, `end`."""

    first: int
    end: int


@dataclass(frozen=True)
class Clauses:
    """Where the parts of a SELECT stand: each entry of a list, each condition whole."""

    outputs: list[Span] = field(default_factory=list)
    joins: list[Span] = field(default_factory=list)
    where: list[Span] = field(default_factory=list)
    groups: list[Span] = field(default_factory=list)
    having: list[Span] = field(default_factory=list)


class Source:
    """The text of a query, by its tokens."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = tokenize(sql)
        self._at = {token.start: number for number, token in enumerate(self.tokens)}

    def text(self, span: Span, cuts: Sequence[Span] = ()) -> str:
        """The text as it was written; each cut, in order, is replaced by the name of a part."""
        pieces, begin = [], span.first
        for number, cut in enumerate(cuts):
            if cut.first > begin:
                upto = self.tokens[cut.first].start
                pieces.append(self.sql[self.tokens[begin].start : upto])
            pieces.append(part_name(number))
            begin = cut.end
            if begin < span.end:
                pieces.append(self.sql[self._stop(begin - 1) : self.tokens[begin].start])
        if begin < span.end:
            pieces.append(self.sql[self.tokens[begin].start : self._stop(span.end - 1)])
        return "".join(pieces)

    def clauses(self) -> Clauses:
        """The parts of the one SELECT that the text is."""
        found = Clauses()
        lists = {
            TokenType.SELECT: found.outputs,
            TokenType.ON: found.joins,
            TokenType.WHERE: found.where,
            TokenType.GROUP_BY: found.groups,
            TokenType.HAVING: found.having,
        }
        spans: list[Span] | None = None
        begin = 0
        for number, depth in self._depths(Span(0, len(self.tokens))):
            kind = self.tokens[number].token_type
            if depth or not self._is_boundary(number):
                continue
            if spans is not None and number > begin:
                spans.append(Span(begin, number))
            listed = kind == TokenType.COMMA and spans is not found.joins
            spans = spans if listed else lists.get(kind)
            begin = number + 1
        if spans is not None and begin < len(self.tokens):
            spans.append(Span(begin, len(self.tokens)))
        return found

    def conjuncts(self, span: Span) -> list[Span]:
        """The parts of a condition between its top-level ANDs, without brackets around them."""
        span = self._unwrapped(span)
        found, begin, betweens = [], span.first, 0
        for number, depth in self._depths(span):
            kind = self.tokens[number].token_type
            if depth:
                continue
            if kind == TokenType.OR:
                return [span]
            if kind == TokenType.BETWEEN:
                betweens += 1
            elif kind == TokenType.AND and betweens:
                betweens -= 1
            elif kind == TokenType.AND:
                found += self.conjuncts(Span(begin, number))
                begin = number + 1
        if not found:
            return [span]
        return [*found, *self.conjuncts(Span(begin, span.end))]

    def call(self, start: int) -> Span:
        """The call of the function whose name stands at this place of the text."""
        name = self._at[start]
        return Span(name, self._closing(name + 1) + 1)

    def arguments(self, start: int) -> list[Span]:
        """The arguments of that call, without the word DISTINCT before them."""
        call = self.call(start)
        inner = Span(call.first + 2, call.end - 1)
        if inner.first < inner.end and self._kind(inner.first) == TokenType.DISTINCT:
            inner = Span(inner.first + 1, inner.end)
        found, begin = [], inner.first
        for number, depth in self._depths(inner):
            if not depth and self._kind(number) == TokenType.COMMA:
                found.append(Span(begin, number))
                begin = number + 1
        return [*found, Span(begin, inner.end)] if begin < inner.end else found

    def filtered_call(self, start: int) -> tuple[Span, Span]:
        """An aggregate with its FILTER (WHERE ...), and the condition within that."""
        opening = self.call(start).end + 1
        closing = self._closing(opening)
        return Span(self._at[start], closing + 1), Span(opening + 2, closing)

    def between(self, start: int, stop: int) -> Span:
        """From the token that begins at one place of the text to that which begins at another."""
        return Span(self._at[start], self._at[stop] + 1)

    def unnamed(self, span: Span) -> Span:
        """An output without its name, which it has."""
        named = self._kind(span.end - 2) == TokenType.ALIAS
        return Span(span.first, span.end - (2 if named else 1))

    def _kind(self, number: int) -> TokenType:
        return self.tokens[number].token_type

    def _stop(self, number: int) -> int:
        return self.tokens[number].end + 1

    def _is_boundary(self, number: int) -> bool:
        """Whether a token between no brackets ends what stands before it."""
        kind = self._kind(number)
        if kind == TokenType.COMMA:
            return True
        if kind not in _CLAUSES and kind not in _ENDS:
            return False
        before = self._kind(number - 1) if number else None
        after = self._kind(number + 1) if number + 1 < len(self.tokens) else None
        if before == TokenType.DOT or (kind in _ENDS and after == TokenType.L_PAREN):
            return kind == TokenType.USING and before != TokenType.DOT
        return not (kind == TokenType.FROM and before == TokenType.DISTINCT)

    def _closing(self, opening: int) -> int:
        inner = Span(opening + 1, len(self.tokens))
        return next(n for n, depth in self._depths(inner) if depth < 0)

    def _depths(self, span: Span) -> list[tuple[int, int]]:
        """Each token with the number of brackets and CASEs it stands within; brackets outside."""
        found, depth, cases = [], 0, 0
        for number in range(span.first, span.end):
            kind = self._kind(number)
            after_dot = number > 0 and self._kind(number - 1) == TokenType.DOT
            if kind in _CLOSING:
                depth -= 1
            elif kind == TokenType.END and cases and not after_dot:
                cases -= 1
            found.append((number, depth + cases if depth >= 0 else depth))
            if kind in _OPENING:
                depth += 1
            elif kind == TokenType.CASE and not after_dot:
                cases += 1
        return found

    def _unwrapped(self, span: Span) -> Span:
        """The span without brackets that are around all of it."""
        while (
            span.end - span.first > 1
            and self._kind(span.first) == TokenType.L_PAREN
            and self._closing(span.first) == span.end - 1
        ):
            span = Span(span.first + 1, span.end - 1)
        return span
