"""What the decoder makes of single encodings; the texts are LLVM's."""

from __future__ import annotations

import random
import struct

import pytest
from rdna_emulator import Instruction, disassemble


def decode(*words: int, target: str = "gfx1151") -> list[Instruction]:
    return disassemble(target, struct.pack(f"<{len(words)}I", *words))


TEXTS = [
    # A literal follows the encoding, and several operands may share it.
    ((0x068404FF, 0x40490FDB), "v_add_f32_e32 v66, 0x40490fdb, v2"),
    ((0xD5030001, 0x0001FEFF, 0x40490FDB), "v_add_f32_e64 v1, 0x40490fdb, 0x40490fdb"),
    ((0x80000AFF, 0x00000007), "s_add_u32 s0, lit(0x7), s10"),
    ((0xBE8000FF, 0xFFFFFFFF), "s_mov_b32 s0, lit(0xffffffff)"),
    ((0xD7270002, 0x0001FF04, 0x40080000), "v_add_f64 v[2:3], v[4:5], 0x40080000"),
    ((0x5A0204FF, 0x3F800000), "v_fmaak_f32 v1, lit(0x3f800000), v2, 0x3f800000"),
    ((0x58020400, 0x3F800000), "v_fmamk_f32 v1, s0, 0x3f800000, v2"),
    ((0xB9800801, 0x00000003), "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3"),
    # Inline constants.
    ((0x7E0002C1,), "v_mov_b32_e32 v0, -1"),
    ((0x7E0002F8,), "v_mov_b32_e32 v0, 0.15915494"),
    ((0xD73C0000, 0x0001F0C0), "v_lshlrev_b64 v[0:1], 64, 0.15915494309189532"),
    ((0x7E00027C,), "v_mov_b32_e32 v0, null"),
    # Scalars with a name.
    ((0xBE8001EB,), "s_mov_b64 s[0:1], src_shared_base"),
    ((0xBEFE016A,), "s_mov_b64 exec, vcc"),
    ((0x817D6A7E,), "s_add_i32 m0, exec_lo, vcc_lo"),
    # 16-bit registers: bit 7 of the short encodings' fields, op_sel of the long ones.
    ((0x64020581,), "v_add_f16_e32 v1.l, v1.h, v2.l"),
    ((0x65028581,), "v_add_f16_e32 v1.h, v1.h, v66.l"),
    ((0xD5324800, 0x00020501), "v_add_f16_e64 v0.h, v1.h, v2.l op_sel:[1,0,1]"),
    ((0x7C0A0581,), "v_cmp_lg_f16_e32 vcc_lo, v1.h, v2.l"),
    ((0x7E161581,), "v_cvt_f16_f32_e32 v11.l, v129"),
    # Modifiers.
    ((0xD5088103, 0x58020501), "v_mul_f32_e64 v3, |v1|, -v2 clamp div:2"),
    ((0xD6130000, 0xE4061501), "v_fma_f32 v0, -v1, -v10, -v1"),
    ((0xCC0F5000, 0x68020501), "v_pk_add_f16 v0, v1, v2 op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[1,1]"),
    ((0xCC200100, 0x4C0E0501), "v_fma_mix_f32 v0, |v1|, -v2, v3 op_sel_hi:[1,0,0]"),
    # DPP.
    ((0x060204FA, 0xFF08B101), "v_add_f32_dpp v1, v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1"),
    ((0x060204E9, 0x05397701), "v_add_f32_dpp v1, v1, v2 dpp8:[7,6,5,4,3,2,1,0]"),
    ((0x060204EA, 0x05397701), "v_add_f32_dpp v1, v1, v2 dpp8:[7,6,5,4,3,2,1,0] fi:1"),
    (
        (0xD5250000, 0x000204FA, 0xFF016301),
        "v_add_nc_u32_e64_dpp v0, v1, v2 row_xmask:3 row_mask:0xf bank_mask:0xf",
    ),
    ((0x7C2204FA, 0xFF015001), "v_cmp_lt_f32 vcc_lo, v1, v2 row_share:0 row_mask:0xf bank_mask:0xf"),
    # Pairs: the second register's lowest bit is the opposite of the first one's.
    ((0xC8C00F04, 0x0A0A0D05), "v_dual_mul_f32 v10, v4, v7 :: v_dual_fmac_f32 v11, v5, v6"),
    ((0xC8C00F04, 0x0B0A0D05), "v_dual_mul_f32 v11, v4, v7 :: v_dual_fmac_f32 v10, v5, v6"),
    (
        (0xC8C20EFF, 0x0A0A0D05, 0x11223344),
        "v_dual_mul_f32 v10, 0x11223344, v7 :: v_dual_fmaak_f32 v11, v5, v6, 0x11223344",
    ),
    # Memory.
    ((0xF4046001, 0x0A000010), "s_load_b64 s[0:1], s[2:3], s5 offset:0x10 glc dlc"),
    ((0xF4080102, 0xF81FFFF0), "s_load_b128 s[4:7], s[4:5], -0x10"),
    ((0xD8DC0500, 0x00000002), "ds_load_2addr_b32 v[0:1], v2 offset1:5"),
    ((0xDC521FF0, 0x05040001), "global_load_b32 v5, v1, s[4:5] offset:-16"),
    ((0xDC511010, 0x05FC0001), "scratch_load_b32 v5, v1, off offset:-4080"),
    ((0xDC510010, 0x05040000), "scratch_load_b32 v5, off, s4 offset:16"),
    ((0xE0500000, 0x80410001), "buffer_load_b32 v0, v1, s[4:7], 0 offen"),
    # Fields of immediates.
    ((0xBF89FC07,), "s_waitcnt lgkmcnt(0)"),
    ((0xBF870191,), "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_3)"),
    ((0xBFB60003,), "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)"),
    ((0xBFA0FFFE,), "s_branch 65534"),
]


