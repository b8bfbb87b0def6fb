import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from querymesh.classify import induce as inducing
from querymesh.classify.attributes import Attribute, choose_attributes
from querymesh.classify.gain import chance_of_gain, entropy_bits, information_gain
from querymesh.classify.induce import Growth, grow, induce
from querymesh.classify.tree import Leaf, Member, Missing, Split, Threshold, leaves, leaves_of


def grown(table: pa.Table, labels, weights=None, **growth):
    attributes, _ = choose_attributes(table)
    codes = [a.codes(table[a.name].combine_chunks()) for a in attributes]
    labels = np.asarray(labels, dtype=np.int64)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    return induce(attributes, codes, labels, weights, Growth(**growth))


def predicted(tree, table):
    out = np.zeros(table.num_rows, dtype=np.int64)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    reached = leaves_of(tree, columns.__getitem__, table.num_rows)
    for (leaf, _), rows in zip(leaves(tree), reached, strict=True):
        out[rows] = leaf.label
    return out


def reached(tree, table):
    """The leaf of each row, by number."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    out = np.zeros(table.num_rows, dtype=np.int64)
    for number, rows in enumerate(leaves_of(tree, columns.__getitem__, table.num_rows)):
        out[rows] = number
    return out


def test_the_first_split_is_the_one_scikit_learn_finds():
    rng = np.random.default_rng(0)
    x = np.round(rng.uniform(0, 1, (60, 3)), 3)
    labels = (x[:, 1] > 0.4).astype(int) ^ (rng.random(60) < 0.1)
    table = pa.table({f"x{j}": x[:, j] for j in range(3)})
    oracle = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(x, labels).tree_
    tree = grown(table, labels, max_leaves=2)
    assert isinstance(tree, Split)
    assert tree.test.attribute == f"x{oracle.feature[0]}"
    left = x[:, oracle.feature[0]] <= oracle.threshold[0]
    assert ((x[:, oracle.feature[0]] <= tree.test.value) == left).all()


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("pqrst")), min_size=1, max_size=60))
@settings(max_examples=60)
def test_labels_that_follow_one_attribute_are_told_without_error(rows):
    table = pa.table({"n": pa.array([n for n, _ in rows]), "s": pa.array([s for _, s in rows])})
    by_category = [("pqrst".index(s)) % 3 for _, s in rows]
    by_range = [n // 11 for n, _ in rows]
    for labels in (by_category, by_range):
        tree = grown(table, labels, max_leaves=100)
        assert predicted(tree, table).tolist() == labels


def test_weights_count_as_that_many_tuples():
    table = pa.table({"k": ["a", "a", "b", "b"]})
    light = grown(table, [0, 1, 1, 1], weights=[1, 9, 1, 1], max_leaves=1)
    heavy = grown(table, [0, 1, 1, 1], weights=[9, 1, 1, 1], max_leaves=1)
    assert (light, heavy) == (Leaf(1), Leaf(0))


def test_sets_of_categories_become_one_test_and_the_rest_goes_where_most_went():
    table = pa.table({"k": ["a", "b", "c", "d"] * 10})
    tree = grown(table, [0, 1, 0, 1] * 10)
    assert isinstance(tree, Split)
    assert isinstance(tree.test, Member)
    assert set(tree.test.values) in ({"a", "c"}, {"b", "d"})


def test_null_can_be_the_reason():
    table = pa.table({"x": pa.array([None, 1.5, None, 2.5, 3.5] * 8)})
    tree = grown(table, [1, 0, 1, 0, 0] * 8)
    assert isinstance(tree, Split)
    assert tree.test == Missing("x")


def test_null_beside_numbers_goes_with_the_side_it_behaves_like():
    values = [None, 1.5, 9.5, 1.0, 9.0] * 8
    tree = grown(pa.table({"x": pa.array(values)}), [1, 0, 1, 0, 1] * 8)
    assert isinstance(tree.test, Threshold)
    assert not tree.test.null
    assert predicted(tree, pa.table({"x": pa.array(values)})).tolist() == [1, 0, 1, 0, 1] * 8


def test_exhausted_leaves_take_the_majority():
    table = pa.table({"k": ["a", "a", "a", "b", "b", "b"] * 5})
    tree = grown(table, [0, 0, 1, 1, 1, 1] * 5)
    assert {leaf.label for leaf, _ in leaves(tree)} == {0, 1}


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_worth_a_split(seed):
    rng = np.random.default_rng(seed)
    table = pa.table(
        {f"x{j}": rng.normal(size=600) for j in range(5)}
        | {"k": pa.array(rng.choice(list("abcdefgh"), 600))}
    )
    tree = grown(table, rng.integers(0, 4, 600), chance=0.001)
    assert len(list(leaves(tree))) == 1


def test_entropy_and_gain_are_those_of_the_textbook():
    assert entropy_bits(np.array([[4.0, 0.0]]))[0] == 0
    assert information_gain(np.array([[2.0, 0.0]]), np.array([[0.0, 2.0]]))[0] == 4.0
    assert information_gain(np.array([[1.0, 1.0]]), np.array([[1.0, 1.0]]))[0] == 0.0


def test_chance_is_near_one_for_no_gain_and_tiny_for_a_large_one():
    assert chance_of_gain(0.0, 3, 10) == 1.0
    assert chance_of_gain(1.0, 3, 10) == 1.0
    assert chance_of_gain(80.0, 3, 10) < 1e-12


@pytest.mark.parametrize(
    ("weights", "null"), [([9, 9, 1, 1], True), ([1, 1, 9, 9], False), ([1, 1, 1, 1], True)]
)
def test_a_null_that_the_sample_never_had_goes_where_most_tuples_go(weights, null):
    table = pa.table({"x": [1.5, 1.5, 2.5, 2.5]})
    tree = grown(table, [0, 0, 1, 1], weights)
    assert tree.test == Threshold("x", 2.0, null)


@pytest.mark.parametrize("labels", [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
@pytest.mark.parametrize("kind", [float, "k{}".format])
def test_no_split_leaves_less_than_the_least_weight_on_either_side(labels, kind):
    values = [kind(number) for number in range(6)]
    assert isinstance(grown(pa.table({"x": values}), labels, min_weight=1.0), Split)
    tree = grown(pa.table({"x": values}), labels, min_weight=2.0)
    assert tree == Leaf(0) or min(np.bincount(reached(tree, pa.table({"x": values})))) >= 2


def test_where_a_split_would_leave_a_light_side_another_is_taken():
    table = pa.table({"x": [float(number) for number in range(10)]})
    tree = grown(table, [1] + [0] * 9, min_weight=3.0, max_leaves=2)
    assert tree.test == Threshold("x", 2.5, False)
    tree = grown(table, [0] * 9 + [1], min_weight=3.0, max_leaves=2)
    assert tree.test == Threshold("x", 6.5, True)


@pytest.mark.parametrize("leaf_count", [1, 2, 3, 4])
def test_a_tree_has_no_more_leaves_than_asked_for(leaf_count):
    table = pa.table({"x": [float(number) for number in range(8)]})
    tree = grown(table, [0, 0, 1, 1, 2, 2, 3, 3], max_leaves=leaf_count)
    assert len(list(leaves(tree))) == leaf_count


@pytest.mark.parametrize(("pure", "mixed"), [("a", "b"), ("b", "a")])
def test_the_leaf_whose_split_gains_most_is_split_next(pure, mixed):
    kinds = [pure] * 20 + [mixed] * 20
    inner = [0.5] * 18 + [1.5] * 2 + [0.5] * 10 + [1.5] * 10
    labels = [0] * 18 + [1] * 2 + [2] * 10 + [3] * 10
    tree = grown(pa.table({"k": kinds, "x": inner}), labels, max_leaves=3)
    assert tree.test.attribute == "k"
    side = tree.yes if mixed in tree.test.values else tree.no
    assert isinstance(side, Split), "10 and 10 are harder to tell than 18 and 2"
    assert sum(isinstance(each, Split) for each in (tree.yes, tree.no)) == 1


def test_of_leaves_that_gain_the_same_the_first_is_split():
    table = pa.table({"k": ["a"] * 4 + ["b"] * 4, "x": [0.5, 0.5, 1.5, 1.5] * 2})
    tree = grown(table, [0, 0, 1, 1, 2, 2, 3, 3], max_leaves=3)
    assert isinstance(tree.yes, Split)
    assert isinstance(tree.no, Leaf)


def test_light_tuples_are_told_too_unless_they_weigh_too_little():
    table = pa.table({"k": ["a", "b"]})
    assert isinstance(grown(table, [0, 1], weights=[0.25, 0.25], min_weight=0.25), Split)
    assert grown(table, [0, 1], weights=[0.5, 0.9]) == Leaf(1), "of less than a tuple"


@pytest.mark.parametrize(
    ("values", "trials"),
    [
        ([0.5, 1.5, 2.5, 3.5], 4),
        ([0.5, 1.5, 2.5, None], 2 * 4),
        (["a", "b", "c", "d"], 4),
        (["a", "b", "c", None], 4),
    ],
)
@pytest.mark.parametrize("kinds", [2, 3])
def test_a_split_is_taken_only_if_it_is_no_accident_by_all_that_were_tried(values, trials, kinds):
    labels = np.array([0, 0, 1, kinds - 1])
    tree = grown(pa.table({"x": pa.array(values)}), labels, max_leaves=2)
    sides = reached(tree, pa.table({"x": pa.array(values)}))
    counts = [np.bincount(labels[sides == side], minlength=kinds) for side in (0, 1)]
    gain = float(information_gain(*(each.astype(float) for each in counts)))
    chance = chance_of_gain(gain, kinds - 1, trials)
    assert 0 < chance < 1
    table = pa.table({"x": pa.array(values)})
    assert grown(table, labels, max_leaves=2, chance=chance * 1.001) == tree
    assert isinstance(grown(table, labels, max_leaves=2, chance=chance * 0.999), Leaf)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=7))
@settings(max_examples=80)
def test_categories_are_split_along_the_first_principal_component_of_their_labels(counts):
    counts = np.array([row for row in counts if sum(row)], float)
    assume(len(counts) > 1)
    assume((counts.sum(axis=0) > 0).all())
    names, labels = [], []
    for number, row in enumerate(counts.astype(int)):
        names += ["abcdefg"[number]] * row.sum()
        labels += [*np.repeat(np.arange(3), row)]
    table = pa.table({"k": names})
    tree = grown(table, labels, max_leaves=2)
    assume(isinstance(tree, Split))
    weight = counts.sum(axis=1)
    shares = counts / weight[:, None]
    centred = (shares - counts.sum(axis=0) / counts.sum()) * np.sqrt(weight)[:, None]
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    assume(spread[0] > spread[1] * 1.001)
    along = shares @ directions[0]
    assume(len(np.unique(along.round(9))) == len(along))
    order = np.argsort(along)
    gains = [
        float(information_gain(counts[order[:cut]].sum(axis=0), counts[order[cut:]].sum(axis=0)))
        for cut in range(1, len(counts))
    ]
    sides = reached(tree, table)
    found = [np.bincount(np.array(labels)[sides == side], minlength=3) for side in (0, 1)]
    assert float(information_gain(*(each.astype(float) for each in found))) == pytest.approx(
        max(gains)
    )


def test_null_may_go_with_the_greatest_numbers_alone():
    table = pa.table({"x": pa.array([1.0, 2.0, 3.0, None] * 5)})
    tree = grown(table, [0, 0, 1, 1] * 5)
    assert tree == Split(Threshold("x", 2.5, False), Leaf(0), Leaf(1))
    other = grown(table, [1, 0, 0, 1] * 5)
    assert other == Split(Threshold("x", 1.5, True), Leaf(1), Leaf(0))


def test_where_all_have_one_value_there_is_nothing_to_split():
    tree = grown(pa.table({"x": [1.0, 1.0, 1.0, 2.0]}), [0, 1, 1, 2])
    assert tree == Split(Threshold("x", 1.5, True), Leaf(1), Leaf(2))


@pytest.mark.parametrize(("counts", "listed"), [((10, 2), "b"), ((2, 10), "a")])
def test_the_lighter_categories_are_listed_and_values_never_seen_go_with_the_others(counts, listed):
    table = pa.table({"k": ["a"] * counts[0] + ["b"] * counts[1]})
    tree = grown(table, [0] * counts[0] + [1] * counts[1])
    assert tree.test == Member("k", (listed,))


@pytest.mark.parametrize(("nulls_like", "listed"), [(0, "b"), (1, "a")])
def test_where_the_sample_had_null_the_other_side_is_listed(nulls_like, listed):
    table = pa.table({"k": ["a"] * 5 + ["b"] * 5 + [None]})
    tree = grown(table, [0] * 5 + [1] * 5 + [nulls_like])
    assert tree.test == Member("k", (listed,))
    assert predicted(tree, table)[-1] == nulls_like


@pytest.mark.parametrize("seed", range(25))
def test_trees_are_those_of_eigenvectors_of_bins_by_bins(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    rows, kinds = 300, int(rng.integers(3, 7))
    bins = rng.integers(2, 20, 3)
    table = pa.table(
        {f"k{j}": [f"v{v}" for v in rng.integers(0, n, rows)] for j, n in enumerate(bins)}
    )
    labels, weights = rng.integers(0, kinds, rows), rng.uniform(0.5, 2, rows)
    tree = grown(table, labels, weights, max_leaves=12)

    def of_bins(tables):
        return np.linalg.eigh(tables @ tables.transpose(0, 2, 1))[1][:, :, -1]

    monkeypatch.setattr(inducing, "first_component", of_bins)
    assert tree == grown(table, labels, weights, max_leaves=12)
    assert len(list(leaves(tree))) == 12


def test_ten_thousand_categories_take_some_tables_of_categories_by_labels():
    rng = np.random.default_rng(0)
    rows, kinds = 20_000, 5
    attributes = [Attribute(name, values=tuple(range(10_000))) for name in "ab"]
    codes = list(rng.integers(1, 10_001, (2, rows)))
    labels = np.where(rng.random(rows) < 0.7, codes[0] % kinds, rng.integers(0, kinds, rows))
    table_bytes = 2 * 10_001 * kinds * 8
    tracemalloc.start()
    tree = induce(attributes, codes, labels, np.ones(rows), Growth(max_leaves=4, min_weight=50))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(list(leaves(tree))) == 4
    assert most_bytes < 25 * table_bytes, "10,000 by 10,000 would be a thousand of them"


def test_by_default_a_tree_has_16_leaves_and_a_tuple_on_either_side_is_enough():
    table = pa.table({"x": [float(number) for number in range(40)]})
    assert len(list(leaves(grown(table, range(40))))) == 16
    assert Growth() == Growth(max_leaves=16, min_weight=1.0, chance=1.0)


def test_every_attribute_has_its_codes():
    one = Attribute("x", edges=np.array([1.5]))
    codes = np.array([1, 2])
    with pytest.raises(ValueError, match="zip"):
        induce([one], [codes, codes], np.array([0, 1]), np.ones(2), Growth())


def test_null_may_go_with_all_numbers_but_the_greatest():
    table = pa.table({"x": pa.array([1.0, 2.0, 3.0, None] * 5)})
    assert grown(table, [0, 0, 1, 0] * 5) == Split(Threshold("x", 2.5, True), Leaf(0), Leaf(1))
    two = pa.table({"x": pa.array([1.0, 2.0, None] * 5)})
    assert grown(two, [0, 1, 0] * 5) == Split(Threshold("x", 1.5, True), Leaf(0), Leaf(1))
    assert grown(two, [0, 1, 1] * 5) == Split(Threshold("x", 1.5, False), Leaf(0), Leaf(1))


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_one_null_of_the_sample_decides_for_all_where_it_goes_with_the_fewer(weight):
    weights = [1.0] * 12 + [weight]
    labels = [0] * 10 + [1] * 3
    table = pa.table({"k": ["a"] * 10 + ["b"] * 2 + [None]})
    assert grown(table, labels, weights, min_weight=0.1).test == Member("k", ("a",))
    table = pa.table({"x": pa.array([1.0] * 10 + [2.0] * 2 + [None])})
    assert grown(table, labels, weights, min_weight=0.1).test == Threshold("x", 1.5, False)
    table = pa.table({"x": pa.array([2.0] * 10 + [1.0] * 2 + [None])})
    assert grown(table, labels, weights, min_weight=0.1).test == Threshold("x", 1.5, True)


def test_values_that_a_part_of_the_data_does_not_have_are_not_listed_there():
    table = pa.table(
        {
            "x": [0.5] * 8 + [1.5] * 10,
            "k": ["a"] * 6 + ["b"] * 2 + ["a"] * 5 + ["c"] * 5,
        }
    )
    tree = grown(table, [1] * 6 + [0] * 2 + [2] * 10)
    assert tree.test.attribute == "x"
    assert tree.yes == Split(Member("k", ("b",)), Leaf(0), Leaf(1))


def test_values_seen_once_are_listed():
    tree = grown(pa.table({"k": ["a"] * 5 + ["b", "c"]}), [0] * 5 + [1] * 2)
    assert tree == Split(Member("k", ("b", "c")), Leaf(1), Leaf(0))


def test_what_is_remembered_of_one_tree_serves_the_next():
    attribute = Attribute("k", values=("a", "b", "c"))
    codes = np.array([1, 1, 2, 2, 3, 3])
    labels = np.array([0, 0, 1, 1, 2, 2])
    remembered = {}
    first = grow([attribute], [codes], labels, np.ones(6), Growth(), remembered)
    assert len(remembered) == 5, "three leaves and two tests"
    choices = dict(remembered)
    again = grow([attribute], [codes], labels, np.ones(6), Growth(), remembered)
    assert again.frozen() == first.frozen()
    assert all(remembered[key] is choice for key, choice in choices.items())
    assert len(remembered) == 5
    assert first.rows.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("error")
def test_categories_are_ordered_by_their_shares_however_many_tuples_they_have():
    counts = {"a": (0, 0, 3), "b": (6, 5, 6), "c": (0, 0, 6), "d": (24, 36, 6)}
    names = [name for name, row in counts.items() for _ in range(sum(row))]
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in counts.values()])
    tree = grown(pa.table({"k": names}), labels, max_leaves=2)
    # a and c are alike and stand at one end; by weight b would come between them and d.
    assert tree.test == Member("k", ("a", "c"))


@pytest.mark.parametrize("values", [["a", "a", "b", "b"], [1.5, 1.5, 2.5, 2.5]])
def test_of_columns_that_tell_the_same_the_first_is_asked(values):
    assert grown(pa.table({"one": values, "two": values}), [0, 0, 1, 1]).test.attribute == "one"
