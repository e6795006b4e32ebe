"""`--rewrite` writes what the scheduler decides into the transcripts. Read the difference: they are the specification."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write new expectations into tests/core/transcripts")


@pytest.fixture
def rewrites(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite", default=False))
