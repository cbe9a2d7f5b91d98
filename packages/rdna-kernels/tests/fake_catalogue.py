"""Catalogues written by tests: of any bytes, or of every build of the registry with no machine code in any."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rdna_kernels import Catalogue
from rdna_registry import builds

RESOURCES = {
    "vgpr": 96,
    "sgpr": 40,
    "lds_bytes": 4096,
    "scratch_bytes": 0,
    "vgpr_spills": 0,
    "sgpr_spills": 0,
    "waves_per_simd": 16,
    "code_bytes": 4,
    "compiler": "none",
}


def entry(name: str, target: str, **changes: Any) -> dict[str, Any]:
    """A manifest entry."""
    return {"name": name, "operation": "decode", "configuration": {}, "target": target, **RESOURCES, **changes}


def write_catalogue(folder: Path, target: str, codes: Mapping[str, bytes]) -> Catalogue:
    """A catalogue of these code objects, by build name, written into a folder."""
    (folder / target).mkdir(parents=True)
    for name, code in codes.items():
        (folder / target / f"{name}.hsaco").write_bytes(code)
    manifest = {"compiler": "none", "builds": [entry(name, target) for name in codes]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return Catalogue(folder)


def fake_catalogue(folder: Path, target: str = "gfx1151") -> Catalogue:
    """A catalogue of every build of the registry; each object is its own name's bytes."""
    return write_catalogue(folder, target, {build.name: build.name.encode() for build in builds(target)})
