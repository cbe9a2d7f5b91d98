"""What a launch did."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Report:
    """The counts, findings and, where measured, the modelled figures of one launch.

    ``counts``:

    - ``wave_instructions``: instructions, each counted once a wave; ``by_class`` divides them; ``wmma`` of them are
      matrix instructions.
    - ``global_bytes_requested``: bytes that active lanes and scalar loads asked of global memory, broadcasts included;
      ``global_bytes_requested_by_argument`` by name. What is asked of the kernel's own arguments and of the code object
      has no name and is in the sum only; where arrays overlap, each has the bytes that it covers.
    - ``segments_32``, ``segments_64``, ``segments_128``: distinct aligned segments of so many bytes, summed over
      instructions.
    - ``unique_lines_128``: distinct 128-byte lines of the arguments' memory over the whole launch, and
      ``unique_lines_by_argument`` by name. Segments and lines are counted from where an array's allocation begins, as
      if it were aligned as a device's allocations are.
    - ``lds_cycles`` and ``lds_cycles_minimum``: LDS bank cycles and what they would be with no conflict (32 banks of 4
      bytes, equal dwords broadcast, passes of 32, 16 and 8 lanes for 4, 8 and 16 bytes a lane: assumed).

    ``findings``: what the checks have found, with ``collect=True``; without it a finding is raised.
    ``model``: with ``measure=("model",)``, cycles of an in-order issue model, labelled as modelled.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counts: dict[str, Any]
    findings: tuple[str, ...] = ()
    model: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return dataclasses.asdict(self)
