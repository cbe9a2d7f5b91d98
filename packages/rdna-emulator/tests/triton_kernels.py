"""Kernels in Triton, as its users write them: what compile_triton.py compiles and test_triton.py runs.

Pointers are to contiguous arrays; arguments of type ``tl.constexpr`` are fixed when a kernel is compiled.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, disable-error-code="no-untyped-call"
# Triton reads the annotations: there are none but its own.
from __future__ import annotations

import triton.language as tl


def add(x, y, out, size, block: tl.constexpr):
    """out = x + y, of ``size`` elements."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < size
    first = tl.load(x + at, mask=inside)
    second = tl.load(y + at, mask=inside)
    tl.store(out + at, first + second, mask=inside)


def softmax(x, out, columns, block: tl.constexpr):
    """The softmax of each row; a program takes a row."""
    row = tl.program_id(0)
    at = tl.arange(0, block)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=at < columns)


def layer_norm(x, weight, bias, out, totals, columns, epsilon, block: tl.constexpr):
    """Layer norm of each row; the normalised rows are summed into ``totals`` [columns] with atomics."""
    row = tl.program_id(0)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    normalised = centred * tl.rsqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    factor = tl.load(weight + at, mask=inside)
    offset = tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, normalised * factor + offset, mask=inside)
    tl.atomic_add(totals + at, normalised, mask=inside)


def matmul(
    a,
    b,
    c,
    rows,
    columns,
    depth,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
    block_depth: tl.constexpr,
):
    """c = a @ b of any size; a program takes a tile of c, in groups of two rows of tiles."""
    program = tl.program_id(0)
    tiles = tl.cdiv(columns, block_columns)
    group = program // (2 * tiles)
    height = min(tl.cdiv(rows, block_rows) - 2 * group, 2)
    row = (2 * group + program % (2 * tiles) % height) * block_rows + tl.arange(0, block_rows)
    column = program % (2 * tiles) // height * block_columns + tl.arange(0, block_columns)
    inner = tl.arange(0, block_depth)
    total = tl.zeros((block_rows, block_columns), tl.float32)
    for start in range(0, depth, block_depth):
        k = start + inner
        left_mask = (row[:, None] < rows) & (k[None, :] < depth)
        right_mask = (k[:, None] < depth) & (column[None, :] < columns)
        left = tl.load(a + row[:, None] * depth + k[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + k[:, None] * columns + column[None, :], mask=right_mask, other=0.0)
        total = tl.dot(left, right, total)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(c + row[:, None] * columns + column[None, :], total.to(c.dtype.element_ty), mask=inside)


def attention(
    q,
    k,
    v,
    out,
    tokens,
    scale_log2,
    head_size: tl.constexpr,
    block_rows: tl.constexpr,
    block_keys: tl.constexpr,
):
    """Causal attention over arrays [heads, tokens, head_size]; a program takes rows of one head."""
    start = tl.program_id(0) * block_rows
    head = tl.program_id(1) * tokens * head_size
    row = start + tl.arange(0, block_rows)
    key = tl.arange(0, block_keys)
    column = tl.arange(0, head_size)
    query = tl.load(q + head + row[:, None] * head_size + column[None, :], mask=row[:, None] < tokens, other=0.0)
    peak = tl.full((block_rows,), -float("inf"), tl.float32)
    weights = tl.zeros((block_rows,), tl.float32)
    total = tl.zeros((block_rows, head_size), tl.float32)
    for first in range(0, min(start + block_rows, tokens), block_keys):
        at = first + key
        keys = tl.load(k + head + at[None, :] * head_size + column[:, None], mask=at[None, :] < tokens, other=0.0)
        scores = tl.dot(query, keys) * scale_log2
        scores = tl.where((at[None, :] <= row[:, None]) & (at[None, :] < tokens), scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        powers = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        values = tl.load(v + head + at[:, None] * head_size + column[None, :], mask=at[:, None] < tokens, other=0.0)
        weights = weights * shrink + tl.sum(powers, 1)
        total = tl.dot(powers.to(values.dtype), values, total * shrink[:, None])
        peak = new_peak
    result = (total / weights[:, None]).to(out.dtype.element_ty)
    tl.store(out + head + row[:, None] * head_size + column[None, :], result, mask=row[:, None] < tokens)


def matmul_int8(
    a,
    b,
    scales,
    c,
    columns,
    depth,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
    block_depth: tl.constexpr,
):
    """c = (a @ b) * scales [rows], of int8 in whole tiles; the product is summed in int32."""
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    column = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
    inner = tl.arange(0, block_depth)
    total = tl.zeros((block_rows, block_columns), tl.int32)
    for start in range(0, depth, block_depth):
        left = tl.load(a + row[:, None] * depth + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * columns + column[None, :])
        total = tl.dot(left, right, total)
    scaled = total.to(tl.float32) * tl.load(scales + row)[:, None]
    tl.store(c + row[:, None] * columns + column[None, :], scaled)


def maths(x, out, size, block: tl.constexpr):
    """Rows of ``out`` [11, size]: functions of x > 0, in float32; the last is an integer remainder."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < size
    value = tl.load(x + at, mask=inside, other=1.0)
    tl.store(out + at, tl.exp(value), mask=inside)
    tl.store(out + size + at, tl.log(value), mask=inside)
    tl.store(out + 2 * size + at, tl.exp2(-value), mask=inside)
    tl.store(out + 3 * size + at, tl.log2(value), mask=inside)
    tl.store(out + 4 * size + at, tl.sqrt(value), mask=inside)
    tl.store(out + 5 * size + at, tl.rsqrt(value), mask=inside)
    tl.store(out + 6 * size + at, tl.sin(value), mask=inside)
    tl.store(out + 7 * size + at, tl.cos(value), mask=inside)
    tl.store(out + 8 * size + at, tl.erf(value), mask=inside)
    tl.store(out + 9 * size + at, 1.0 / (1.0 + tl.exp(-value)), mask=inside)
    tl.store(out + 10 * size + at, ((value * 1000).to(tl.int32) % (at + 1)).to(tl.float32), mask=inside)


def scan(x, sums, ordered, largest, size, block: tl.constexpr):
    """Running sums and sorted values of each row of int32 [rows, size]; ``largest`` [1] is the maximum of all."""
    at = tl.arange(0, block)
    row = tl.program_id(0) * size
    values = tl.load(x + row + at, mask=at < size, other=0)
    tl.store(sums + row + at, tl.cumsum(values, 0), mask=at < size)
    padded = tl.where(at < size, values, 2147483647)
    tl.store(ordered + row + at, tl.sort(padded), mask=at < size)
    tl.atomic_max(largest, tl.max(values, 0))


def split_sum(x, partial, counter, out, size, programs: tl.constexpr, block: tl.constexpr):
    """The sum of x; the program that arrives last adds the others' ``partial`` [programs, block] sums."""
    program = tl.program_id(0)
    at = tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for start in range(program * block, size, programs * block):
        total += tl.load(x + start + at, mask=start + at < size, other=0.0)
    tl.store(partial + program * block + at, total)
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == programs - 1:
        total = tl.zeros((block,), tl.float32)
        for other in range(programs):
            total += tl.load(partial + other * block + at)
        tl.store(out, tl.sum(total, 0))
        tl.atomic_xchg(counter, 0)
