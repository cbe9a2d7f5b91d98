from __future__ import annotations

import subprocess
import sys

import rdna_registry


def test_public_names() -> None:
    assert all(hasattr(rdna_registry, name) for name in rdna_registry.__all__)


def test_importing_needs_numpy_only() -> None:
    code = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "ml_dtypes", "rdna_kernels", "rdna_emulator", "octave_quant"}:
            raise AssertionError(f"{name} is imported")
sys.meta_path.insert(0, Only())
import rdna_registry
rdna_registry.select(9, 3, 64, 1, 16, 1, 0, "bf16")
rdna_registry.plan_prefill([0, 5], [5], rdna_registry.prefill_variants(14, 2, 64, 16, 0, "fp16")[0], 0, 80)
rdna_registry.make_scratch(rdna_registry.variants()[0], None)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
