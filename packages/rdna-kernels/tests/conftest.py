from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from rdna_kernels import EmulatedExecutor, Executor
from rdna_registry import TARGETS

_launches: Counter[str] = Counter()


class CountedExecutor(EmulatedExecutor):
    """The emulated executor; the run's summary says how much ran on it."""

    def launch(self, *arguments: Any, **options: Any) -> Mapping[str, Any]:
        counts = super().launch(*arguments, **options)
        _launches[f"the emulator as {self.target}, checks: {self.checks or 'off'}"] += 1
        return counts


@pytest.fixture(scope="session", params=[target.name for target in TARGETS])
def target(request: pytest.FixtureRequest) -> str:
    """Each target in turn; `-k gfx1100` runs one."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def executor(target: str) -> Executor:
    """Where the kernels of a target execute, with every check on."""
    return CountedExecutor(target, checks="all")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    worst: dict[str, float] = {}
    for test in terminalreporter.getreports("passed"):
        for name, value in test.user_properties:
            if name.startswith("largest "):
                worst[name] = max(float(value), worst.get(name, 0.0))
    for name, value in sorted(worst.items()):
        terminalreporter.write_line(f"rdna-kernels: {name}: {value:.3g}")
    for where, count in sorted(_launches.items()):
        terminalreporter.write_line(f"rdna-kernels: {count} launches on {where}")
