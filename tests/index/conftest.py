import pytest

from querymesh.index import kernels  # noqa: F401
from querymesh.index.compiled import compile_all


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    """Compile before the clock of the first test runs."""
    compile_all()
