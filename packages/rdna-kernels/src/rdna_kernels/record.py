"""What one launch did, for callers that pass `report=[]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LaunchRecord:
    """One kernel launch.

    `build` is the build's name (also its object file and manifest entry), `executor` the executor's name, `workgroups`
    the size of the grid, `counts` what the executor counted (the emulator's counts; empty on hardware), `provenance`
    where the launch's configuration comes from: tuned or derived, and from what. `device` is the device's name and
    `runtime` what ran it, with its version.
    """

    operation: str
    build: str
    target: str
    executor: str
    workgroups: int
    counts: Mapping[str, Any]
    provenance: str
    device: str = ""
    runtime: str = ""
