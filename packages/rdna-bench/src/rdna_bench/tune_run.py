"""``rdna-bench tune``: launch knobs of decode shapes, chosen with the emulator's issue model."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rdna_kernels import Catalogue
from rdna_registry import Build, DType, KernelVariant
from rdna_registry.decode_modelled import CLEAR_GAIN_PERCENT, ModelledRow, modelled_table, parse_modelled_rows
from rdna_registry.decode_tables import shape_of, tuned_entry

from rdna_bench.decode_inputs import DecodeInputs, DecodeProblem, Measured, model_executor, segments_of
from rdna_bench.files import read_text, require_writable
from rdna_bench.machine import Machine
from rdna_bench.published import published_counts
from rdna_bench.tune_search import Tuned, search
from rdna_bench.tune_space import candidates
from rdna_bench.tune_state import TuneState

_LONGEST_CONTEXT = 2**20  # its cache fits in memory


class BudgetError(Exception):
    """The seconds that a run may take are over."""


class TuneRun:
    """One run of ``rdna-bench tune``; use in order: ``__init__``, ``run``, ``write``."""

    def __init__(
        self,
        problems: Sequence[DecodeProblem],
        *,
        target: str,
        contexts: Sequence[int],
        state: Path,
        budget_seconds: float | None = None,
    ) -> None:
        """ValueError for a shape that no build serves, for a context shorter than a query, for another run's state."""
        self.problems, self.target, self.contexts = list(problems), target, tuple(sorted(set(contexts)))
        self.budget_seconds = budget_seconds
        self.machine = Machine.here()
        self.executor = model_executor(target)
        self.date = datetime.date.today().isoformat()
        self.tuned: dict[DecodeProblem, Tuned] = {}
        self.measured = 0
        """Launches that this run has made."""
        self._before = {problem: _entry_before(problem, target) for problem in self.problems}
        if self.contexts[-1] > _LONGEST_CONTEXT:
            raise ValueError(f"a context of {self.contexts[-1]} tokens; at most {_LONGEST_CONTEXT} are tuned for")
        longest = max(self.problems, key=lambda problem: problem.max_query_len)
        if self.contexts[0] < longest.max_query_len:
            raise ValueError(f"a context of {self.contexts[0]} tokens is shorter than the query of {longest.name}")
        self._catalogue = Catalogue.installed()
        records = [record for record in self._catalogue.records if record.target == target]
        self._builds = [Build.from_name(record.name) for record in records]
        self._digests: dict[str, str] = {}
        emulator = f"rdna-emulator {version('rdna-emulator')}"
        self.model = f"the model of the {self.executor.name} executor ({emulator})"
        self._state = TuneState(state, {"format": 2, "target": target, "emulator": emulator})
        self._deadline = float("inf")

    @property
    def passed(self) -> bool:
        """True: tuning has no verdict."""
        return True

    @property
    def complete(self) -> bool:
        """Whether every shape is tuned; else the budget was spent, and another run goes on."""
        return len(self.tuned) == len(self.problems)

    @property
    def state_path(self) -> Path:
        """The file of launches."""
        return self._state.path

    @property
    def launches_in_state(self) -> int:
        """Launches that the file holds."""
        return len(self._state)

    def run(self, progress: Callable[[str, int, int], None]) -> None:
        """Tune shape by shape; ``progress(stage, done, total)`` hears of it.

        An interrupt (KeyboardInterrupt) goes through: whatever was launched until then is in the state.
        """
        if self.budget_seconds is not None:
            self._deadline = time.monotonic() + self.budget_seconds
        for done, problem in enumerate(self.problems):
            progress("shapes", done, len(self.problems))
            try:
                self.tuned[problem] = self._tune(problem)
            except BudgetError:
                return
        progress("shapes", len(self.problems), len(self.problems))

    def rows(self) -> list[ModelledRow]:
        """A row of the target for each tuned shape whose knobs the model would change, for the registry's table."""
        return [
            self._row(problem, tuned)
            for problem, tuned in self.tuned.items()
            if tuned.entry != tuned.before and tuned.gain_percent > 0
        ]

    def write(self, path: Path) -> None:
        """Put the rows into a table, in place of the target's rows of these shapes; others stay. It changes at once.

        ValueError where ``path`` exists and is no such table.
        """
        tuned = {(self.target, shape_of(tuned.entry)._replace(dtype=DType.fp16)) for tuned in self.tuned.values()}
        kept = [row for row in _read_table(path) if (row.target, shape_of(row.variant)) not in tuned]
        rows = kept + self.rows()
        new = _unfinished(path)
        new.write_text(modelled_table(rows), encoding="utf-8")
        os.replace(new, path)

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in microseconds, sizes in bytes."""
        return {
            "command": "tune",
            "machine": asdict(self.machine),
            "target": self.target,
            "executor": self.executor.name,
            "model": self.model,
            "date": self.date,
            "contexts": list(self.contexts),
            "state": str(self.state_path),
            "complete": self.complete,
            "launches": {"made": self.measured, "in_state": self.launches_in_state},
            "clear_gain_percent": CLEAR_GAIN_PERCENT,
            "shapes": [_as_dict(problem, tuned) for problem, tuned in self.tuned.items()],
        }

    def _tune(self, problem: DecodeProblem) -> Tuned:
        inputs: dict[int, DecodeInputs] = {}

        def at(context: int) -> DecodeInputs:
            if context not in inputs:
                inputs[context] = DecodeInputs(problem, context)
            return inputs[context]

        def measure(entry: KernelVariant, context: int) -> Measured:
            if segments_of(entry, context) == entry.max_segments:
                entry = dataclasses.replace(entry, min_segment_blocks=1)  # the same launch, whatever the least segment
            code = self._digest(entry.build.name)
            if (known := self._state.get(entry.name, context, code)) is not None:
                return known
            if time.monotonic() > self._deadline:
                raise BudgetError
            measured = at(context).measure(self.executor, entry)
            self._state.put(entry.name, context, code, measured)
            self.measured += 1
            return measured

        needed = [problem.needed_bytes(context) for context in self.contexts]
        before = self._before[problem]
        found = candidates(problem, self._builds, self.contexts, before.row_groups)
        return search(before, found, self.contexts, needed, measure, _most_instructions(problem))

    def _digest(self, build: str) -> str:
        if build not in self._digests:
            self._digests[build] = hashlib.sha256(self._catalogue.code(build, self.target)).hexdigest()[:16]
        return self._digests[build]

    def _row(self, problem: DecodeProblem, tuned: Tuned) -> ModelledRow:
        published = tuned_entry(shape_of(tuned.entry))
        heads = f"{problem.num_q_heads}/{problem.num_kv_heads} heads of {problem.head_size}"
        contexts = ", ".join(map(str, self.contexts))
        source = f"tuned with {self.model}, {self.date}, contexts {contexts}"
        models = published[1].models if published else heads
        return ModelledRow(tuned.entry, self.target, tuned.gain_percent, models, source)


def require_files(state: Path, output: Path | None) -> None:
    """ValueError for a path where no file can be put, for one that is given twice, and for an output that is another
    file than a table of modelled rows."""
    require_writable("--state", state)
    if output is None:
        return
    if output.absolute() == state.absolute():
        raise ValueError(f"{output} is given twice, as --state and as --output; name another file")
    require_writable("--output", output)
    require_writable("the file that --output is written to first", _unfinished(output))
    _read_table(output)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _read_table(path: Path) -> tuple[ModelledRow, ...]:
    return parse_modelled_rows(path.name, read_text("--output", path)) if path.exists() else ()


def _most_instructions(problem: DecodeProblem) -> dict[int, float]:
    """The fewest instructions that another kernel is known to issue for the shape, by context."""
    heads = problem.num_q_heads, problem.num_kv_heads, problem.head_size, problem.max_query_len
    found: dict[int, float] = {}
    for row in published_counts():
        if heads == (row.num_q_heads, row.num_kv_heads, row.head_size, row.max_query_len) and not problem.window:
            found[row.context] = min(found.get(row.context, math.inf), 1e3 * row.kilo_instructions)
    return found


def _entry_before(problem: DecodeProblem, target: str) -> KernelVariant:
    try:
        return problem.entry(target, modelled=False)
    except ValueError as error:
        raise ValueError(f"{problem.name}: {error}") from None


def _as_dict(problem: DecodeProblem, tuned: Tuned) -> dict[str, Any]:
    return {
        **asdict(problem),
        "gain_percent": tuned.gain_percent,
        "gains": tuned.gains,
        "entry": tuned.entry.name,
        "launches": {context: asdict(launch) for context, launch in tuned.launches.items()},
        "entry_before": tuned.before.name,
        "launches_before": {context: asdict(launch) for context, launch in tuned.launches_before.items()},
    }
