"""The probe path of a view as one compiled program: tuples go through all probes of their routes.

A tuple is in a *state* of a small automaton, which says what it probes next and in which state its
matches are; a route is a chain of states, so two tuples side by side may take different ones::

    states   0 ──probe b──> 1 ──probe c──> out          route b > c
             2 ──probe c──> 3 ──probe b──> out          route c > b

Combinations wait in a buffer for each number of probes behind them. A buffer is worked off when it
is full, or when nothing else is left; those that probe the same go together, partition by
partition, so that their waits for memory overlap. What comes out is one row a result: the arriving
tuple, and a row id of every relation that was joined::

    arrivals ──> [ 0 probes ] ──> [ 1 probe ] ──> [ 2 probes ] ──> out
                      └─ a full buffer is emptied before the one above it goes on

The program touches memory by addresses that stand in tables, so that any number of partitions costs
one call. It never builds an index: where it comes to a partition whose access is `ABSENT` it stops
and says so, is given what it asked for, and goes on where it was.
"""

from __future__ import annotations

from time import perf_counter_ns

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.index.kernels.compiled import (
    FLOATS,
    FLOATS_OUT,
    INT,
    INTS,
    INTS_OUT,
    Whole,
    address_reader,
    cycle_counter,
    inlined,
    kernel,
    value_at,
)

FOREVER = 2**63 - 1

DONE, OUT_FULL, ABSENT_ACCESS = 0, 1, 2
"""Why the program came back: at its end; results have to be taken; an access has to be made."""

# Columns of `parts`: what is known of each partition, then the addresses of its key codes and of
# its order codes.
P_BASE, P_FIRST, P_LAST, P_TIMES, P_SERIALS, P_EVENTS, P_CODES = range(7)

# Columns of `steps`: whom a step probes, by what, and within which window.
S_RELATION, S_WINDOW, S_SIZE, S_PARTS, S_COUNT, S_ACCESS = range(6)
S_ATTRS, S_ATTR_COUNT, S_COMPARED, S_COMPARED_COUNT, S_BEFORE = range(6, 11)
# And whose tuples take it: their relation, the partition that they are as they arrive, which of all
# that set out is the first of them, and their own window, -1 if it counts rows.
S_OWN, S_SOURCE, S_FIRST, S_RANGE = range(11, 15)
S_WIDTH = 15

NO_WINDOW, RANGE_WINDOW, ROWS_WINDOW = 0, 1, 2

# Columns of `attrs`: the attribute of the probed relation, and who holds the code it must have.
ATTR_OWN, ATTR_HOLDER, ATTR_THEIRS, ATTR_WIDTH = 0, 1, 2, 3

# Columns of `compared`: the comparison `stored op held`, its own order attribute and who holds.
C_OP, C_OWN, C_HOLDER, C_THEIRS, C_WIDTH = 0, 1, 2, 3, 4
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = 0, 1, 2, 3

# Columns of `access`: how the rows of one partition are found by one step.
A_KIND, A_OFFSETS, A_CODES, A_ORDER, A_MARKS, A_BITS, A_USED, A_CHECKED, A_ROWS, A_BY = range(10)
A_BOUNDS, A_BOUND_COUNT, A_WIDTH = 10, 11, 12
A_OPEN, A_OPEN_COUNT, A_SPAN, A_FLOOR, A_CELLS = A_CODES, A_ORDER, A_MARKS, A_BITS, A_USED
ABSENT, HASH, CELLS, SORTED, SCAN = 0, 1, 2, 3, 4

# Columns of the table at A_CELLS: which attribute of the step has how many bits, and where.
CELL_ATTR, CELL_BITS, CELL_SHIFT, CELL_TABLE, CELL_FINE, CELL_WIDTH = 0, 1, 2, 3, 4, 5

# Columns of a waiting combination: the arrival by its number in its relation, its state, the bounds
# of its times (see `fabric/join/join_ruster.py`), then for each relation which partition and row is
# joined.
F_ROW, F_STATE, F_NEWEST, F_UNTIL, F_IDS = 0, 1, 2, 3, 4

# `control`: how far the program has come, as a whole and at each level.
G_DEPTH, G_START, G_NEXT, G_FILLED, G_ABSENT, G_LEVELS = range(6)
L_COUNT, L_GROUPED, L_GROUP, L_PART, L_ENTRY, L_SLOT, L_BEGUN, L_WIDTH = range(8)

# Columns of `counts`, by state.
N_EVALUATED, N_PASSED, N_LOOKED, N_WIDTH = 0, 1, 2, 3

