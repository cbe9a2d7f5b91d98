"""Kernels of one DS instruction each, and NumPy models of DS and global atomics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from assembly import AssemblyKernel

LDS_BYTES = 16384
DWORDS = LDS_BYTES // 4

# Arguments: memory that fills LDS and takes it back [4096], addresses [32], data [8, 32], mask [1], results [4, 32].
PROLOGUE = """
  s_load_b256 s[4:11], s[0:1], 0x0
  s_load_b64 s[12:13], s[0:1], 0x20
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v2, 2, v0
  s_mov_b32 s15, 0
  v_mov_b32_e32 v3, v2
  s_waitcnt lgkmcnt(0)
FILL_{name}:
  global_load_b32 v4, v3, s[4:5]
  s_waitcnt vmcnt(0)
  ds_store_b32 v3, v4
  v_add_nc_u32_e32 v3, 0x80, v3
  s_add_u32 s15, s15, 1
  s_cmp_lg_u32 s15, {rounds}
  s_cbranch_scc1 FILL_{name}
  global_load_b32 v1, v2, s[6:7]
{loads}
  s_load_b32 s14, s[10:11], 0x0
  v_mov_b32_e32 v16, 0x11111111
  v_mov_b32_e32 v17, 0x22222222
  v_mov_b32_e32 v18, 0x33333333
  v_mov_b32_e32 v19, 0x44444444
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_mov_b32 exec_lo, s14
  {instruction}
  s_waitcnt lgkmcnt(0)
  s_mov_b32 exec_lo, -1
{stores}
  s_mov_b32 s15, 0
  v_mov_b32_e32 v3, v2
COPY_{name}:
  ds_load_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_b32 v3, v4, s[4:5]
  v_add_nc_u32_e32 v3, 0x80, v3
  s_add_u32 s15, s15, 1
  s_cmp_lg_u32 s15, {rounds}
  s_cbranch_scc1 COPY_{name}
