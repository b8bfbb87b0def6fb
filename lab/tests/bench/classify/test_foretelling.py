"""What foretelling outcomes saves, on planted words and on real reviews."""

import numpy as np
import pytest

from querymesh_lab.bench.classify import foretelling
from querymesh_lab.bench.classify.foretelling import REVIEWS, prices
from querymesh_lab.bench.classify.planted_words import planted
from querymesh_lab.bench.data.real_folder import folder_with, skipped
from querymesh_lab.bench.data.reviews import FILES


@pytest.fixture(scope="module")
def half():
    folder = folder_with(FILES)
    if folder is None:
        pytest.skip(skipped("reviews", "they are").strip())
    pytest.importorskip("sklearn")
    from querymesh_lab.bench.classify.review_models import judged

    return judged(folder, 0)


def test_words_that_decide_save_a_third_and_words_that_do_not_change_nothing():
    single, tree, predicted, least, used = prices(planted(1500, 0), 300, 0)
    assert used
    assert least < predicted < 1.1 * least
    assert tree == single > 1.5 * predicted
    single, _, predicted, _, used = prices(planted(1500, 0, noise=True), 300, 0)
    assert (predicted, used) == (single, 0)


def test_nothing_that_tells_how_a_review_judges_is_looked_at(half):
    assert {"positive", "fresh"}.isdisjoint(half.table.column_names)
    assert half.table.num_rows == 1000
    assert 0.6 < np.mean(half.says["is_positive"]) < 0.9


def test_three_models_of_reviews_cost_little_more_than_who_knows_what_they_say(half):
    wanted, columns = REVIEWS["reviews, prices 4 3 2"]
    single, _, predicted, least, used = prices(half.profile(wanted, columns), 500, 0)
    assert used
    assert predicted < 1.15 * least
    assert predicted < 0.96 * single


def test_a_film_tells_more_than_the_text_alone(half):
    wanted, columns = REVIEWS["reviews and films, 5 4 3"]
    single, _, predicted, least, _ = prices(half.profile(wanted, columns), 300, 0)
    assert predicted < 1.15 * least < single


def test_the_table_has_a_row_for_each_case_and_sample(monkeypatch):
    monkeypatch.setattr(foretelling, "folder_with", lambda files: None)
    rows = list(foretelling.run(True))
    assert [row["claim"] for row in rows] == ["planted words, 300 rows", "noise, 300 rows"]
    assert rows[0]["details"]["used"] == 1
