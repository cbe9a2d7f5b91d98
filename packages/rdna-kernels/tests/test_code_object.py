"""The reader of code objects' metadata, against msgpack and the emulator's reader."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdna_emulator import Device
from rdna_kernels import Catalogue
from rdna_kernels.code_object import _value, kernel_arguments
from rdna_registry import TARGETS, builds

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=60,
)


@given(VALUES)
def test_values_are_those_that_were_packed(value: object) -> None:
    packed = msgpack.packb(value)
    assert _value(b"...." + packed, 4) == (value, 4 + len(packed))


def test_long_texts_lists_and_maps() -> None:
    value = {"t": "x" * 70_000, "l": [0] * 70_000, "m": {str(number): number for number in range(70_000)}}
    assert _value(msgpack.packb(value), 0)[0] == value


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
def test_arguments_are_those_that_the_emulator_reads(target: str) -> None:
    device = Device(target)
    catalogue = Catalogue.installed()
    for build in builds(target)[:6]:
        code = catalogue.code(build.name, target)
        wanted = device.load(code)[build.name].arguments
        got = kernel_arguments(code, build.name)
        assert [(argument.kind, argument.offset, argument.size) for argument in got] == [
            (argument.kind, argument.offset, argument.size) for argument in wanted
        ]


def test_damaged_code_objects_are_refused() -> None:
    name = builds()[0].name
    code = Catalogue.installed().code(name, "gfx1151")
    with pytest.raises(ValueError, match="holds no kernel other, but: decode_"):
        kernel_arguments(code, "other")
    with pytest.raises(ValueError, match="not an ELF file: it begins with 00000000"):
        kernel_arguments(bytes(100), name)
    with pytest.raises(ValueError, match="not an ELF file: it begins with nothing"):
        kernel_arguments(b"", name)
    note = code.index(b"amdhsa.kernels")
    for end in [*range(4, 64, 4), *range(note - 40, note + 400, 7)]:
        with pytest.raises(ValueError, match=r"code object|metadata note"):
            kernel_arguments(code[:end], name)
    with pytest.raises(ValueError, match="type 0xc1, which none should"):
        kernel_arguments(code.replace(b"\xaeamdhsa.kernels", b"\xc1amdhsa.kernels"), name)
