"""Where a measurement was made."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Machine:
    """The host and the interpreter; ``cores`` are those that this process may use, ``load`` the runnable tasks of the
    last minute, None where the system does not count them."""

    processor: str
    cores: int
    load: float | None
    system: str
    python: str
    numpy: str

    @classmethod
    def here(cls) -> Machine:
        """This machine, now."""
        return cls(
            processor=_processor(),
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            load=round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
            system=f"{platform.system()} {platform.machine()}",
            python=f"{platform.python_implementation()} {platform.python_version()}",
            numpy=np.__version__,
        )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())