"""


def lds_kernel(name: str, instruction: str, lds_bytes: int = LDS_BYTES) -> AssemblyKernel:
    """``instruction`` finds its addresses in v1 and data in v[8:15], and leaves results in v[16:19]."""
    loads = "\n".join(f"  global_load_b32 v{8 + k}, v2, s[8:9] offset:{128 * k}" for k in range(8))
    stores = "\n".join(f"  global_store_b32 v2, v{16 + k}, s[12:13] offset:{128 * k}" for k in range(4))
    lines = PROLOGUE.format(name=name, instruction=instruction, loads=loads, stores=stores, rounds=lds_bytes // 128)
    return AssemblyKernel(name, lines, ("pointer",) * 5, lds_bytes=lds_bytes, block=32)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _floating(value: int, bits: int) -> float:
    return float(np.array([value], f"u{bits // 8}").view(f"f{bits // 8}")[0])


def _float_bits(value: float, bits: int) -> int:
    return int(np.array([value], f"f{bits // 8}").view(f"u{bits // 8}")[0])


def _add_float(old: int, data: int, bits: int) -> int:
    kind = np.dtype(f"f{bits // 8}").type
    return _float_bits(float(kind(_floating(old, bits)) + kind(_floating(data, bits))), bits)


Atomic = Callable[[int, int, int, int], int]  # old value, data, second data, bits
ATOMICS: dict[str, Atomic] = {
    "add": lambda old, data, second, bits: old + data,
    "sub": lambda old, data, second, bits: old - data,
    "rsub": lambda old, data, second, bits: data - old,
    "csub": lambda old, data, second, bits: max(old - data, 0),
    "inc": lambda old, data, second, bits: 0 if old >= data else old + 1,
    "dec": lambda old, data, second, bits: data if old == 0 or old > data else old - 1,
    "min_i": lambda old, data, second, bits: data if _signed(data, bits) < _signed(old, bits) else old,
    "max_i": lambda old, data, second, bits: data if _signed(data, bits) > _signed(old, bits) else old,
    "min_u": lambda old, data, second, bits: min(old, data),
    "max_u": lambda old, data, second, bits: max(old, data),
    "and": lambda old, data, second, bits: old & data,
    "or": lambda old, data, second, bits: old | data,
    "xor": lambda old, data, second, bits: old ^ data,
    "swap": lambda old, data, second, bits: data,
    "mskor": lambda old, data, second, bits: (old & ~data) | second,
    "cmpswap": lambda old, data, second, bits: data if old == second else old,
    "wrap": lambda old, data, second, bits: old - data if old >= data else old + second,
    "add_f": lambda old, data, second, bits: _add_float(old, data, bits),
    "min_f": lambda old, data, second, bits: data if _floating(data, bits) < _floating(old, bits) else old,
    "max_f": lambda old, data, second, bits: data if _floating(data, bits) > _floating(old, bits) else old,
    "cmpswap_f": lambda old, data, second, bits: data if _floating(old, bits) == _floating(second, bits) else old,
}
# LDS mnemonics without ds_: model, bits, whether a second operand follows.
DS_ATOMICS: dict[str, tuple[str, int, bool]] = {}
for _bits in (32, 64):
    DS_ATOMICS |= {f"{name}{{}}_u{_bits}": (name, _bits, False) for name in ("add", "sub", "rsub", "inc", "dec")}
    DS_ATOMICS |= {
        f"{name}{{}}_{kind}{_bits}": (f"{name}_{kind}", _bits, False) for name in ("min", "max") for kind in "iu"
    }
    DS_ATOMICS |= {f"{name}{{}}_b{_bits}": (name, _bits, False) for name in ("and", "or", "xor")}
    DS_ATOMICS |= {f"{name}{{}}_f{_bits}": (f"{name}_f", _bits, False) for name in ("min", "max")}
    DS_ATOMICS |= {f"mskor{{}}_b{_bits}": ("mskor", _bits, True), f"cmpstore{{}}_b{_bits}": ("cmpswap", _bits, True)}
    DS_ATOMICS |= {f"cmpstore{{}}_f{_bits}": ("cmpswap_f", _bits, True)}
DS_ATOMICS["add{}_f32"] = ("add_f", 32, False)
DS_RETURNING_ONLY = {
    "storexchg_rtn_b32": ("swap", 32, False),
    "storexchg_rtn_b64": ("swap", 64, False),
    "wrap_rtn_b32": ("wrap", 32, True),
}
GLOBAL_ATOMICS: dict[str, tuple[str, int, bool]] = {
    **{f"{name}_u32": (name, 32, False) for name in ("add", "sub", "csub", "inc", "dec")},
    **{f"{name}_u64": (name, 64, False) for name in ("add", "sub", "inc", "dec")},
    **{
        f"{name}_{kind}{bits}": (f"{name}_{kind}", bits, False)
        for name in ("min", "max")
        for kind in "iu"
        for bits in (32, 64)
    },
    **{f"{name}_b{bits}": (name, bits, False) for name in ("and", "or", "xor", "swap") for bits in (32, 64)},
    **{f"cmpswap_b{bits}": ("cmpswap", bits, True) for bits in (32, 64)},
    "add_f32": ("add_f", 32, False),
    "min_f32": ("min_f", 32, False),
    "max_f32": ("max_f", 32, False),
    "cmpswap_f32": ("cmpswap_f", 32, True),
}


def run_atomic(
    model: str, bits: int, memory: list[int], places: list[int], data: list[int], second: list[int], mask: int
) -> list[int]:
    """Applies the lanes in ascending order to ``memory`` and returns the old values (0 for inactive lanes)."""
    old_values = []
    for lane, place in enumerate(places):
        if not mask >> lane & 1:
            old_values.append(0)
            continue
        old = memory[place]
        old_values.append(old)
        memory[place] = ATOMICS[model](old, data[lane], second[lane], bits) % (1 << bits)
    return old_values
