"""Arguments of a wrong kind are refused by their names, and nothing is taken for what it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from octave_quant import (
    CentredFormat,
    OctaveFormat,
    dequantize,
    dequantize_centred,
    pack,
    paged_attention,
    quantize,
    quantize_centred,
    rope_dim_from_config,
    rotate,
    store,
    tokens_that_fit,
    unpack,
)

FMT = OctaveFormat(128, 64, 4)
MEAN = np.zeros((2, 128), np.float32)
CENTRED = CentredFormat(FMT, MEAN, MEAN)
ROWS = np.zeros((1, 2, 128), np.float32)
SLOTS, NUMBERS = quantize(ROWS, ROWS, FMT), np.zeros(1, np.int32)
CACHE = np.zeros((1, 2, 16, FMT.slot_bytes), np.uint8)

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "quantize": (quantize, {"key": ROWS, "value": ROWS, "fmt": FMT}),
    "dequantize": (dequantize, {"slots": SLOTS, "fmt": FMT}),
    "store": (store, {"key": ROWS, "value": ROWS, "cache": CACHE, "slot_mapping": NUMBERS, "fmt": FMT}),
    "paged_attention": (
        paged_attention,
        {
            "query": ROWS,
            "cache": CACHE,
            "block_table": NUMBERS[None],
            "q_to_req": NUMBERS,
            "q_to_klen": NUMBERS,
            "fmt": FMT,
            "scale": 1.0,
        },
    ),
    "quantize_centred": (quantize_centred, {"key": ROWS, "value": ROWS, "fmt": CENTRED}),
    "dequantize_centred": (dequantize_centred, {"slots": SLOTS, "fmt": CENTRED}),
    "CentredFormat": (CentredFormat, {"slots": FMT, "key_mean": MEAN, "value_mean": MEAN}),
    "rotate": (rotate, {"x": ROWS, "block": 64}),
    "pack": (pack, {"codes": np.zeros(32, np.uint8), "bits": 3}),
    "unpack": (unpack, {"packed": np.zeros(12, np.uint8), "n": 32, "bits": 3}),
    "rope_dim_from_config": (rope_dim_from_config, {"config": {}, "head_size": 128}),
    "tokens_that_fit": (
        tokens_that_fit,
        {"bytes": 10**6, "fmt": FMT, "num_kv_heads": 1, "num_layers": 1, "block_size": 16},
    ),
}
ARRAYS = [(call, name) for call, (_, given) in CALLS.items() for name in given if isinstance(given[name], np.ndarray)]
INTEGERS = [(call, name) for call, (_, given) in CALLS.items() for name in given if type(given[name]) is int]
FORMATS = [(call, name) for call, (_, given) in CALLS.items() for name in ("fmt", "slots") if name in given]


def refused(call: str, error: type[Exception], message: str, **changes: Any) -> None:
    function, given = CALLS[call]
    function(**given)
    with pytest.raises(error, match=message):
        function(**{**given, **changes})


@pytest.mark.parametrize(("call", "name"), ARRAYS)
def test_masked_arrays(call: str, name: str) -> None:
    given = CALLS[call][1][name]
    refused(call, TypeError, f"^{name} is a masked array; pass a plain one", **{name: np.ma.array(given)})


@pytest.mark.parametrize(("call", "name"), [each for each in ARRAYS if each[0] not in ("rotate", "pack", "unpack")])
@pytest.mark.parametrize("value", ["text", None, 1.5])
def test_what_is_no_array(call: str, name: str, value: Any) -> None:
    refused(
        call, (TypeError, ValueError)[value == 1.5 and call == "CentredFormat"], f"^{name} (is|has) ", **{name: value}
    )


@pytest.mark.parametrize(("call", "name"), INTEGERS)
@pytest.mark.parametrize("value", ["3", True, np.True_, 1.0, None, np.ones(1, int)], ids=repr)
def test_what_is_no_integer(call: str, name: str, value: Any) -> None:
    refused(call, TypeError, f"^{name} is .*; it must be an integer", **{name: value})


@pytest.mark.parametrize(("call", "name"), INTEGERS)
def test_integers_of_numpy(call: str, name: str) -> None:
    function, given = CALLS[call]
    function(**{**given, name: np.int32(given[name])})


def test_small_integers_of_numpy_do_not_overflow() -> None:
    function, given = CALLS["tokens_that_fit"]
    assert function(**{**given, "block_size": np.int8(100), "num_layers": np.int8(100)}) == function(
        **{**given, "block_size": 100, "num_layers": 100}
    )


@pytest.mark.parametrize(
    ("call", "name"), [each for each in FORMATS if isinstance(CALLS[each[0]][1][each[1]], OctaveFormat)]
)
def test_what_is_no_format(call: str, name: str) -> None:
    for value in (None, "octave_k3v4", CENTRED):
        refused(call, TypeError, f"^{name} is .*; it must be an OctaveFormat", **{name: value})


@pytest.mark.parametrize("call", ["quantize_centred", "dequantize_centred"])
def test_what_is_no_centred_format(call: str) -> None:
    for value in (None, FMT):
        refused(call, TypeError, "^fmt is .*; it must be a CentredFormat", fmt=value)


@pytest.mark.parametrize("value", ["1", True, np.True_, np.ones(1), 10**400, float("inf"), None], ids=str)
def test_what_is_no_scale(value: Any) -> None:
    refused("paged_attention", ValueError, "^scale is .{1,50}; it must be a finite number", scale=value)


@pytest.mark.parametrize("call", ["dequantize", "dequantize_centred"])
@pytest.mark.parametrize("value", ["no", 1, None, np.zeros(2)], ids=str)
def test_what_is_neither_true_nor_false(call: str, value: Any) -> None:
    refused(call, TypeError, "^rotated is .*; it must be True or False", rotated=value)


@pytest.mark.parametrize("value", [True, 1j, "text"])
@pytest.mark.parametrize("name", ["key_mean", "value_mean"])
def test_means_that_are_no_real_numbers(name: str, value: Any) -> None:
    refused("CentredFormat", TypeError, f"^{name} has dtype .* real numbers", **{name: np.full((2, 128), value)})
    refused("CentredFormat", ValueError, f"^{name} has NaN or Inf", **{name: np.full((2, 128), 1e300)})


def test_names_that_are_no_text() -> None:
    with pytest.raises(ValueError, match=r"cache dtype is \['a'\]; known centred ones are"):
        CentredFormat.from_cache_dtype(["a"], 128, 64, MEAN, MEAN)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("value", [None, [1], "x", 3], ids=str)
def test_what_is_no_configuration(value: Any) -> None:
    refused("rope_dim_from_config", TypeError, "^config is a .*; it must be a mapping or an object", config=value)
    refused("rope_dim_from_config", TypeError, "^layer_type is 3; it must be the name", layer_type=3)
