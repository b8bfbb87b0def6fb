import pytest

from querymesh.index.kernels import kernels  # noqa: F401
from querymesh.index.kernels.compiled import compile_all


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    """Compile before the clock of the first test runs."""
    compile_all()
