"""Variants, tuned tables, look-up and planners for attention kernels on AMD RDNA GPUs."""

from rdna_registry.arguments import ArgumentError
from rdna_registry.builds import Build
from rdna_registry.decode_builds import BUILDABLE_HEAD_SIZES, SERVED_HEAD_SIZES
from rdna_registry.decode_examples import example_entries
from rdna_registry.decode_lookup import (
    MAX_GQA,
    builds,
    entries_of,
    explain,
    provenance,
    select,
    variant_for,
)
from rdna_registry.decode_plan import decode_plan_capacity, key_block, plan_decode, workgroups_per_row
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
from rdna_registry.devices import prefill_target_workgroups
from rdna_registry.dtypes import DType, as_dtype
from rdna_registry.prefill_lookup import (
    prefill_batch_cell,
    prefill_batch_features,
    prefill_batch_variant_for,
    prefill_variant_for,
    prefill_variants,
)
from rdna_registry.prefill_plan import plan_prefill
from rdna_registry.prefill_plan_few import MIN_SEGMENT_STEPS, PLAN_MAX_SEGMENTS
from rdna_registry.prefill_tables import PREFILL_BATCH_CONFIG_FIELDS
from rdna_registry.prefill_variant import (
    PREFILL_CONFIG_FIELDS,
    PREFILL_MIN_M,
    PrefillVariant,
    prefill_config_fields,
)
from rdna_registry.providers import load, load_prefill
from rdna_registry.scratch import make_prefill_scratch, make_scratch
from rdna_registry.tables import TableError
from rdna_registry.targets import BUILDABLE_TARGETS, DEFAULT_TARGET, TARGETS, Target, as_buildable, as_target

__all__ = [
    "BUILDABLE_HEAD_SIZES",
    "BUILDABLE_TARGETS",
    "DECODE_CONFIG_FIELDS",
    "DEFAULT_TARGET",
    "MAX_GQA",
    "MAX_QUERY_LEN",
    "MIN_SEGMENT_STEPS",
    "PLAN_MAX_SEGMENTS",
    "PREFILL_BATCH_CONFIG_FIELDS",
    "PREFILL_CONFIG_FIELDS",
    "PREFILL_MIN_M",
    "SERVED_HEAD_SIZES",
    "TARGETS",
    "ArgumentError",
    "Build",
    "DType",
    "KernelVariant",
    "Layout",
    "PrefillVariant",
    "TableError",
    "Target",
    "as_buildable",
    "as_dtype",
    "as_target",
    "builds",
    "config_fields",
    "decode_plan_capacity",
    "entries_of",
    "example_entries",
    "expected_kv_cache_strides",
    "explain",
    "key_block",
    "load",
    "load_prefill",
    "make_prefill_scratch",
    "make_scratch",
    "plan_decode",
    "plan_prefill",
    "prefill_batch_cell",
    "prefill_batch_features",
    "prefill_batch_variant_for",
    "prefill_config_fields",
    "prefill_target_workgroups",
    "prefill_variant_for",
    "prefill_variants",
    "provenance",
    "scratch_bytes",
    "select",
    "variant_for",
    "variants",
    "workgroups_per_row",
]
