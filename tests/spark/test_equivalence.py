"""Native = fabric = DuckDB, on a real session, for queries, data and meshes nobody chose."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import querymesh as qm
from equivalence import as_multiset, cases, random_mesh, routings

ON_SPARK = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def frames(spark, case, partitions=2):
    return {
        name: spark.createDataFrame(table).repartition(partitions)
        for name, table in case.inputs.items()
    }


def answer(out):
    return as_multiset(out.toArrow())


@ON_SPARK
@given(cases(), st.data())
def test_any_mesh_on_the_fabric_engine_equals_duckdb(spark, case, data):
    mesh = random_mesh(data.draw, case.bound)
    assert answer(qm.run(mesh, frames(spark, case), engine="fabric")) == case.expected()


@ON_SPARK
@given(cases(python=False, lookups=False), st.data())
def test_any_mesh_on_the_native_engine_equals_duckdb(spark, case, data):
    mesh = random_mesh(data.draw, case.bound, tests_only=True)
    assert answer(qm.run(mesh, frames(spark, case), engine="native")) == case.expected()


@pytest.mark.parametrize("policy", [qm.policies.Eddy, qm.policies.Cbr])
@settings(parent=ON_SPARK, max_examples=8)
@given(case=cases(), routing=routings())
def test_any_eddy_equals_duckdb(spark, policy, case, routing):
    out = qm.run(case.query, frames(spark, case), policy=policy(routing=routing))
    assert answer(out) == case.expected()


@pytest.mark.parametrize("policy", [qm.policies.Mesh, qm.policies.Single])
@settings(parent=ON_SPARK, max_examples=6)
@given(case=cases(most=80))
def test_an_untrained_query_trains_itself_and_equals_duckdb(spark, policy, case):
    # So few rows are not worth learning from unless it is asked for.
    out = qm.run(case.query, frames(spark, case), policy=policy(sample_rows=60))
    assert answer(out) == case.expected()