# `eddy`: tuples that are decided on one by one. How many operators there are, whether a lottery
# decides, how many operators are profiled and visits known; then how far it has come: draws used,
# the tuple under way and its leaf, why it stopped and for which cell, profiled tuples noted, how
# many may still set out, and plain ones be done, plain ones done, cycles of deciding and learning,
# and of all. Then a block for each of E_AFTER and so on: what must come before each operator, which
# are profiled and how many tuples they want, where columns and codes of an operator begin, and
# where the tuple under way goes.
E_OPERATORS, E_LOTTERY, E_TARGETS, E_VISITS, E_DRAWN, E_ROW, E_LEAF, E_STOP = range(8)
E_UNKNOWN, E_NOTED, E_LEFT, E_PLAIN_LEFT, E_PLAIN, E_CYCLES, E_TOTAL, E_BLOCKS = range(8, 16)
E_AFTER, E_TARGET, E_WANTED, E_COLUMN, E_CODES, E_GOES = range(6)
RAN, TURNED, UNKNOWN_VISIT = 0, 1, 2
"""Why it stopped: there are no more tuples; something is complete; a visit has no state yet."""

# `known`: the weight of former outcomes and the share that profiles; selectivities and costs of the
# operators; then the columns by content.
K_MEMORY, K_SHARE, K_SELECTIVITY = 0, 1, 2
LEAST_CHANCE = 0.01

# Columns of `notes`: a tuple that profiled, the number of its operator, how many went in and out.
T_ROW, T_TARGET, T_EVALUATED, T_PASSED, T_WIDTH = 0, 1, 2, 3, 4

_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_THREE, _SEVEN = np.uint64(3), np.uint64(7)
_SHIFT = np.uint64(33)
_LOW_HALF = 0xFFFFFFFF


@address_reader("int64")
def number_at(address: int, index: Whole) -> int:
    """The 64-bit number at an index of the array at an address."""
    return int(value_at("int64", address, index))


@address_reader("int32")
def short_at(address: int, index: Whole) -> int:
    """The 32-bit number at an index of the array at an address."""
    return int(value_at("int32", address, index))


@address_reader("uint8")
def byte_at(address: int, index: Whole) -> int:
    """The byte at an index of the array at an address."""
    return int(value_at("uint8", address, index))


@cycle_counter
def cycles() -> int:
    """A clock of the processor, in units of its own."""
    return perf_counter_ns()


@inlined
def mix(number: Whole) -> np.uint64:
    """Murmur's finalizer, as in `kernels.py`: a cached kernel can call only what is in its file."""
    x = np.uint64(number)
    x ^= x >> _SHIFT
    x *= _FIRST
    x ^= x >> _SHIFT
    x *= _SECOND
    x ^= x >> _SHIFT
    return x


@inlined
def later(time: int, by: int) -> int:
    """A time moved forwards, as far as numbers go."""
    return min(time, FOREVER - by) + by


@inlined
def earlier(time: int, by: int) -> int:
    """A time moved back, as far as numbers go."""
    return max(time, -FOREVER + by) - by


@inlined
def holds(op: int, stored: int, held: int) -> bool:
    """Whether a comparison holds."""
    if op == LESS:
        return stored < held
    if op == LESS_EQUAL:
        return stored <= held
    if op == GREATER:
        return stored > held
    return stored >= held


@inlined
def position_in(codes: int, count: int, value: int, right: bool) -> int:
    """Where a value belongs among rising codes at an address, before or after its equals."""
    begin, end = 0, count
    while begin < end:
        middle = (begin + end) >> 1
        code = number_at(codes, middle)
        if code < value or (right and code == value):
            begin = middle + 1
        else:
            end = middle
    return begin


@inlined
def cell_of(code: int, bits: int, table: int, fine: int) -> Whole:
    """The cell of a code, as `kernels.cells` has it."""
    if table == 0:
        return np.int64(mix(code) >> np.uint64(64 - bits))
    return byte_at(table, np.int64(mix(code) >> np.uint64(64 - fine)))


@inlined
def block_of(eddy: Ints, block: int) -> int:
    """Where a block of `eddy` begins."""
    return E_BLOCKS + block * int(eddy[E_OPERATORS])


@inlined
def known_at(operator: int, row: int, eddy: Ints, codes: Ints) -> int:
    """Where in `known` stands how many come out of an operator for a tuple that goes in: by its
    content, or overall."""
    column = eddy[block_of(eddy, E_COLUMN) + operator]
    if column < 0:
        return K_SELECTIVITY + operator
    return int(column + codes[eddy[block_of(eddy, E_CODES) + operator] + row])


@inlined
def merit_of(passing: float, cost: float, lottery: int) -> float:
    """What an operator drops by its cost; in a lottery its weight, inverse to what it passes."""
    if lottery != 0:
        return 1.0 / max(passing, LEAST_CHANCE) / cost
    return (1.0 - passing) / cost


