"""The command ``python -m rdna_registry``: list entries and builds, and explain a choice."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rdna_registry.decode_builds import SERVED_HEAD_SIZES
from rdna_registry.decode_lookup import builds, entries_of, explain, provenance, select
from rdna_registry.decode_tables import variants
from rdna_registry.decode_variant import KernelVariant, Layout
from rdna_registry.dtypes import DType, as_dtype
from rdna_registry.prefill_tables import prefill_entries
from rdna_registry.prefill_variant import PrefillVariant
from rdna_registry.targets import DEFAULT_TARGET, TARGETS

_FILTERS = ("head_size", "num_q_heads", "num_kv_heads", "page_size", "window", "max_query_len", "min_query_len")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 1 where `explain` finds no entry or `list` nothing that fits.

    A reader of the output that leaves early, as ``head`` does, ends the command with 0.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered goes nowhere, or the interpreter would fail to write it when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return 0
    return status


def _dtype(text: str) -> DType:
    try:
        return as_dtype(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rdna_registry", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    entries = commands.add_parser("list", help="tuned entries, all of them or those that fit the filters")
    entries.add_argument("--operation", choices=("decode", "prefill"), default="decode")
    for name in _FILTERS:
        entries.add_argument(_option(name), type=int, metavar="N")
    entries.add_argument("--dtype", type=_dtype, help="fp16 or bf16")
    entries.add_argument(
        "--batch", action=argparse.BooleanOptionalAction, help="entries for batches, or for one sequence"
    )
    entries.set_defaults(run=_list, target=DEFAULT_TARGET)

    compiled = commands.add_parser("builds", help="the decode builds that a target needs")
    compiled.add_argument("--target", choices=[target.name for target in TARGETS], default=DEFAULT_TARGET)
    compiled.set_defaults(run=_builds)

    reason = commands.add_parser("explain", help="the entry that a decode call gets, and why")
    reason.add_argument("num_q_heads", type=int)
    reason.add_argument("num_kv_heads", type=int)
    reason.add_argument("head_size", type=int)
    reason.add_argument("--max-query-len", type=int, default=1, metavar="N")
    reason.add_argument("--page-size", type=int, default=16, metavar="N")
    reason.add_argument("--layout", choices=[layout.name for layout in Layout], default=Layout.HND.name)
    reason.add_argument("--window", type=int, default=0, metavar="KEYS")
    reason.add_argument("--dtype", type=_dtype, default=DType.fp16, help="fp16 (the default) or bf16")
    reason.add_argument("--batch", action="store_true")
    reason.add_argument("--target", choices=[target.name for target in TARGETS], default=DEFAULT_TARGET)
    reason.set_defaults(run=_explain)

    for command in (entries, compiled, reason):
        command.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _list(options: argparse.Namespace) -> int:
    entries: Iterable[KernelVariant | PrefillVariant]
    if options.operation == "decode":
        entries = variants()
    else:
        entries = (entry for rows in prefill_entries().values() for entry in rows)
    found = [entry for entry in entries if _fits(entry, options)]
    if options.json:
        print(json.dumps([_as_json(entry, options.target) for entry in found], indent=1))
    else:
        for entry in found:
            print(entry.name)
        print(f"{len(found)} {options.operation} entries", file=sys.stderr)
    return 0 if found else 1


def _fits(entry: KernelVariant | PrefillVariant, options: argparse.Namespace) -> bool:
    wanted = {name: getattr(options, name) for name in (*_FILTERS, "dtype")}
    wanted["batched"] = None if options.batch is None else int(options.batch)
    return all(value is None or getattr(entry, name, None) == value for name, value in wanted.items())


def _as_json(entry: KernelVariant | PrefillVariant, target: str) -> dict[str, Any]:
    values: dict[str, Any] = {"name": entry.name, **dataclasses.asdict(entry), "dtype": entry.dtype.name}
    if isinstance(entry, KernelVariant):
        origin = provenance(entry, target)
        values |= {"layout": Layout(entry.layout).name, "build": entry.build.name, "provenance": origin}
    return values


def _builds(options: argparse.Namespace) -> int:
    listed = builds(options.target)
    if options.json:
        rows = [
            {"name": build.name, "target": options.target, **build.configuration, "entries": len(entries_of(build))}
            for build in listed
        ]
        print(json.dumps(rows, indent=1))
        return 0
    for build in listed:
        print(f"{build.name}  {len(entries_of(build))} tuned entries")
    sizes = ", ".join(map(str, SERVED_HEAD_SIZES))
    print(f"{len(listed)} builds for {options.target}, head sizes {sizes}", file=sys.stderr)
    return 0


def _explain(options: argparse.Namespace) -> int:
    call = (
        options.num_q_heads,
        options.num_kv_heads,
        options.head_size,
        options.max_query_len,
        options.page_size,
        Layout[options.layout],
        options.window,
        options.dtype,
        options.batch,
    )
    try:
        entry = select(*call, target=options.target)
    except ValueError:
        entry = None
    reason = explain(*call, target=options.target)
    if options.json:
        found = None if entry is None else _as_json(entry, options.target)
        print(json.dumps({"reason": reason, "entry": found}, indent=1))
    else:
        print(reason)
    return 1 if entry is None else 0
