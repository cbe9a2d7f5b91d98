"""Compiles triton_kernels.py for gfx1151, which needs no GPU.

Needs the package triton (dependency group ``triton`` of the workspace). Run it after a change to triton_kernels.py or
to CONFIGURATIONS in triton_cases.py, from any folder::

    python packages/rdna-emulator/tests/compile_triton.py

It writes ``triton_objects/NAME.hsaco`` and ``triton_objects/objects.json``, which test_triton.py runs. For each object
the JSON has ``shared`` (bytes of LDS that a launch gives as ``dynamic_lds``), ``num_warps`` (waves of a workgroup),
``arguments`` (name and type, in order; two null pointers follow), ``constants``, ``fingerprint`` (of the source) and
``first_line`` (of the kernel in triton_kernels.py, where the object has line tables).
"""

from __future__ import annotations

import json
import tempfile
from typing import Any

import triton
import triton_cases
import triton_kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def compile_one(name: str) -> tuple[bytes, dict[str, Any]]:
    """The code object of a configuration of triton_cases, and its entry of objects.json."""
    configuration = triton_cases.CONFIGURATIONS[name]
    function = triton.jit(getattr(triton_kernels, configuration.kernel))
    function.file_name = triton_cases.SOURCE.name  # line tables then hold no path of this machine
    order = {argument: k for k, argument in enumerate(function.arg_names)}
    signature = configuration.arguments | dict.fromkeys(configuration.constants, "constexpr")
    pointers = (argument for argument, kind in configuration.arguments.items() if kind.startswith("*"))
    source = ASTSource(
        function,
        {argument: signature[argument] for argument in order},
        constexprs={(order[argument],): value for argument, value in configuration.constants.items()},
        attrs={(order[argument],): [["tt.divisibility", 16]] for argument in (*pointers, *configuration.aligned)},
    )
    options = {"num_warps": configuration.num_warps, "enable_fp_fusion": True}
    with tempfile.TemporaryDirectory() as cache, triton.knobs.cache.scope(), triton.knobs.compilation.scope():
        triton.knobs.cache.dir = cache
        triton.knobs.compilation.disable_line_info = not configuration.lines
        compiled = triton.compile(source, target=GPUTarget("hip", triton_cases.TARGET, 32), options=options)
    entry = {
        "arguments": configuration.arguments,
        "constants": configuration.constants,
        "num_warps": compiled.metadata.num_warps,
        "shared": compiled.metadata.shared,
        "fingerprint": triton_cases.fingerprint(name),
    }
    if configuration.lines:
        entry["first_line"] = function.starting_line_number
    return compiled.asm["hsaco"], entry


def main() -> None:
    """Writes all objects."""
    triton_cases.OBJECTS.mkdir(exist_ok=True)
    entries = {}
    for name in triton_cases.CONFIGURATIONS:
        code, entries[name] = compile_one(name)
        (triton_cases.OBJECTS / f"{name}.hsaco").write_bytes(code)
        print(f"{name}: {len(code)} bytes, shared {entries[name]['shared']}")
    found = {"triton": triton.__version__, "target": triton_cases.TARGET, "objects": entries}
    (triton_cases.OBJECTS / "objects.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