@inlined
def next_operator(
    context: int, profiled: int, row: int, eddy: Ints, codes: Ints, merits: Floats, draws: Floats
) -> int:
    """The operator that a tuple goes to, of those ahead of it: towards the one it profiles, else
    the best, or one that is drawn."""
    operators = eddy[E_OPERATORS]
    after = block_of(eddy, E_AFTER)
    wanted = 0
    if profiled >= 0 and context >> profiled & 1:
        wanted = eddy[after + profiled] & context
        if wanted == 0:
            return profiled
    best, most, ready, total = -1, 0.0, 0, 0.0
    for k in range(operators):
        if context >> k & 1 == 0 or eddy[after + k] & context != 0:
            continue
        if wanted >> k & 1:
            return k
        ready += 1
        merit = merits[known_at(k, row, eddy, codes)]
        total += merit
        if best < 0 or merit > most:
            best, most = k, merit
    if eddy[E_LOTTERY] == 0 or ready < 2:
        return best
    draw = draws[eddy[E_DRAWN]]
    eddy[E_DRAWN] += 1
    end = 0.0
    for k in range(operators):
        if context >> k & 1 == 0 or eddy[after + k] & context != 0:
            continue
        best = k
        end += merits[known_at(k, row, eddy, codes)] / total
        if draw < end:
            return k
    return best


@inlined
def set_out(
    row: int,
    state_step: Ints,
    eddy: Ints,
    visit_of: Ints,
    codes: Ints,
    known: Floats,
    merits: Floats,
    draws: Floats,
) -> bool:
    """Decide on the way of a tuple, state by state; False if some visit has no state yet."""
    operators = eddy[E_OPERATORS]
    drawn = eddy[E_DRAWN]
    profiled = -1
    eddy[E_LEAF] = 0
    if eddy[E_TARGETS] > 0:
        slot = np.int64(draws[drawn] / known[K_SHARE])
        eddy[E_DRAWN] += 1
        if slot < eddy[E_TARGETS] and eddy[block_of(eddy, E_WANTED) + slot] > 0:
            profiled = eddy[block_of(eddy, E_TARGET) + slot]
            eddy[E_LEAF] = 1 + slot
    context = (1 << operators) - 1
    for level in range(operators):
        k = next_operator(context, profiled, row, eddy, codes, merits, draws)
        cell = context * operators + k
        visit = visit_of[cell]
        if visit < 0:
            eddy[E_DRAWN] = drawn
            eddy[E_UNKNOWN] = cell
            return False
        eddy[block_of(eddy, E_GOES) + level] = cell
        state_step[level] = state_step[operators + visit]
        context &= ~(1 << k)
    eddy[E_ROW] = row
    eddy[E_LEFT] -= 1
    return True


@inlined
def learn(
    counts: Ints,
    eddy: Ints,
    visit_of: Ints,
    codes: Ints,
    known: Floats,
    merits: Floats,
    notes: Ints,
) -> None:
    """Update what is known by what came of the tuple under way, the paper's rule (CBR § 4.1), and
    count its visits by leaf."""
    operators = eddy[E_OPERATORS]
    row = eddy[E_ROW]
    leaf = eddy[E_LEAF]
    target = -1 if leaf == 0 else eddy[block_of(eddy, E_TARGET) + leaf - 1]
    for level in range(operators):
        at = level * N_WIDTH
        arrived = counts[at + N_EVALUATED]
        if arrived == 0:
            break
        passed = counts[at + N_PASSED]
        cell = eddy[block_of(eddy, E_GOES) + level]
        k = cell % operators
        kept = known[K_MEMORY]
        if arrived > 1:
            kept = kept ** float(arrived)
        fresh = passed / arrived * (1.0 - kept)
        overall = K_SELECTIVITY + k
        cost = known[overall + operators]
        known[overall] = known[overall] * kept + fresh
        merits[overall] = merit_of(known[overall], cost, eddy[E_LOTTERY])
        by_content = known_at(k, row, eddy, codes)
        if by_content != overall:
            known[by_content] = known[by_content] * kept + fresh
            merits[by_content] = merit_of(known[by_content], cost, eddy[E_LOTTERY])
        if k == target:
            note = eddy[E_NOTED] * T_WIDTH
            notes[note + T_ROW] = row
            notes[note + T_TARGET] = leaf - 1
            notes[note + T_EVALUATED] = arrived
            notes[note + T_PASSED] = passed
            eddy[E_NOTED] += 1
            wanted = block_of(eddy, E_WANTED) + leaf - 1
            eddy[wanted] -= 1
            if eddy[wanted] == 0:
                eddy[E_STOP] = TURNED
        to = (operators + leaf * eddy[E_VISITS] + visit_of[cell]) * N_WIDTH
        for word in range(N_WIDTH):
            counts[to + word] += counts[at + word]
            counts[at + word] = 0
    eddy[E_ROW] = -1
    if leaf == 0:
        eddy[E_PLAIN] += 1
        eddy[E_PLAIN_LEFT] -= 1
    if eddy[E_LEFT] == 0 or eddy[E_PLAIN_LEFT] == 0:
        eddy[E_STOP] = TURNED


