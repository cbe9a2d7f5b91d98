from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdna_kernels.decode_arguments import DECODE_ARGUMENTS
from rdna_kernels.packing import Packer

C_TYPES = {
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "float": ctypes.c_float,
    "const void *": ctypes.c_void_p,
}


@given(st.lists(st.sampled_from(sorted(C_TYPES)), min_size=2, max_size=12), st.data())
def test_the_layout_is_the_c_compilers(kinds: list[str], data: st.DataObject) -> None:
    fields = [(f"f{index}", kind, "") for index, kind in enumerate(kinds)]
    model: Any = type("Model", (ctypes.Structure,), {"_fields_": [(name, C_TYPES[kind]) for name, kind, _ in fields]})
    values = {name: data.draw(st.integers(0, 2**31 - 1)) / (2.0 if kind == "float" else 1) for name, kind, _ in fields}
    values = {
        name: value if kind == "float" else int(value)
        for (name, kind, _), value in zip(fields, values.values(), strict=True)
    }
    packer = Packer(fields)
    packed = packer.pack(values)
    assert len(packed) == packer.size == ctypes.sizeof(model)
    read = model.from_buffer_copy(packed)
    for name, kind, _ in fields:
        wanted = ctypes.c_float(values[name]).value if kind == "float" else values[name]
        assert (getattr(read, name) or 0) == wanted


@given(st.lists(st.tuples(st.sampled_from(sorted(C_TYPES)), st.booleans()), min_size=2, max_size=12), st.data())
def test_a_template_packs_what_a_packer_does(kinds: list[tuple[str, bool]], data: st.DataObject) -> None:
    packer = Packer([(f"f{index}", kind, "") for index, (kind, _) in enumerate(kinds)])
    values = {name: data.draw(st.integers(0, 2**31 - 1)) for name in packer.names}
    fixed = {name: values[name] for name, (_, constant) in zip(packer.names, kinds, strict=True) if constant}
    template = packer.template(fixed)
    for _ in range(2):  # the second one must not find what the first one left
        assert template.pack([values[name] for name in template.names]) == packer.pack(values)
        values.update({name: data.draw(st.integers(0, 2**31 - 1)) for name in template.names})


def test_missing_and_oversized_values_are_errors() -> None:
    packer = Packer((("a", "int32_t", ""), ("b", "int32_t", "")))
    with pytest.raises(KeyError):
        packer.pack({"a": 1})
    with pytest.raises(struct.error):
        packer.pack({"a": 1, "b": 2**31})


def test_the_decode_arguments_are_the_documented_ones() -> None:
    kinds = {name: kind for name, kind, _ in DECODE_ARGUMENTS}
    pointers = [name for name, kind in kinds.items() if "*" in kind]
    assert pointers == [
        "q",
        "kv_cache",
        "block_table",
        "seq_lens",
        "out",
        "partial_acc",
        "partial_max",
        "partial_sum",
        "counters",
        "sinks",
        "alibi_slopes",
        "plan",
        "lse",
    ]
    assert Packer(DECODE_ARGUMENTS).size == 208
    assert all(meaning for _, _, meaning in DECODE_ARGUMENTS)
