"""What each policy takes: its own options and no others, checked when it is made."""

from dataclasses import fields

import pytest

import querymesh as qm
from querymesh.cost.utility import Weights
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.chart.charting import Charting
from querymesh.optimize.rate.goals import First, Last, MostBy
from querymesh.optimize.train.training import Training
from querymesh.policies import Cbr, Chart, Eddy, Mesh, Rate, Single
from querymesh.policies.policy import Policy

TRAINED = ("sample_rows", "accuracy", "tolerance", "seed", "adapt", "training")
PLANNED = ("sample_rows", "budget", "seed")
OPTIONS = {
    Single: TRAINED,
    Mesh: TRAINED,
    Eddy: ("chunk", "seed", "routing"),
    Cbr: ("chunk", "seed", "routing"),
    Rate: (*PLANNED, "goal"),
    Chart: (*PLANNED, "weights", "charting"),
}
VALUES = {
    "accuracy": 0.9,
    "adapt": False,
    "budget": 0.5,
    "charting": Charting(),
    "chunk": 10,
    "goal": Last(),
    "routing": Routing(),
    "sample_rows": 100,
    "seed": 3,
    "tolerance": 0.1,
    "training": Training(),
    "weights": (1, 1),
}

each_policy = pytest.mark.parametrize("policy", OPTIONS, ids=lambda policy: policy.name)


@each_policy
def test_every_option_has_a_default_and_a_name(policy: type[Policy]) -> None:
    assert {field.name for field in fields(policy)} == set(OPTIONS[policy])
    assert policy() == policy()
    with pytest.raises(TypeError, match="positional"):
        policy(100)


@each_policy
def test_an_option_of_another_policy_is_refused(policy: type[Policy]) -> None:
    for name, value in VALUES.items():
        if name in OPTIONS[policy]:
            policy(**{name: value})
            continue
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            policy(**{name: value})


@each_policy
def test_a_policy_is_not_changed_once_it_is_made(policy: type[Policy]) -> None:
    with pytest.raises(AttributeError):
        policy().seed = 7


@pytest.mark.parametrize("policy", [Single, Mesh])
def test_everyday_options_of_training_go_before_training(policy: type[Mesh]) -> None:
    assert policy().training == Training()
    assert policy().adaptation == Adaptation()
    assert not policy().must_adapt
    told = policy(
        sample_rows=500,
        accuracy=0.95,
        tolerance=0.05,
        seed=3,
        training=Training(sample_rows=9, folds=4, seed=8, accuracy=0.5),
    ).training
    assert (told.sample_rows, told.accuracy, told.tolerance, told.seed) == (500, 0.95, 0.05, 3)
    assert told.folds == 4, "what is not told stays as training has it"
    kept = policy(training=Training(sample_rows=9, seed=8)).training
    assert (kept.sample_rows, kept.seed) == (9, 8)


def test_a_sample_may_be_larger_than_the_most_that_doubling_would_take() -> None:
    large = Mesh(sample_rows=100_000, accuracy=0.9).training
    assert (large.sample_rows, large.most_sample_rows) == (100_000, 100_000)
    assert Mesh(sample_rows=10).training.most_sample_rows == Training().most_sample_rows


def test_adapting_is_off_on_or_said_in_so_many_words() -> None:
    assert Mesh(adapt=False).adaptation is None
    eager = Adaptation(budget=0.5)
    assert Mesh(adapt=eager).adaptation == eager
    assert Mesh(adapt=eager).must_adapt
    assert not Mesh(adapt=True).must_adapt


@pytest.mark.parametrize("policy", [Eddy, Cbr])
def test_everyday_options_of_routing_go_before_routing(policy: type[Eddy]) -> None:
    assert policy().routing == Routing()
    told = policy(chunk=10, seed=3, routing=Routing(chunk=99, seed=9, sample=70)).routing
    assert (told.chunk, told.seed, told.sample) == (10, 3, 70)
    kept = policy(routing=Routing(chunk=99, seed=9)).routing
    assert (kept.chunk, kept.seed) == (99, 9)


