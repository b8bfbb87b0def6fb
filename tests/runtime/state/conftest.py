import pytest

from state_world import World


@pytest.fixture
def world(tmp_path):
    """A folder with the state of two shards."""
    return World(str(tmp_path / "state"))
