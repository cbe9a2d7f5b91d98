"""Variants, tuned tables and look-up for attention kernels on AMD RDNA GPUs."""

from rdna_registry.arguments import ArgumentError
from rdna_registry.builds import Build
from rdna_registry.decode_lookup import (
    MAX_GQA,
    SERVED_HEAD_SIZES,
    builds,
    entries_of,
    explain,
    provenance,
    select,
    variant_for,
)
from rdna_registry.decode_tables import variants
from rdna_registry.decode_variant import (
    DECODE_CONFIG_FIELDS,
    MAX_QUERY_LEN,
    KernelVariant,
    Layout,
    config_fields,
    expected_kv_cache_strides,
    scratch_bytes,
)
from rdna_registry.dtypes import DType, as_dtype
from rdna_registry.providers import load
from rdna_registry.tables import TableError
from rdna_registry.targets import DEFAULT_TARGET, TARGETS, Target, as_target

__all__ = [
    "DECODE_CONFIG_FIELDS",
    "DEFAULT_TARGET",
    "MAX_GQA",
    "MAX_QUERY_LEN",
    "SERVED_HEAD_SIZES",
    "TARGETS",
    "ArgumentError",
    "Build",
    "DType",
    "KernelVariant",
    "Layout",
    "TableError",
    "Target",
    "as_dtype",
    "as_target",
    "builds",
    "config_fields",
    "entries_of",
    "expected_kv_cache_strides",
    "explain",
    "load",
    "provenance",
    "scratch_bytes",
    "select",
    "variant_for",
    "variants",
]
