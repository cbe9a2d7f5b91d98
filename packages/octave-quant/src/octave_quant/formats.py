"""What a slot of the cache holds, and where."""

from __future__ import annotations

from dataclasses import dataclass

from octave_quant.arguments import integer

MAX_HEAD_SIZE = 512
"""Dimensions for which the contract gives signs."""

BLOCK = 64
"""Dimensions of a rotation block of K, and what head and rotary sizes are multiples of."""

CACHE_DTYPES: dict[str, tuple[int, bool]] = {
    "octave_k3v4": (4, False),
    "octave_k3v3": (3, False),
    "octave_k3v3_compact": (3, True),
}
"""The names that a cache can be asked for by, with ``(v_bits, compact)`` of each."""

_COMPACT_CODE = 16
_SCALE_BYTES = 2


@dataclass(frozen=True)
class OctaveFormat:
    """The layout of a slot, one token of one KV head::

        K wide codes (4 bit) | K narrow codes (3 bit) | V codes | fp16 scales (K first, V last) | zero pad

    head_size: dimensions of K and of V, a multiple of 64 up to 512.
    rope_dim: leading dimensions that rotary embedding turns, a multiple of 64 from 0 to head_size; they get 4 bits.
    v_bits: 3 or 4.
    compact: all of K in 3 bits, rotated as one block with one scale; the head size is then a power of two.

    ValueError for anything else, naming the rule.
    """

    head_size: int
    rope_dim: int
    v_bits: int
    compact: bool = False

    def __post_init__(self) -> None:
        for name in ("head_size", "rope_dim", "v_bits"):
            object.__setattr__(self, name, integer(getattr(self, name), name))
        if not isinstance(self.compact, bool):
            raise TypeError(f"compact is {self.compact!r}; it must be True or False")
        if not 0 < self.head_size <= MAX_HEAD_SIZE or self.head_size % BLOCK:
            raise ValueError(
                f"head_size is {self.head_size}; it must be a multiple of {BLOCK} from {BLOCK} to {MAX_HEAD_SIZE}"
            )
        if not 0 <= self.rope_dim <= self.head_size or self.rope_dim % BLOCK:
            raise ValueError(
                f"rope_dim is {self.rope_dim}; it must be a multiple of {BLOCK} from 0 to head_size ({self.head_size})"
            )
        if self.v_bits not in (3, 4):
            raise ValueError(f"v_bits is {self.v_bits}; V has 3 or 4 bits")
        if self.compact and not _is_power_of_two(self.head_size):
            raise ValueError(f"head_size is {self.head_size}; a compact format needs a power of two")

    @classmethod
    def from_cache_dtype(cls, name: str, head_size: int, rope_dim: int) -> OctaveFormat:
        """The format that a name of `CACHE_DTYPES` means; ValueError for other names, listing those."""
        if not isinstance(name, str) or name not in CACHE_DTYPES:
            raise ValueError(f"cache dtype is {name!r}; known are {', '.join(CACHE_DTYPES)}")
        v_bits, compact = CACHE_DTYPES[name]
        return cls(head_size, rope_dim, v_bits, compact)

    @property
    def wide(self) -> int:
        """Leading dimensions of K with 4-bit codes."""
        return 0 if self.compact else self.rope_dim

    @property
    def kernel_code(self) -> int:
        """The number by which kernels know the format: the bits of V, and 16 more if K is compact."""
        return self.v_bits + (_COMPACT_CODE if self.compact else 0)

    @property
    def k_rotation_block(self) -> int:
        """Dimensions that K's transform takes at a time, each with a scale of its own."""
        return self.head_size if self.compact else BLOCK

    @property
    def v_rotation_block(self) -> int:
        """Dimensions that V's transform takes at a time; V has one scale."""
        return self.head_size if _is_power_of_two(self.head_size) else BLOCK

    @property
    def off_k_nope(self) -> int:
        """Byte at which K's 3-bit codes begin."""
        return self.wide * 4 // 8

    @property
    def off_v(self) -> int:
        """Byte at which V's codes begin."""
        return self.off_k_nope + (self.head_size - self.wide) * 3 // 8

    @property
    def off_scales(self) -> int:
        """Byte at which the scales begin."""
        return self.off_v + self.head_size * self.v_bits // 8

    @property
    def num_k_scales(self) -> int:
        """Scales of K, one for each of its rotation blocks."""
        return self.head_size // self.k_rotation_block

    @property
    def num_scales(self) -> int:
        """Scales of a slot, V's included."""
        return self.num_k_scales + 1

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot, padded to a multiple of 8 (compact: of 4)."""
        multiple = 4 if self.compact else 8
        return -(-(self.off_scales + _SCALE_BYTES * self.num_scales) // multiple) * multiple


def _is_power_of_two(n: int) -> bool:
    return n & (n - 1) == 0
