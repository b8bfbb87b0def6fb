"""2,000 film reviews with their true sentiment, and the 105 films they are about (SemBench)."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pyarrow as pa

FILES = ("reviews/reviews.csv.gz", "reviews/films.csv.gz")


def reviews(folder: Path, rows: int | None = None) -> pa.Table:
    """A row for each review, in the order of the file, with what is known of its film."""
    films: dict[str, dict[str, str]] = {}
    for film in _read(folder / FILES[1]):
        films.setdefault(film["id"], film)
    told = _read(folder / FILES[0])[:rows]
    of_film = {name: [films[each["id"]][name] for each in told] for name in ("title", "genre")}
    return pa.table(
        {
            "id": range(len(told)),
            "film": [each["id"] for each in told],
            "text": [each["reviewText"] for each in told],
            "positive": [each["scoreSentiment"] == "POSITIVE" for each in told],
            "fresh": [each["reviewState"] == "fresh" for each in told],
            "rating": [films[each["id"]]["rating"] for each in told],
            **of_film,
            "contents": [films[each["id"]]["ratingContents"] for each in told],
            "critic": [each["criticName"] for each in told],
            "paper": [each["publicatioName"] for each in told],
            "score": [each["originalScore"] for each in told],
        }
    )


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