@pytest.mark.parametrize(("words", "text"), TEXTS)
def test_text(words: tuple[int, ...], text: str) -> None:
    (instruction,) = decode(*words)
    assert instruction.text == text
    assert instruction.size == 4 * len(words)


REGISTERS = [
    # What an operation does beside its operands.
    ((0x56020500,), ("v0", "v2", "v1"), ("v1",)),  # v_fmac_f32 v1, v0, v2: adds to its destination
    ((0x40020500,), ("v0", "v2", "vcc_lo"), ("v1", "vcc_lo")),  # v_add_co_ci_u32
    ((0x7E02CB02,), ("v2", "v1"), ("v1", "v2")),  # v_swap_b32
    ((0x7D220501,), ("v1", "v2"), ("exec_lo",)),  # v_cmpx_lt_f32
    ((0xD6370000, 0x040E0501), ("v1", "v2", "v3", "vcc_lo"), ("v0",)),  # v_div_fmas_f32
    ((0x82000201,), ("s1", "s2", "src_scc"), ("s0", "src_scc")),  # s_addc_u32
    ((0xBE802001,), ("s1", "exec_lo"), ("s0", "src_scc", "exec_lo")),  # s_and_saveexec_b32
    ((0xD7610001, 0x00000A04), ("s4", "s5", "v1"), ("v1",)),  # v_writelane_b32: the other lanes stay
    # Sizes.
    ((0xD6FE7C02, 0x040E0B04), ("v4", "v5", "v[3:4]"), ("v[2:3]",)),  # v_mad_u64_u32 with an unwanted carry
    ((0xCC404000, 0x1D0A2108), ("v[8:15]", "v[16:23]", "v[66:73]"), ("v[0:7]",)),  # v_wmma_f32_16x16x16_f16
    ((0xDD080000, 0x047C0802), ("v[2:3]", "v[8:11]"), ()),  # global_atomic_cmpswap_b64
    # Halves.
    ((0x64020581,), ("v1.h", "v2.l"), ("v1.l",)),  # v_add_f16
    ((0xDC8E0000, 0x057C0002), ("v[2:3]",), ("v5.h",)),  # global_load_d16_hi_b16
    ((0xD87C0000, 0x00000502), ("v2", "v5.l"), ()),  # ds_store_b16
    ((0xCC224000, 0x1C0E0501), ("v1.l", "v2.l", "v3.l"), ("v0.h",)),  # v_fma_mixhi_f16
]