@kernel(
    *(INTS, INT, INT),
    *(INTS, INTS, INTS, INTS),
    *(INTS_OUT, INTS),
    *(INTS, INTS),
    *(INTS_OUT, INT, INT, INT, INT),
    *(INTS_OUT, INTS_OUT, INTS_OUT, INTS_OUT),
    *(INTS_OUT, INTS, INTS, FLOATS_OUT, FLOATS_OUT, FLOATS, INTS_OUT),
)
def travel(
    parts: Ints,
    part_width: int,
    keys: int,
    steps: Ints,
    attrs: Ints,
    compared: Ints,
    access: Ints,
    state_step: Ints,
    state_next: Ints,
    states: Ints,
    given: Ints,
    frontier: Ints,
    width: int,
    capacity: int,
    longest: int,
    levels: int,
    control: Ints,
    counts: Ints,
    spent: Ints,
    out: Ints,
    eddy: Ints,
    visit_of: Ints,
    codes_of: Ints,
    known: Floats,
    merits: Floats,
    draws: Floats,
    notes: Ints,
) -> int:
    """Take arrivals through the probes of their states, and say why it came back.

    `states` has the state in which each arrival begins, -1 for one that does not take part; those
    of one relation follow each other, and a state is of one relation's tuples. Where combinations
    set out that have joined something already, `given` has their columns, one array after the
    other, and `states` are theirs; else it is empty.

    `frontier` has room for `capacity` combinations at each of the `levels`. Those that follow each
    other and ask for the same code are looked up once, up to `longest` of them: no more than there
    is room for. `spent` are the cycles by step, `out` the results: an array for each column of a
    combination.

    Where `eddy` is not empty, an Eddy decides on the way of each tuple when all before it are done,
    and learns from it. The first states, one for each operator, are then those of the tuple under
    way; behind them is one for each known visit, and as many for each further leaf, in which
    visits are counted. `visit_of` has the number of a visit by context and operator, -1 for an
    unknown one; `codes_of` the partitions of each tuple, `known` what is learned, `merits` what
    follows of each number there, `notes` what came of those that profile.
    """
    started = cycles()
    why = moved(
        parts,
        part_width,
        keys,
        steps,
        attrs,
        compared,
        access,
        state_step,
        state_next,
        states,
        given,
        frontier,
        width,
        capacity,
        longest,
        levels,
        control,
        counts,
        spent,
        out,
        eddy,
        visit_of,
        codes_of,
        known,
        merits,
        draws,
        notes,
    )
    if len(eddy) > 0:
        eddy[E_TOTAL] += cycles() - started
    return why