def test_the_weights_of_a_chart_go_before_its_charting() -> None:
    assert Chart().charting == Charting()
    told = Chart(weights=(0.1, 0.9), charting=Charting(k=5, weights=(1, 1))).charting
    assert (told.w, told.k) == (Weights(0.1, 0.9), 5)
    assert Chart(charting=Charting(weights=(1, 3))).charting.w == Weights(1.0, 3.0)


def test_policies_that_plan_take_a_sample_as_training_does() -> None:
    assert Rate().training == Chart().training == Training()
    assert Rate(sample_rows=100, seed=3).training == Training(sample_rows=100, seed=3)


@pytest.mark.parametrize("goal", [None, MostBy(10), First(20), Last()])
def test_a_rate_has_one_of_three_goals_or_none(goal: object) -> None:
    assert Rate(goal=goal).goal == goal


def test_each_paper_s_settings_are_one_call() -> None:
    assert Mesh.paper().training == Training.preset("table-1")
    assert Single.paper("table-3", seed=3).training == Training.preset("table-3", seed=3)
    assert (Cbr.paper().routing, Eddy.paper().routing) == (PAPER, PAPER)
    assert (Cbr.paper(chunk=7).routing.chunk, Cbr.paper(chunk=7).routing.by_cost) == (7, False)
    chart = Chart.paper(weights=(0.1, 0.9)).charting
    assert (chart.k, chart.model, chart.w) == (10, "paper", Weights(0.1, 0.9))
    assert [type(made) for made in (Mesh.paper(), Cbr.paper(), Eddy.paper())] == [Mesh, Cbr, Eddy]
    with pytest.raises(qm.OptionError, match=r"unknown preset 'table-2': .* table-1, table-3"):
        Mesh.paper("table-2")


@pytest.mark.parametrize(
    ("policy", "wrong", "said"),
    [
        (Mesh, {"sample_rows": 0}, "sample_rows must be at least 1, not 0"),
        (Mesh, {"sample_rows": "many"}, "sample_rows must be an integer, not 'many'"),
        (Mesh, {"accuracy": 2}, "accuracy is a share between 0 and 1, not 2"),
        (Single, {"tolerance": -1}, "tolerance is a share from 0"),
        (Single, {"seed": -1}, "seed must be at least 0, not -1"),
        (Mesh, {"adapt": 0.01}, r"True, False or a querymesh\.policies\.Adaptation, not float"),
        (Mesh, {"training": {}}, r"training is a querymesh\.policies\.Training, not dict"),
        (Eddy, {"chunk": 0}, "chunk must be at least 1, not 0"),
        (Eddy, {"chunk": 2.5}, "chunk must be an integer, not 2.5"),
        (Cbr, {"seed": -1}, "seed must be at least 0, not -1"),
        (Cbr, {"routing": {}}, r"routing is a querymesh\.policies\.Routing, not dict"),
        (Rate, {"goal": "most by 5s"}, r"policies\.MostBy\(60\), First\(1000\) or Last\(\), not"),
        (Rate, {"goal": MostBy}, "goal is"),
        (Rate, {"sample_rows": 0}, "sample_rows must be at least 1"),
        (Rate, {"budget": "much"}, "budget must be a number, not 'much'"),
        (Chart, {"budget": 2}, "a share of the time, from 0 to 1, not 2: 0 plans once"),
        (Chart, {"weights": (1,)}, "weights are two numbers"),
        (Chart, {"weights": (0, 0)}, "both 0"),
        (Chart, {"charting": {}}, r"charting is a querymesh\.policies\.Charting, not dict"),
    ],
    ids=str,
)
def test_a_wrong_value_is_an_option_error_and_a_value_error(
    policy: type[Policy], wrong: dict[str, object], said: str
) -> None:
    with pytest.raises(qm.OptionError, match=said) as told:
        policy(**wrong)
    assert isinstance(told.value, ValueError)
    assert isinstance(told.value, qm.QueryMeshError)
