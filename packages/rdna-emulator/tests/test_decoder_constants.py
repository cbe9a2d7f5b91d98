"""Constants as instructions see them: what an inline constant or a literal stands for depends on the operand's type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device_compiler import compile_hip
from rdna_emulator import Device

ONES = 0xFFFFFFFFFFFFFFFF
# Instruction (%0 is the result, %1 the input), registers of the result and of the input, input, result; all as 64 bits.
CASES = [
    # float64: a literal is the upper half; integers are taken as bits.
    ("v_add_f64 %0, %1, 0.5", "v64", 0x3FF0000000000000, 0x3FF8000000000000),
    ("v_add_f64 %0, %1, 0x40080000", "v64", 0x3FF0000000000000, 0x4010000000000000),
    ("v_add_f64 %0, %1, 0.15915494309189532", "v64", 0, 0x3FC45F306DC9C882),
    ("v_max_f64 %0, %1, 3", "v64", 0, 3),
    # 64-bit integers: signed ones extend a literal's sign, others do not.
    ("v_lshlrev_b64 %0, 0, -2", "v64", 0, 0xFFFFFFFFFFFFFFFE),
    ("v_lshlrev_b64 %0, 0, 0.5", "v64", 0, 0x3FE0000000000000),
    ("v_lshlrev_b64 %0, 0, 0x87654321", "v64", 0, 0x87654321),
    ("v_ashrrev_i64 %0, 0, 0x87654321", "v64", 0, 0xFFFFFFFF87654321),
    ("s_mov_b64 %0, 0x87654321", "s64", 0, 0x87654321),
    ("s_ashr_i64 %0, 0x87654321, 4", "s64", 0, 0xFFFFFFFFF8765432),
    ("s_or_b64 %0, %1, -16", "s64", 0, 0xFFFFFFFFFFFFFFF0),
    # float16: one half; the other half of the result stays.
    ("v_mov_b32 %0, -1\\n v_add_f16 %0, 1.0, %1", "v32", 0x00003C00, 0xFFFF4000),
    ("v_mov_b32 %0, 0\\n v_add_f16 %0, 0x4248, %1", "v32", 0, 0x4248),
    # Two halves: a floating constant has zeros in the upper one, an integer its sign.
    ("v_pk_add_f16 %0, %1, 1.0", "v32", 0, 0x00003C00),
    ("v_pk_add_f16 %0, %1, 1.0 op_sel_hi:[1,0]", "v32", 0, 0x3C003C00),
    ("v_pk_mul_f16 %0, %1, 2.0 op_sel_hi:[1,0] neg_lo:[0,1]", "v32", 0x3C003C00, 0x4000C000),
    ("v_pk_add_u16 %0, %1, -1", "v32", 0x00010001, 0),
    ("v_pk_add_u16 %0, %1, -1 op_sel_hi:[1,0]", "v32", 0x00010002, 1),
    ("v_pk_add_u16 %0, %1, 0x10203", "v32", 0x00010001, 0x00020204),
    ("v_dot2_f32_bf16 %0, %1, 1.0, 0", "v32", 0x3F804000, 0x40000000),
    # Mixed: each source is f32, or f16 where op_sel_hi says so.
    ("v_fma_mix_f32 %0, %1, 0.5, 0 op_sel_hi:[0,0,0]", "v32", 0x40800000, 0x40000000),
    ("v_fma_mix_f32 %0, %1, 1.0, 0 op_sel:[1,0,0] op_sel_hi:[1,1,0]", "v32", 0x40000000, 0x40000000),
    ("v_fma_mix_f32 %0, -|%1|, 2.0, 1.0 op_sel_hi:[0,0,0]", "v32", 0xC0000000, 0xC0400000),
    # Multiply-add with a literal at either place.
    ("v_fmaak_f32 %0, 2.0, %1, 0x40400000", "v32", 0x40000000, 0x40E00000),
    ("v_fmamk_f32 %0, 1.0, 0x40400000, %1", "v32", 0x40000000, 0x40A00000),
    # Scalars with a meaning.
    ("v_mov_b32 %0, null", "v32", ONES, 0),
    ("s_cmp_eq_u32 0, 0\\n v_add_nc_u32 %0, src_scc, %1", "v32", 4, 5),
    ("s_mov_b32 m0, %1\\n s_mov_b64 null, -1\\n s_mov_b32 %0, m0", "s32", 7, 7),  # no word of the pair is written
    ("s_mov_b64 null, -1\\n v_add_co_ci_u32_e64 %0, null, %1, 0, null", "v32", 4, 4),  # no lane carries
    ("v_add_co_u32 %0, null, -1, %1\\n v_mov_b32 %0, null", "v32", 4, 0),
]
TYPES = {
    "v64": ("v", "unsigned long"),
    "s64": ("s", "unsigned long"),
    "v32": ("v", "unsigned"),
    "s32": ("s", "unsigned"),
}


def source() -> str:
    lines = ["KERNEL constants(unsigned long* out, const unsigned long* in) {"]
    for k, (instruction, kind, _, _) in enumerate(CASES):
        register, c_type = TYPES[kind]
        uniform = register == "s"
        value = f"__builtin_amdgcn_readfirstlane((unsigned)in[{k}])" if uniform else f"({c_type})in[{k}]"
        lines.append(
            f'  {{ {c_type} x = {value}, r; asm volatile("{instruction}" : "=&{register}"(r) : "{register}"(x) '
            f': "vcc", "scc", "m0"); out[{k}] = r; }}'
        )
    return "\n".join([*lines, "}"])


@pytest.fixture(scope="module", params=["gfx1151", "gfx1100"])
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    folder: Path = tmp_path_factory.mktemp("constants")
    module = Device(request.param).load(compile_hip(source(), request.param, folder))
    out = np.zeros(len(CASES), np.uint64)
    module["constants"].launch(1, 64, [out, np.array([case[2] for case in CASES], np.uint64)])
    return out


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case[0] for case in CASES])
def test_constant(results: np.ndarray[tuple[int], np.dtype[np.uint64]], number: int) -> None:
    assert f"{int(results[number]):#x}" == f"{CASES[number][3]:#x}"
