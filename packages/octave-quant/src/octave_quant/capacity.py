"""How many tokens a cache of given size holds."""

from __future__ import annotations

from octave_quant.arguments import integer
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
    given = {
        "bytes": (bytes, 0),
        "num_kv_heads": (num_kv_heads, 1),
        "num_layers": (num_layers, 1),
        "block_size": (block_size, 1),
        "page_align": (page_align, 1),
    }
    numbers = {name: integer(value, name) for name, (value, _) in given.items()}
    for name, (_, least) in given.items():
        if numbers[name] < least:
            raise ValueError(f"{name} is {numbers[name]}; it must be at least {least}")
    size, heads, layers, block, align = numbers.values()
    page = -(-block * heads * fmt.slot_bytes // align) * align
    return size // (layers * page) * block
