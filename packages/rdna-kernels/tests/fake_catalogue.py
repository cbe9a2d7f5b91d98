"""A catalogue that has every build of the registry and no machine code in any."""

from __future__ import annotations

import json
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


def fake_catalogue(folder: Path, target: str = "gfx1151") -> Catalogue:
    """Write the catalogue into a folder; each object is its own name's bytes."""
    (folder / target).mkdir(parents=True)
    entries = []
    for build in builds(target):
        entries.append(entry(build.name, target))
        (folder / target / f"{build.name}.hsaco").write_bytes(build.name.encode())
    (folder / "manifest.json").write_text(json.dumps({"compiler": "none", "builds": entries}))
    return Catalogue(folder)
