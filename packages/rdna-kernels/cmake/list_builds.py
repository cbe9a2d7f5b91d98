"""Lists what CMake builds, and writes the header of the kernels' arguments.

Run by CMakeLists.txt at configure time, with the rdna_registry of the build environment. It writes, only where the
content changes: ``builds.cmake`` (one call of ``device_object`` for each build and target), ``builds.json`` (the same,
for write_manifest.py) and ``include/decode_arguments.h``.
"""

from __future__ import annotations

import argparse
import json
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rdna_registry


def arguments_header(fields: Sequence[tuple[str, str, str]], features: Mapping[str, int]) -> str:
    """The C header of ``struct DecodeArguments``, from the fields' (name, C type, meaning) and the features' bits."""
    lines = ["// Made from decode_arguments.py.", "#pragma once", "#include <stdint.h>", "", "struct DecodeArguments {"]
    lines += [f"  {c_type} {name};  // {meaning}" for name, c_type, meaning in fields]
    lines += ["};", ""]
    lines += [f"constexpr int kFeature{name.capitalize()} = {bit};" for name, bit in features.items()]
    return "\n".join([*lines, ""])


def builds() -> list[dict[str, Any]]:
    """Every build of every target, as plain values."""
    return [
        {
            "target": target.name,
            "name": build.name,
            "operation": build.operation,
            "configuration": build.configuration,
            "source": build.source,
            "definitions": build.definitions,
        }
        for target in rdna_registry.TARGETS
        for build in rdna_registry.builds(target.name)
    ]


def cmake_calls(listed: Sequence[dict[str, Any]]) -> str:
    """The CMake file that declares the code objects."""
    return "".join(
        "device_object({target} {name} {source} {definitions})\n".format(
            **{**build, "definitions": " ".join(f"{key}={value}" for key, value in build["definitions"].items())}
        )
        for build in listed
    )


def write(path: Path, text: str) -> None:
    """Writes a file unless it holds that text already, for its time stamp decides what is built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arguments", type=Path, required=True, help="decode_arguments.py")
    parser.add_argument("--out", type=Path, required=True, help="the build folder")
    options = parser.parse_args()
    listed = builds()
    decode = runpy.run_path(str(options.arguments))
    header = arguments_header(decode["DECODE_ARGUMENTS"], decode["FEATURES"])
    write(options.out / "include" / "decode_arguments.h", header)
    write(options.out / "builds.json", json.dumps(listed, indent=1))
    write(options.out / "builds.cmake", cmake_calls(listed))


if __name__ == "__main__":
    main()
