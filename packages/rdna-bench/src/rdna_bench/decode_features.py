"""What each feature of a decode call costs: one shape, launched without any, with each alone, and with all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rdna_kernels import EmulatedExecutor, LaunchRecord, decode_attention
from rdna_registry import KernelVariant, plan_decode, select
from rich import box
from rich.table import Table

from rdna_bench.fitted import Fitted
from rdna_bench.synthetic import DecodeInputs, DecodeRun, DecodeShape, make_inputs
from rdna_bench.traffic import requested_and_scratch

FEATURES = ("sinks", "softcap", "alibi", "lse", "plan")
OFF, ALL = "off", "all"

_HND = 1
_SOFTCAP = 30.0


@dataclass(frozen=True)
class FeatureCost:
    """Counts of one launch; ``added`` is its share of wave-instructions beyond the launch without features.

    ``bytes_requested`` leaves out ``bytes_scratch``: what was written to and read from partial results and counters.
    """

    features: str
    build: str
    workgroups: int
    wave_instructions: int
    added: float
    transcendental: int
    lds_instructions: int
    bytes_requested: int
    bytes_scratch: int


class FeaturesRun:
    """The launches of one shape; use in order: ``__init__``, ``run``."""

    def __init__(self, shape: DecodeShape, *, target: str, seed: int = 0) -> None:
        """Check that the shape can be served on ``target``; errors are those of ``DecodeRun``."""
        DecodeRun(shape, target=target, seed=seed)
        self.shape, self.target, self.seed = shape, target, seed
        self.costs: list[FeatureCost] = []
        self.passed = True

    def run(self) -> None:
        """Make the inputs once and launch with nothing, each feature, and all of them."""
        inputs = make_inputs(self.shape, self.seed)
        executor = EmulatedExecutor(self.target, seed=self.seed)
        for name in (OFF, *FEATURES, ALL):
            used = FEATURES if name == ALL else tuple(feature for feature in FEATURES if feature == name)
            self.costs.append(self._launch(executor, inputs, name, used))

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: sizes in bytes."""
        return {
            "command": "decode --features",
            **asdict(self.shape),
            "target": self.target,
            "executor": EmulatedExecutor.name,
            "seed": self.seed,
            "costs": [asdict(cost) for cost in self.costs],
        }

    def _launch(
        self, executor: EmulatedExecutor, inputs: DecodeInputs, name: str, used: tuple[str, ...]
    ) -> FeatureCost:
        records: list[LaunchRecord] = []
        decode_attention(
            inputs.q,
            inputs.kv_cache,
            inputs.block_table,
            inputs.seq_lens,
            max_query_len=self.shape.max_query_len,
            window=self.shape.window,
            executor=executor,
            report=records,
            **_arguments(self.shape, self.target, inputs, used),
        )
        [record] = records
        counts = record.counts
        instructions = counts["wave_instructions"]
        off = self.costs[0].wave_instructions if self.costs else instructions
        return FeatureCost(
            name,
            record.build,
            record.workgroups,
            instructions,
            instructions / off - 1,
            counts["by_class"].get("trans", 0),
            counts["by_class"].get("lds", 0),
            *requested_and_scratch(counts),
        )


def _arguments(shape: DecodeShape, target: str, inputs: DecodeInputs, used: tuple[str, ...]) -> dict[str, Any]:
    heads = shape.num_q_heads
    arguments: dict[str, Any] = {}
    if "sinks" in used:
        arguments["sinks"] = np.zeros(heads, np.float32)
    if "softcap" in used:
        arguments["softcap"] = _SOFTCAP
    if "alibi" in used:
        # The slopes of ALiBi's paper, of the heads of a whole number of octaves.
        arguments["alibi_slopes"] = (2.0 ** (-8 * np.arange(1, heads + 1) / heads)).astype(np.float32)
    if "lse" in used:
        arguments["lse"] = np.empty(inputs.q.shape[:2], np.float32)
    if "plan" in used:
        entry = _entry(shape, target)
        lengths = [shape.max_query_len] * shape.num_seqs
        # As many as the launch without a plan has.
        workgroups = shape.num_seqs * shape.num_kv_heads * entry.row_groups * entry.max_segments
        arguments["plan"] = plan_decode(lengths, inputs.seq_lens, entry, shape.window, workgroups)
    return arguments


def _entry(shape: DecodeShape, target: str) -> KernelVariant:
    heads = shape.num_q_heads, shape.num_kv_heads, shape.head_size
    call = (*heads, shape.max_query_len, shape.page_size, _HND, shape.window, shape.dtype)
    return select(*call, batch=shape.num_seqs > 1, target=target)


def features_table(run: FeaturesRun) -> Fitted:
    """A launch a row, for people."""
    shape = run.shape
    heads = f"{shape.num_q_heads}/{shape.num_kv_heads} x {shape.head_size}"
    tokens = f"{shape.num_seqs} x {shape.context} tokens, {shape.max_query_len} new"
    table = Table(
        title=f"{heads}, {tokens}, {shape.dtype}, on {run.target}, emulated",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("features", no_wrap=True)
    headings = (
        "workgroups",
        "wave-instructions",
        "added",
        "transcendental",
        "LDS",
        "bytes requested",
        "of scratch besides",
    )
    for name in headings:
        table.add_column(name, justify="right", no_wrap=True)
    for cost in run.costs:
        table.add_row(
            cost.features,
            str(cost.workgroups),
            f"{cost.wave_instructions:,}",
            f"{cost.added:+.1%}",
            f"{cost.transcendental:,}",
            f"{cost.lds_instructions:,}",
            f"{cost.bytes_requested:,}",
            f"{cost.bytes_scratch:,}",
        )
    return Fitted(table, ("workgroups", "LDS", "transcendental", "of scratch besides"))
