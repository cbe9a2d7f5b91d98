"""The arguments of the decode kernels: one struct, passed by value, defined here and nowhere else.

The build makes `decode_arguments.h` of this list (`struct DecodeArguments`), and the operator packs the struct from it.
Only the standard library is imported, for the build runs this file before the package exists.
"""

from __future__ import annotations

DECODE_ARGUMENTS: tuple[tuple[str, str, str], ...] = (
    ("q", "const void *", "[num_seqs * max_query_len, num_q_heads, head_size]"),
    ("kv_cache", "const void *", "[num_pages, num_kv_heads, page_size, 2 * head_size], K then V in a row"),
    ("block_table", "const int32_t *", "[num_seqs, columns], page numbers"),
    ("seq_lens", "const int32_t *", "[num_seqs], keys of a sequence, the new tokens included"),
    ("out", "void *", "as q"),
    ("partial_acc", "float *", "[slots, head_size], unnormalised outputs of the segments; slots are fewer than 2^31"),
    ("partial_max", "float *", "[slots], the scores that the segments' weights refer to"),
    ("partial_sum", "float *", "[slots], sums of the segments' weights"),
    ("counters", "int32_t *", "one for each (sequence, kv head, row group), zero before and after a launch"),
    ("q_stride_token", "uint32_t", "times 16 bytes from a query token to the next"),
    ("q_stride_head", "uint32_t", "times 16 bytes from a query head to the next"),
    ("out_stride_token", "uint32_t", "times 16 bytes from an output token to the next"),
    ("out_stride_head", "uint32_t", "times 16 bytes from an output head to the next"),
    ("kv_stride_block", "uint32_t", "times 16 bytes from a page to the next"),
    ("kv_stride_head", "uint32_t", "times 16 bytes from a kv head to the next"),
    ("kv_stride_token", "uint32_t", "times 16 bytes from a key to the next of its page"),
    ("block_table_stride", "uint32_t", "page numbers from a sequence's first to the next one's"),
    ("table_columns", "int32_t", "page numbers of a sequence in block_table"),
    ("num_kv_heads", "int32_t", "kv heads"),
    ("gqa", "int32_t", "query heads of a kv head"),
    ("max_query_len", "int32_t", "query tokens of a sequence"),
    ("page_size", "int32_t", "keys, a multiple of 16"),
    ("window", "int32_t", "keys that a token sees, itself included; 0: all"),
    ("row_groups", "int32_t", "workgroups that share the query rows of a kv head"),
    ("max_segments", "int32_t", "most workgroups that share the keys of a sequence"),
    ("min_segment_blocks", "int32_t", "fewest key blocks of a segment"),
    ("scale_log2", "float", "softmax scale * log2(e)"),
    ("sinks", "const float *", "[num_q_heads], a logit that joins each softmax of the head and brings no value; or 0"),
    ("alibi_slopes", "const float *", "[num_q_heads], of the bias slope * (key position - query position); or 0"),
    ("plan", "const int32_t *", "[workgroups along x, 4], the work list of rdna_registry.plan_decode; or 0"),
    ("lse", "float *", "[num_seqs * max_query_len, num_q_heads], ln of the sum of exp of a row's scores; or 0"),
    ("lse_stride_token", "int64_t", "elements from a query token's to the next one's"),
    ("lse_stride_head", "int64_t", "elements from a query head's to the next one's"),
    ("features", "int32_t", "bits of FEATURES that the launch uses; the arguments of others are not read"),
    ("slope_factor", "float", "1 / softmax scale: what turns a bias into one of scores before the scale"),
    ("softcap", "float", "softcap / size of the softmax scale, below which scores before the scale stay"),
    ("softcap_inverse", "float", "1 / the argument softcap"),
)

FEATURES: dict[str, int] = {"softcap": 1, "alibi": 2, "sinks": 4, "lse": 8, "plan": 16}
"""Bits of the argument `features`: a launch with any takes the build's second kernel, which asks for each."""

FEATURES_SUFFIX = "_features"
"""What follows a build's name in the name of its second kernel."""