@pytest.mark.parametrize(("words", "reads", "writes"), REGISTERS)
def test_registers(words: tuple[int, ...], reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
    (instruction,) = decode(*words)
    assert instruction.reads == reads
    assert instruction.writes == writes


def test_scalar_floating_point_is_of_gfx1151_alone() -> None:
    words = (0xA0000201, 0xBF420201, 0xBE806501)
    names = [instruction.mnemonic for instruction in decode(*words)]
    assert names == ["s_add_f32", "s_cmp_eq_f32", "s_cvt_f32_u32"]
    assert [instruction.text for instruction in decode(*words, target="gfx1100")] == [
        ".long 0xa0000201",
        ".long 0xbf420201",
        ".long 0xbe806501",
    ]


def test_what_is_no_instruction_does_not_end_the_listing() -> None:
    listing = decode(0xBF800000, 0xFFFFFFFF, 0x06000501, 0xBFB00000)
    assert [(one.address, one.text) for one in listing] == [
        (0, "s_nop 0"),
        (4, ".long 0xffffffff"),
        (8, "v_add_f32_e32 v0, v1, v2"),
        (12, "s_endpgm"),
    ]
    assert (listing[1].mnemonic, listing[1].reads, listing[1].writes) == ("", (), ())


@pytest.mark.parametrize(
    "words",
    [
        (0xBE8000FF,),  # without its literal
        (0xD5030001,),  # without its second word
        (0xD5250000, 0x000204FA),  # without its DPP word
        (0xC8C00F04,),  # half a pair
        (0x020004D1,),  # a source number that means nothing
        (0xD5030001, 0x000004D1),
        (0x7E02CA04,),  # v_swap_b32 with a scalar
        (0xCC404000, 0x1B0A2008),  # v_wmma with scalars
        (0xD41100FB, 0x00020501),  # v_cmp_lt_f32 to a constant
        (0xE0500000, 0xFF410001),  # a buffer access with a literal
        (0x7E0006FA, 0xFF00B101),  # DPP on a 64-bit operand
    ],
)
def test_encodings_that_mean_nothing(words: tuple[int, ...]) -> None:
    assert decode(*words)[0].text == f".long {words[0]:#010x}"


@pytest.mark.parametrize(
    ("words", "mnemonic", "size"),
    [
        ((0xF0000F00, 0x00030804), "image_load", 8),
        ((0xF0000F01, 0x00030804, 0), "image_load", 12),  # further addresses follow
        ((0xF800000F, 0x03020100), "exp", 8),
        ((0xCE000014,), "lds_param_load", 4),
        ((0xCD000014, 0x04321104), "v_interp_p10_f32", 8),
        ((0xE8080010, 0x04030804), "tbuffer_load_format_x", 8),
    ],
)
def test_encodings_that_are_known_by_name(words: tuple[int, ...], mnemonic: str, size: int) -> None:
    (instruction,) = decode(*words)
    assert (instruction.mnemonic, instruction.size) == (mnemonic, size)


def test_addresses_count_from_the_given_one() -> None:
    assert [one.address for one in disassemble("gfx1151", bytes.fromhex("000080bf0000b0bf"), 0x1000)] == [
        0x1000,
        0x1004,
    ]


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="unknown target 'gfx90a'; the emulator decodes gfx1100 and gfx1151"):
        disassemble("gfx90a", b"")
    with pytest.raises(ValueError, match="3 bytes"):
        disassemble("gfx1151", b"abc")
    assert disassemble("gfx1151", b"") == []


@pytest.mark.parametrize("target", ["gfx1151", "gfx1100"])
def test_any_words_are_listed_completely(target: str) -> None:
    words = random.Random(target).randbytes(4 * 50_000)
    listing = disassemble(target, words)
    assert sum(one.size for one in listing) == len(words)
    assert all(one.size in (4, 8, 12) for one in listing)
    assert sum(one.mnemonic != "" for one in listing) > 20_000
