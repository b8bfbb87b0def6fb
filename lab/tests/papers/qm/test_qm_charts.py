import pytest

from querymesh_lab.drawing import write
from querymesh_lab.papers.qm import qm_charts as charts
from querymesh_lab.papers.qm.generated import time_search
from querymesh_lab.papers.qm.over_time import OverTime
from querymesh_lab.papers.qm.starts import STOPS, Quality

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def test_each_figure_is_drawn_as_svg(tmp_path):
    seen = OverTime(60.0, {"QM": [(0.0, 0), (1.0, 5)], "SP": [(0.0, 0), (1.0, 3)]})
    points = [time_search(n, 3) for n in (3, 4)]
    drawn = {
        **charts.overhead(1.0, 3.0),
        **charts.over_time("11a", seen),
        **charts.search_times(points, points),
        **charts.starts([Quality("extreme-1", stop, 2.0, 1.5, 1.0) for stop in STOPS]),
    }
    paths = write(tmp_path, drawn, "qm")
    assert [path.name for path in paths] == [
        "qm-figure-10c.svg", "qm-figure-11a.svg", "qm-figure-12.svg",
        "qm-figure-12-operators.svg", "qm-figure-13.svg",
    ]  # fmt: skip
    for path in paths:
        assert path.read_text(encoding="utf-8").startswith("<svg")
