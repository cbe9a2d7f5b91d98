"""How many tokens a cache of given size holds."""

from __future__ import annotations

from octave_quant.formats import OctaveFormat
from octave_quant.quantization import check_format


def tokens_that_fit(
    bytes: int,  # noqa: A002 (what everybody calls it)
    fmt: OctaveFormat,
    num_kv_heads: int,
    num_layers: int,
    block_size: int,
    page_align: int = 1,
) -> int:
    """The tokens that a paged cache of so many bytes holds: whole blocks only, each with a page in every layer.

    bytes: what all layers' caches may take together.
    num_kv_heads: of one layer, on one device.
    block_size: tokens of a block.
    page_align: bytes; a page, ``block_size * num_kv_heads * slot_bytes``, is padded to a multiple of it. vLLM pads the
        pages of a hybrid model so that all its layers have pages of one size.

    ValueError for numbers below 1 (``bytes``: below 0), TypeError for what is no integer, naming the argument.
    """
    check_format(fmt)
    least = {"bytes": 0, "num_kv_heads": 1, "num_layers": 1, "block_size": 1, "page_align": 1}
    given = (bytes, num_kv_heads, num_layers, block_size, page_align)
    for (name, minimum), value in zip(least.items(), given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}; it must be an integer")
        if value < minimum:
            raise ValueError(f"{name} is {value}; it must be at least {minimum}")
    page = -(-block_size * num_kv_heads * fmt.slot_bytes // page_align) * page_align
    return bytes // (num_layers * page) * block_size
