"""Whether rdna-kernels serves the decode steps of an attention layer."""

from __future__ import annotations

from rdna_kernels import ArgumentError, Catalogue, MissingBuildError
from rdna_kernels.decode_features import as_softcap
from rdna_registry import DEFAULT_TARGET, Layout, as_dtype, as_target, select

from rdna_vllm.layer import AttentionLayer


def why_not_served(layer: AttentionLayer, *, query_len: int = 1, target: str = DEFAULT_TARGET) -> list[str]:
    """The reasons why decode steps of a layer do not run on rdna-kernels; none means that they do.

    ``query_len`` is the query tokens of a sequence in one step, more than one for speculative decoding and for short
    chunks of a prefill, which decode steps serve up to `rdna_registry.MAX_QUERY_LEN`. Sinks, slopes and the softcap go
    to `rdna_kernels.decode_attention` as its arguments ``sinks``, ``alibi_slopes`` and ``softcap``. ``target`` names
    the GPU, such as "gfx1151"; ValueError for one that nothing is built for. TypeError for arguments of a wrong kind.
    """
    if not isinstance(layer, AttentionLayer):
        raise TypeError(
            f"layer is a {type(layer).__name__}; it must be an AttentionLayer, as attention_layer makes one"
        )
    as_target(target)
    reasons = [] if layer.is_causal else ["attention that is not causal: no kernel has it"]
    try:
        as_softcap(layer.logits_soft_cap)
    except ArgumentError as error:
        reasons.append(str(error))
    if layer.kv_cache_dtype not in ("auto", layer.dtype):
        reasons.append(f"a KV cache of {layer.kv_cache_dtype}: the kernels read one of the model's own dtype")
    try:
        dtype = as_dtype(layer.dtype)
        variant = select(
            layer.num_q_heads,
            layer.num_kv_heads,
            layer.head_size,
            query_len,
            layer.block_size,
            Layout.HND,
            layer.sliding_window,
            dtype,
            target=target,
        )
        Catalogue.installed().record(variant.build.name, target)
    except (ValueError, MissingBuildError) as error:
        reasons.append(str(error))
    return reasons
