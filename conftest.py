from __future__ import annotations

import pytest
from hypothesis import settings

# A loaded machine is no failure: what hangs is ended by pytest-timeout.
settings.register_profile("workspace", settings.default, deadline=None)
settings.load_profile("workspace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")
    parser.addoption("--all", action="store_true", help="run whole sets of cases, of which a sample runs otherwise")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    slow = [item for item in items if "slow" in item.keywords]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