@inlined
def moved(
    parts: Ints,
    part_width: int,
    keys: int,
    steps: Ints,
    attrs: Ints,
    compared: Ints,
    access: Ints,
    state_step: Ints,
    state_next: Ints,
    states: Ints,
    given: Ints,
    frontier: Ints,
    width: int,
    capacity: int,
    longest: int,
    levels: int,
    control: Ints,
    counts: Ints,
    spent: Ints,
    out: Ints,
    eddy: Ints,
    visit_of: Ints,
    codes_of: Ints,
    known: Floats,
    merits: Floats,
    draws: Floats,
    notes: Ints,
) -> int:
    """The program itself; without an Eddy, `eddy` is empty."""
    rows = len(states)
    room = len(out) // width
    spare = capacity >> 3
    order = control[G_LEVELS + levels * L_WIDTH :]
    most_attrs = 1
    most_compared = 1
    for step in range(len(steps) // S_WIDTH):
        most_attrs = max(most_attrs, steps[step * S_WIDTH + S_ATTR_COUNT])
        most_compared = max(most_compared, steps[step * S_WIDTH + S_COMPARED_COUNT])
    codes = np.empty(most_attrs * capacity, np.int64)
    values = np.empty(most_compared * capacity, np.int64)
    low = np.empty(capacity, np.int64)
    high = np.empty(capacity, np.int64)
    before = np.empty(capacity, np.int64)
    combined = np.empty(capacity, np.int64)
    mixed = np.empty(capacity, np.uint64)
    likely = np.empty(capacity, np.int64)
    begins = np.empty(capacity, np.int64)
    ends = np.empty(capacity, np.int64)
    entries = np.empty(capacity, np.int64)
    run_begins = np.empty(capacity + 1, np.int64)
    run_lows = np.empty(capacity, np.int64)
    run_highs = np.empty(capacity, np.int64)
    candidates = np.empty(capacity, np.int64)
    askers = np.empty(capacity, np.int64)
    stamps = np.empty(capacity, np.int64)
    of_step = np.empty(len(steps) // S_WIDTH + 1, np.int64)
    while True:
        level = control[G_DEPTH]
        if level < 0:
            row = control[G_NEXT]
            at_once = capacity
            if len(eddy) > 0:
                # One at a time: what waits goes first, and what came of the tuple is learned.
                at_once = 1
                deeper = 1
                while deeper < levels and control[G_LEVELS + deeper * L_WIDTH + L_COUNT] == 0:
                    deeper += 1
                if deeper < levels:
                    at_once = 0
                else:
                    started = cycles()
                    if eddy[E_ROW] >= 0:
                        learn(counts, eddy, visit_of, codes_of, known, merits, notes)
                    while row < rows and states[row] < 0:
                        row += 1
                    control[G_NEXT] = row
                    if eddy[E_STOP] != RAN or row >= rows:
                        return DONE
                    if not set_out(row, state_step, eddy, visit_of, codes_of, known, merits, draws):
                        eddy[E_STOP] = UNKNOWN_VISIT
                        return DONE
                    eddy[E_CYCLES] += cycles() - started
            if row < rows and at_once > 0:
                count = 0
                while row < rows and count < at_once:
                    if states[row] >= 0 and len(given) > 0:
                        at = count * width
                        for word in range(width):
                            frontier[at + word] = given[word * rows + row]
                        frontier[at + F_STATE] = states[row]
                        count += 1
                    elif states[row] >= 0:
                        at = count * width
                        of = state_step[states[row]] * S_WIDTH
                        source = steps[of + S_SOURCE]
                        own_range = steps[of + S_RANGE]
                        local = row - steps[of + S_FIRST]
                        time = number_at(parts[source * part_width + P_TIMES], local)
                        frontier[at + F_ROW] = local
                        frontier[at + F_STATE] = states[row]
                        frontier[at + F_NEWEST] = time
                        frontier[at + F_UNTIL] = (
                            FOREVER if own_range < 0 else later(time, own_range)
                        )
                        for relation in range(width - F_IDS):
                            frontier[at + F_IDS + relation] = -1
                        frontier[at + F_IDS + steps[of + S_OWN]] = (source << 32) | local
                        count += 1
                    row += 1
                control[G_NEXT] = row
                control[G_LEVELS + L_COUNT] = count
                level = 0
            else:
                level = 1
                while level < levels and control[G_LEVELS + level * L_WIDTH + L_COUNT] == 0:
                    level += 1
                if level >= levels:
                    return DONE
            control[G_DEPTH] = level
            control[G_START] = level
        of_level = G_LEVELS + level * L_WIDTH
        count = control[of_level + L_COUNT]
        first_entry = level * capacity
        if control[of_level + L_GROUPED] == 0:
            # Entries by step, stable.
            if count == 1:
                order[first_entry] = first_entry
            else:
                of_step[:] = 0
                for n in range(count):
                    step = state_step[frontier[(first_entry + n) * width + F_STATE]]
                    of_step[step + 1] += 1
                for step in range(1, len(of_step)):
                    of_step[step] += of_step[step - 1]
                for n in range(count):
                    step = state_step[frontier[(first_entry + n) * width + F_STATE]]
                    order[first_entry + of_step[step]] = first_entry + n
                    of_step[step] += 1
            control[of_level + L_GROUPED] = 1
            control[of_level + L_GROUP] = 0
            control[of_level + L_PART] = 0
            control[of_level + L_ENTRY] = 0
            control[of_level + L_SLOT] = 0
            control[of_level + L_BEGUN] = 0
        next_count = 0 if level + 1 >= levels else control[of_level + L_WIDTH + L_COUNT]
        next_entry = first_entry + capacity
        filled = control[G_FILLED]
        full = False
        out_full = False
        begin = control[of_level + L_GROUP]
        while begin < count and not full:
            started = cycles()
            step = state_step[frontier[order[first_entry + begin] * width + F_STATE]]
            end = begin + 1
            while (
                end < count
                and state_step[frontier[order[first_entry + end] * width + F_STATE]] == step
            ):
                end += 1
            of = step * S_WIDTH
            relation = steps[of + S_RELATION]
            window = steps[of + S_WINDOW]
            size = steps[of + S_SIZE]
            attr_count = steps[of + S_ATTR_COUNT]
            compared_count = steps[of + S_COMPARED_COUNT]
            size_of_group = end - begin
            for n in range(size_of_group):
                entries[n] = order[first_entry + begin + n] * width
            # What each combination asks: codes, what is compared, bounds.
            for j in range(attr_count):
                at = (steps[of + S_ATTRS] + j) * ATTR_WIDTH
                holder = F_IDS + attrs[at + ATTR_HOLDER]
                theirs = P_CODES + attrs[at + ATTR_THEIRS]
                for n in range(size_of_group):
                    joined = frontier[entries[n] + holder]
                    codes[j * capacity + n] = number_at(
                        parts[(joined >> 32) * part_width + theirs], joined & _LOW_HALF
                    )
            for j in range(compared_count):
                at = (steps[of + S_COMPARED] + j) * C_WIDTH
                holder = F_IDS + compared[at + C_HOLDER]
                theirs = P_CODES + keys + compared[at + C_THEIRS]
                for n in range(size_of_group):
                    joined = frontier[entries[n] + holder]
                    values[j * capacity + n] = number_at(
                        parts[(joined >> 32) * part_width + theirs], joined & _LOW_HALF
                    )
            lowest, highest = FOREVER, -FOREVER
            serials_of_source = parts[steps[of + S_SOURCE] * part_width + P_SERIALS]
            for n in range(size_of_group):
                at = entries[n]
                if window == RANGE_WINDOW:
                    low[n] = earlier(frontier[at + F_NEWEST], size)
                    high[n] = frontier[at + F_UNTIL]
                elif window == ROWS_WINDOW:
                    low[n] = number_at(steps[of + S_BEFORE], frontier[at + F_ROW]) - size
                    high[n] = FOREVER
                else:
                    low[n] = -FOREVER
                    high[n] = FOREVER
                lowest = min(lowest, low[n])
                highest = max(highest, high[n])
                before[n] = number_at(serials_of_source, frontier[at + F_ROW])
            if control[of_level + L_BEGUN] == 0:
                control[of_level + L_BEGUN] = 1
                for n in range(size_of_group):
                    state = frontier[entries[n] + F_STATE]
                    counts[state * N_WIDTH + N_EVALUATED] += 1
            combined_by = -1
            runs = 0
            part = control[of_level + L_PART]
            while part < steps[of + S_COUNT]:
                here = steps[of + S_PARTS] + part
                of_part = here * part_width
                earliest = parts[of_part + P_FIRST]
                latest = parts[of_part + P_LAST]
                if latest < lowest or earliest > highest:
                    part += 1
                    continue
                way = (steps[of + S_ACCESS] + part) * A_WIDTH
                kind = access[way + A_KIND]
                if kind == ABSENT:
                    control[of_level + L_GROUP] = begin
                    control[of_level + L_PART] = part
                    control[G_FILLED] = filled
                    if level + 1 < levels:
                        control[of_level + L_WIDTH + L_COUNT] = next_count
                    control[G_ABSENT] = steps[of + S_ACCESS] + part
                    spent[step] += cycles() - started
                    return ABSENT_ACCESS
                times = parts[of_part + P_TIMES]
                serials = parts[of_part + P_SERIALS]
                events = parts[of_part + P_EVENTS]
                checked = access[way + A_CHECKED]
                offsets = access[way + A_OFFSETS]
                by = access[way + A_BY]
                slots = 0
                if kind in (HASH, SORTED):
                    slots = access[way + A_ORDER]
                n = control[of_level + L_ENTRY]
                slot = control[of_level + L_SLOT]
                chosen = 0
                if kind == HASH:
                    used = access[way + A_USED]
                    if used != combined_by:
                        combined_by = used
                        some = False
                        for j in range(attr_count):
                            if used >> j & 1:
                                if some:
                                    for i in range(size_of_group):
                                        code = codes[j * capacity + i]
                                        combined[i] = np.int64(
                                            mix(combined[i]) * _GOLDEN + np.uint64(code)
                                        )
                                else:
                                    for i in range(size_of_group):
                                        combined[i] = codes[j * capacity + i]
                                some = True
                        runs = 0
                        for i in range(size_of_group):
                            longer = i > 0 and combined[i] == combined[i - 1]
                            if longer and i - run_begins[runs - 1] < longest:
                                run_lows[runs - 1] = min(run_lows[runs - 1], low[i])
                                run_highs[runs - 1] = max(run_highs[runs - 1], high[i])
                            else:
                                run_begins[runs] = i
                                run_lows[runs] = low[i]
                                run_highs[runs] = high[i]
                                mixed[runs] = mix(combined[i])
                                runs += 1
                        run_begins[runs] = size_of_group
                    bits = access[way + A_BITS]
                    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
                    top = np.uint64(61 - bits)
                    marks = access[way + A_MARKS]
                    run = 0
                    while run_begins[run] < n:
                        run += 1
                    if marks != 0:
                        for i in range(run, runs):
                            likely[chosen] = i
                            mark = byte_at(marks, np.int64(mixed[i] >> top >> _THREE))
                            chosen += (
                                (run_lows[i] <= latest)
                                & (run_highs[i] >= earliest)
                                & (mark >> np.int64(mixed[i] >> top & _SEVEN) & 1 == 1)
                            )
                    else:
                        for i in range(run, runs):
                            likely[chosen] = i
                            chosen += (run_lows[i] <= latest) & (run_highs[i] >= earliest)
                    for c in range(chosen):
                        bucket = np.int64(mixed[likely[c]] & mask)
                        begins[c] = short_at(offsets, bucket)
                        ends[c] = short_at(offsets, bucket + 1)
                elif kind == CELLS:
                    for i in range(n, size_of_group):
                        likely[chosen] = i
                        chosen += (low[i] <= latest) & (high[i] >= earliest)
                    for c in range(chosen):
                        i = likely[c]
                        cells = 0
                        for m in range(access[way + A_ROWS]):
                            cell = access[way + A_CELLS]
                            at = m * CELL_WIDTH
                            cells += cell_of(
                                codes[number_at(cell, at + CELL_ATTR) * capacity + i],
                                number_at(cell, at + CELL_BITS),
                                number_at(cell, at + CELL_TABLE),
                                number_at(cell, at + CELL_FINE),
                            ) << number_at(cell, at + CELL_SHIFT)
                        wide = access[way + A_SPAN]
                        if by >= 0:
                            bounds = access[way + A_BOUNDS]
                            bound_count = access[way + A_BOUND_COUNT]
                            lowest_cell, highest_cell = 0, bound_count
                            for j in range(compared_count):
                                at = (steps[of + S_COMPARED] + j) * C_WIDTH
                                if compared[at + C_OWN] != by:
                                    continue
                                cell = position_in(
                                    bounds, bound_count, values[j * capacity + i], True
                                )
                                if compared[at + C_OP] <= LESS_EQUAL:
                                    highest_cell = min(highest_cell, cell)
                                else:
                                    lowest_cell = max(lowest_cell, cell)
                            cells += lowest_cell << access[way + A_FLOOR]
                            wide = max(highest_cell - lowest_cell + 1, 0) << access[way + A_FLOOR]
                        begins[c] = cells
                        ends[c] = wide
                else:
                    for i in range(n, size_of_group):
                        likely[chosen] = i
                        chosen += (low[i] <= latest) & (high[i] >= earliest)
                    stored = access[way + A_ROWS]
                    for c in range(chosen):
                        i = likely[c]
                        starts, stops = 0, stored
                        if kind == SORTED:
                            for j in range(compared_count):
                                at = (steps[of + S_COMPARED] + j) * C_WIDTH
                                if compared[at + C_OWN] != by:
                                    continue
                                op = compared[at + C_OP]
                                place = position_in(
                                    access[way + A_CODES],
                                    stored,
                                    values[j * capacity + i],
                                    op in (LESS_EQUAL, GREATER),
                                )
                                if op <= LESS_EQUAL:
                                    stops = min(stops, place)
                                else:
                                    starts = max(starts, place)
                        begins[c] = starts
                        ends[c] = stops
                # Candidates, a handful at a time, so that what they become always has room.
                index_codes = access[way + A_CODES]
                open_cells = access[way + A_OPEN]
                opens = access[way + A_OPEN_COUNT] if kind == CELLS else 1
                c = 0
                while c < chosen and not full:
                    limit = min(capacity, room - filled)
                    if level + 1 < levels:
                        limit = min(limit, capacity - next_count)
                    found = 0
                    stalled = False
                    while c < chosen and not stalled:
                        looked = 0
                        if kind == HASH:
                            run_begin = run_begins[likely[c]]
                            run_end = run_begins[likely[c] + 1]
                            seen = slot if run_begin == n else 0
                            k = begins[c] + seen
                            code = combined[run_begin]
                            while k < ends[c]:
                                if number_at(index_codes, k) == code:
                                    if found + run_end - run_begin > limit:
                                        stalled = True
                                        break
                                    for i in range(run_begin, run_end):
                                        candidates[found] = k
                                        askers[found] = i
                                        found += 1
                                k += 1
                            looked = k - begins[c] - seen
                            n = run_begin
                            for i in range(run_begin, run_end):
                                state = frontier[entries[i] + F_STATE]
                                there = low[i] <= latest and high[i] >= earliest
                                counts[state * N_WIDTH + N_LOOKED] += looked if there else 0
                        else:
                            i = likely[c]
                            seen = slot if i == n else 0
                            passed = 0
                            for opened in range(opens):
                                k = begins[c]
                                stop = ends[c]
                                if kind == CELLS:
                                    bucket = k + number_at(open_cells, opened)
                                    k = short_at(offsets, bucket)
                                    stop = short_at(offsets, bucket + ends[c])
                                skipped = min(max(seen - passed, 0), max(stop - k, 0))
                                passed += skipped
                                k += skipped
                                while k < stop and found < limit:
                                    candidates[found] = k
                                    askers[found] = i
                                    found += 1
                                    looked += 1
                                    passed += 1
                                    k += 1
                                stalled = stalled or k < stop
                            n = i
                            state = frontier[entries[i] + F_STATE]
                            counts[state * N_WIDTH + N_LOOKED] += looked
                        slot = seen + looked
                        if not stalled:
                            c += 1
                            slot = 0
                            if c < chosen:
                                n = run_begins[likely[c]] if kind == HASH else likely[c]
                    # Of these, those that lie in the window, came before, and have all it takes.
                    if slots != 0:
                        for m in range(found):
                            candidates[m] = short_at(slots, candidates[m])
                    fitting = 0
                    if serials != 0:
                        for m in range(found):
                            r, i = candidates[m], askers[m]
                            time = number_at(times, r)
                            candidates[fitting], askers[fitting] = r, i
                            stamps[fitting] = time
                            fitting += (
                                (low[i] <= time)
                                & (time <= high[i])
                                & (number_at(serials, r) < before[i])
                            )
                    else:
                        for m in range(found):
                            r, i = candidates[m], askers[m]
                            time = number_at(times, r)
                            candidates[fitting], askers[fitting] = r, i
                            stamps[fitting] = time
                            fitting += (low[i] <= time) & (time <= high[i])
                    for j in range(attr_count):
                        if checked >> j & 1:
                            own = attrs[(steps[of + S_ATTRS] + j) * ATTR_WIDTH + ATTR_OWN]
                            stored_codes = parts[of_part + P_CODES + own]
                            found, fitting = fitting, 0
                            for m in range(found):
                                r, i = candidates[m], askers[m]
                                candidates[fitting], askers[fitting] = r, i
                                stamps[fitting] = stamps[m]
                                fitting += number_at(stored_codes, r) == codes[j * capacity + i]
                    for j in range(compared_count):
                        at = (steps[of + S_COMPARED] + j) * C_WIDTH
                        op = compared[at + C_OP]
                        stored_codes = parts[of_part + P_CODES + keys + compared[at + C_OWN]]
                        found, fitting = fitting, 0
                        for m in range(found):
                            r, i = candidates[m], askers[m]
                            candidates[fitting], askers[fitting] = r, i
                            stamps[fitting] = stamps[m]
                            stored = number_at(stored_codes, r)
                            fitting += holds(op, stored, values[j * capacity + i])
                    base = parts[of_part + P_BASE]
                    for m in range(fitting):
                        r = candidates[m]
                        entry = entries[askers[m]]
                        newest = frontier[entry + F_NEWEST]
                        until = frontier[entry + F_UNTIL]
                        if window == RANGE_WINDOW:
                            newest = max(newest, stamps[m])
                            until = min(until, later(stamps[m], size))
                        elif window == ROWS_WINDOW and events != 0:
                            newest = max(newest, number_at(events, r))
                            if newest > until:
                                continue
                        state = frontier[entry + F_STATE]
                        counts[state * N_WIDTH + N_PASSED] += 1
                        follows = state_next[state]
                        if follows < 0:
                            out[F_ROW * room + filled] = frontier[entry + F_ROW]
                            out[F_STATE * room + filled] = state
                            out[F_NEWEST * room + filled] = newest
                            out[F_UNTIL * room + filled] = until
                            for other in range(width - F_IDS):
                                joined = frontier[entry + F_IDS + other]
                                if joined >= 0:
                                    joined = parts[(joined >> 32) * part_width + P_BASE] + (
                                        joined & _LOW_HALF
                                    )
                                out[(F_IDS + other) * room + filled] = joined
                            out[(F_IDS + relation) * room + filled] = base + r
                            filled += 1
                        else:
                            to = (next_entry + next_count) * width
                            for word in range(width):
                                frontier[to + word] = frontier[entry + word]
                            frontier[to + F_STATE] = follows
                            frontier[to + F_NEWEST] = newest
                            frontier[to + F_UNTIL] = until
                            frontier[to + F_IDS + relation] = (here << 32) | r
                            next_count += 1
                    # As many as ask alike go on together, or wait for more room.
                    full = filled == room or (stalled and room - filled < longest)
                    out_full = out_full or full
                    if level + 1 < levels:
                        full = full or capacity - next_count <= spare
                        full = full or (stalled and capacity - next_count < longest)
                if full and c < chosen:
                    control[of_level + L_ENTRY] = n
                    control[of_level + L_SLOT] = slot
                    break
                control[of_level + L_ENTRY] = 0
                control[of_level + L_SLOT] = 0
                part += 1
                if full:
                    break
            spent[step] += cycles() - started
            if full:
                control[of_level + L_GROUP] = begin
                control[of_level + L_PART] = part
            else:
                control[of_level + L_PART] = 0
                control[of_level + L_BEGUN] = 0
                begin = end
        control[G_FILLED] = filled
        if level + 1 < levels:
            control[of_level + L_WIDTH + L_COUNT] = next_count
        if out_full:
            return OUT_FULL
        if full:
            control[G_DEPTH] = level + 1
        else:
            control[of_level + L_COUNT] = 0
            control[of_level + L_GROUPED] = 0
            control[G_DEPTH] = level - 1 if level > control[G_START] else -1
