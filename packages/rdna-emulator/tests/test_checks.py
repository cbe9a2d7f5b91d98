"""The checks: silent on right code, and loud on each fault that is planted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_compiler import compile_hip
from planted_faults import removals
from rdna_emulator import CHECKS, CheckError, Device, MemoryFault, Report, SpinError

TARGETS = ("gfx1151", "gfx1100")
SYNC = """
#define FENCE(scope) __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, scope)
#define SYNC() (FENCE("workgroup"), __builtin_amdgcn_s_barrier(), FENCE("workgroup"))
#define THREAD __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
"""
REDUCE = (
    SYNC
    + """
KERNEL reduce(const float* x, float* out) {
  __shared__ float part[64];
  int t = THREAD;
  part[t] = x[GROUP * 64 + t];
  SYNC();
  for (int step = 32; step; step /= 2) {
    float other = part[t ^ (step | 32)];  // always of the other wave
    SYNC();
    part[t] += other;
    SYNC();
  }
  out[GROUP * 64 + t] = part[63 - t];
}
"""
)
# The last workgroup to arrive adds up what the others have left in memory.
LAST_ARRIVER = (
    SYNC
    + """
KERNEL last(const float* x, float* partial, int* counter, float* out) {
  __shared__ int arrived;
  int t = THREAD;
  partial[GROUP * 64 + t] = x[GROUP * 64 + t] * 2.0f;
  FENCE("agent");
  __builtin_amdgcn_s_barrier();
  if (t == 0) arrived = __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  SYNC();
  if (arrived != 3) return;
  FENCE("agent");
  float sum = 0;
  for (int g = 0; g < 4; ++g) sum += partial[g * 64 + t];
  out[t] = sum;
  if (t == 0) *counter = 0;
}
"""
)


def launch(code: bytes, target: str, grid: int, block: int, *args: np.ndarray, **options: Any) -> Report:
    module = Device(target, threads=1).load(code)
    [name] = module.kernels
    return module[name].launch(grid, block, args, **{"checks": "all", **options})


def run_reduce(code: bytes, target: str, **options: Any) -> None:
    x = np.arange(256, dtype=np.float32)
    out = np.full(256, np.nan, np.float32)
    launch(code, target, 4, 64, x, out, **options)
    np.testing.assert_array_equal(out, np.repeat(x.reshape(4, 64).sum(1), 64))


def run_last(code: bytes, target: str, **options: Any) -> None:
    x = np.arange(256, dtype=np.float32)
    partial = np.full(256, np.nan, np.float32)
    counter = np.zeros(1, np.int32)
    out = np.full(64, np.nan, np.float32)
    launch(code, target, 4, 64, x, partial, counter, out, **options)
    np.testing.assert_array_equal(out, 2 * x.reshape(4, 64).sum(0))
    assert counter[0] == 0


CASES = {"reduce": (REDUCE, run_reduce), "last_arriver": (LAST_ARRIVER, run_last)}


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=tuple(CASES))
def case(
    request: pytest.FixtureRequest, target: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bytes, Callable[..., None]]:
    source, run = CASES[request.param]
    return compile_hip(source, target, tmp_path_factory.mktemp(request.param)), run


@pytest.mark.parametrize("schedule", [None, "random"])
def test_right_code_has_no_finding(case: tuple[bytes, Callable[..., None]], target: str, schedule: str | None) -> None:
    code, run = case
    for seed in range(5):
        run(code, target, schedule=schedule, seed=seed)


@pytest.mark.parametrize("check", CHECKS)
def test_right_code_has_no_finding_of_one_check_alone(
    case: tuple[bytes, Callable[..., None]], target: str, check: str
) -> None:
    code, run = case
    run(code, target, checks=(check,))


def noticed(code: bytes, run: Callable[..., None], target: str) -> bool:
    try:
        run(code, target)
    except CheckError:
        return True
    return False


WAITS = ("s_waitcnt", "s_waitcnt_vmcnt", "s_waitcnt_lgkmcnt", "s_waitcnt_vscnt")


def test_every_removed_wait_and_barrier_is_noticed(case: tuple[bytes, Callable[..., None]], target: str) -> None:
    code, run = case
    planted = list(removals(code, target, *WAITS, "s_barrier"))
    assert len(planted) >= 5
    missed = [f"{removal.address:#x} {removal.text}" for removal in planted if not noticed(removal.code, run, target)]
    assert missed == []


def test_a_removed_invalidate_is_noticed(target: str, tmp_path: Path) -> None:
    code = compile_hip(LAST_ARRIVER, target, tmp_path)
    planted = list(removals(code, target, "buffer_gl1_inv"))
    assert planted
    # Each acquire after the atomic is followed by another before the partials are read: only all of them matter.
    for removal in removals(planted[0].code, target, "buffer_gl1_inv"):
        code = removal.code
    while rest := list(removals(code, target, "buffer_gl1_inv")):
        code = rest[0].code
    assert noticed(code, run_last, target)


def expect(kind: str, source: str, target: str, folder: Path, *args: np.ndarray, grid: int = 1, **options: Any) -> str:
    """The message of the CheckError that a kernel's launch raises."""
    code = compile_hip(SYNC + source, target, folder)
    with pytest.raises(CheckError, match=kind) as caught:
        launch(code, target, grid, 64, *args, **options)
    return str(caught.value)


def test_uninitialised_lds(target: str, tmp_path: Path) -> None:
    source = (
        "KERNEL k(float* out) { __shared__ float a[64]; if (THREAD < 32) "
        "a[THREAD] = 1; SYNC(); out[THREAD] = a[THREAD]; }"
    )
    message = expect("uninitialised", source, target, tmp_path, np.zeros(64, np.float32))
    assert "wave 1" in message
    assert "global_store" in message


def test_uninitialised_vector_register_as_address(target: str, tmp_path: Path) -> None:
    source = (
        'KERNEL k(float* out) { unsigned i; asm volatile("v_add_nc_u32 '
        '%0, v99, 1" : "=v"(i) :: "v99"); out[i & 63] = 1; }'
    )
    expect("uninitialised", source, target, tmp_path, np.zeros(64, np.float32))


def test_uninitialised_scalar_register_at_a_branch(target: str, tmp_path: Path) -> None:
    source = (
        'KERNEL k(int* out) { int s; asm volatile("s_add_u32 %0, s77, '
        '1" : "=s"(s) :: "s77", "scc"); if (s == 3) out[THREAD] = 1; }'
    )
    expect("uninitialised", source, target, tmp_path, np.zeros(64, np.int32))


@pytest.mark.parametrize("copy", ["v_mov_b32 %0, m0", "s_mov_b32 s77, m0\\n v_mov_b32 %0, s77"])
def test_uninitialised_m0(copy: str, target: str, tmp_path: Path) -> None:
    source = f'KERNEL k(int* out) {{ int i; asm volatile("{copy}" : "=v"(i) :: "s77"); out[THREAD] = i; }}'
    expect("uninitialised", source, target, tmp_path, np.zeros(64, np.int32))


@pytest.mark.parametrize(
    "body",
    [
        # The undefined half is shifted, masked or permuted away before it matters.
        'asm volatile("v_mov_b16 v99.l, 7\\n v_and_b32 %0, 0xffff, v99" : "=v"(i) :: "v99");',
        'asm volatile("v_mov_b16 v99.l, 7\\n v_lshlrev_b32 %0, 16, v99" : "=v"(i) :: "v99");',
        'asm volatile("v_mov_b16 v99.h, 7\\n v_lshrrev_b32 %0, 16, v99" : "=v"(i) :: "v99");',
        'asm volatile("v_mov_b16 v99.l, 7\\n v_perm_b32 %0, v99, v99, %1" : "=v"(i) : "s"(0x01000100) : "v99");',
        'asm volatile("v_mov_b32 v98, 7\\n v_mad_u64_u32 v[100:101], null, v98, v98, v[98:99]\\n '
        'v_mov_b32 %0, v100" : "=v"(i) :: "v98", "v99", "v100", "v101");',
    ],
)  # fmt: skip
def test_undefined_bytes_that_do_not_matter_are_no_finding(body: str, target: str, tmp_path: Path) -> None:
    code = compile_hip(SYNC + f"KERNEL k(int* out) {{ int i; {body} out[THREAD] = i; }}", target, tmp_path)
    out = np.zeros(64, np.int32)
    launch(code, target, 1, 64, out)
    assert out.all()


# Lane 0 of v99 is defined, and v98 is 0 or 4: the lane whose value every lane takes.
EXCHANGE = """KERNEL k(int* out) {
  int i;
  asm volatile("s_mov_b32 exec_lo, 1\\n v_mov_b32 v99, 7\\n s_mov_b32 exec_lo, -1\\n v_mov_b32 v98, %d\\n"
               "%s\\n s_waitcnt lgkmcnt(0)" : "=v"(i) :: "v98", "v99");
  out[THREAD] = i;
}"""


@pytest.mark.parametrize("instruction", ["ds_bpermute_b32 %%0, v98, v99", "ds_swizzle_b32 %%0, v99 offset:0x%x"])
def test_what_comes_from_another_lane_is_as_defined_as_it_is_there(
    instruction: str, target: str, tmp_path: Path
) -> None:
    def source(lane: int) -> str:
        text = instruction % (lane << 5) if "swizzle" in instruction else instruction % ()
        return EXCHANGE % (4 * lane, text)

    out = np.zeros(64, np.int32)
    launch(compile_hip(SYNC + source(0), target, tmp_path), target, 1, 64, out)
    assert (out == 7).all()
    expect("uninitialised", source(1), target, tmp_path, out)


def test_lanes_that_a_permute_leaves_out_are_defined(target: str, tmp_path: Path) -> None:
    source = """KERNEL k(int* out) {
      int i, address = (THREAD & 15) * 4;
      asm volatile("ds_permute_b32 v99, %1, %2\\n s_waitcnt lgkmcnt(0)\\n v_mov_b32 %0, v99"
                   : "=v"(i) : "v"(address), "v"(5) : "v99");
      out[THREAD] = i;
    }"""
    out = np.ones(64, np.int32)
    launch(compile_hip(SYNC + source, target, tmp_path), target, 1, 64, out)
    np.testing.assert_array_equal(out, np.tile(np.repeat([5, 0], 16), 2))


def test_scratch_memory_keeps_what_is_undefined(target: str, tmp_path: Path) -> None:
    source = "KERNEL k(int* out) { volatile int a[4]; a[THREAD & 3] = 7; out[THREAD] = a[THREAD + %d & 3]; }"
    out = np.zeros(64, np.int32)
    launch(compile_hip(SYNC + source % 0, target, tmp_path), target, 1, 64, out)
    assert (out == 7).all()
    expect("uninitialised", source % 1, target, tmp_path, out)


# A load that is outstanding while more operations of another counter come and go than a counter can count.
LATE_WAIT = """KERNEL k(int* x, int* out) {
  int i, address = THREAD * 4;
  __shared__ int unused[64];
  unused[THREAD] = 1;
  asm volatile("global_load_b32 v99, %%1, %%2\\n .rept 200\\n ds_load_b32 v98, %%1\\n .endr\\n s_waitcnt lgkmcnt(0)\\n"
               "%s\\n v_mov_b32 %%0, v99\\n s_waitcnt vmcnt(0)"
               : "=v"(i) : "v"(address), "s"(x) : "v98", "v99", "memory");
  out[THREAD] = i + unused[THREAD];
}"""


def test_a_load_that_is_waited_for_late(target: str, tmp_path: Path) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    launch(compile_hip(SYNC + LATE_WAIT % "s_waitcnt vmcnt(0)", target, tmp_path), target, 1, 64, x, out)
    np.testing.assert_array_equal(out, x + 1)
    expect("missing wait: reads v99", LATE_WAIT % "s_nop 0", target, tmp_path, x, out)


def test_race_in_lds(target: str, tmp_path: Path) -> None:
    source = "KERNEL k(int* out) { __shared__ int a; if (THREAD % 32 == 0) a = THREAD; SYNC(); out[THREAD] = a; }"
    expect("race", source, target, tmp_path, np.zeros(64, np.int32))


def test_waves_that_store_equal_data_to_one_place_are_no_race(target: str, tmp_path: Path) -> None:
    source = (
        "KERNEL k(int* out) { __shared__ int a[32]; a[THREAD % 32] = THREAD % 32 + 1; SYNC(); out[THREAD] = a[0]; }"
    )
    out = np.zeros(64, np.int32)
    launch(compile_hip(SYNC + source, target, tmp_path), target, 1, 64, out)
    assert (out == 1).all()


def test_race_in_global_memory_between_workgroups(target: str, tmp_path: Path) -> None:
    expect("race", "KERNEL k(int* out) { out[THREAD] = GROUP; }", target, tmp_path, np.zeros(64, np.int32), grid=2)


@pytest.mark.parametrize("readers", [1, 3, 100])
@pytest.mark.parametrize("element", ["char", "int", "int4"])
def test_a_store_to_what_others_have_read(element: str, readers: int, target: str, tmp_path: Path) -> None:
    """More readers than a page has room to note, and elements that are less than what is noted."""
    source = """typedef int int4 __attribute__((ext_vector_type(4)));
    KERNEL k(%s* x, %s* out) {
      if (GROUP < %d) out[GROUP * 32 + THREAD] = x[%s];
      else if (THREAD == 0) *(char*)(x + 33 - 1) = 1;
    }"""
    for which, races in (("THREAD", False), ("THREAD + 1", True)):
        code = compile_hip(SYNC + source % (element, element, readers, which), target, tmp_path)
        x, out = np.zeros(33 * 16, np.uint8), np.zeros((readers + 1) * 32 * 16, np.uint8)
        report = launch(code, target, readers + 1, 32, x, out, collect=True)
        assert any("race: writes" in finding for finding in report.findings) == races


# What is known of LDS changes between two rounds of a loop that does the same in each.
LDS_LOOP = """KERNEL k(int* out) {
  __shared__ int a[64];
  volatile __attribute__((address_space(3))) int* at = (volatile __attribute__((address_space(3))) int*)a;
  int sum = 0;
  #pragma clang loop unroll(disable)
  for (int round = 0; round < 6; ++round) {
    %s
  }
  out[THREAD] = sum;
}"""


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("at[THREAD] = round; sum += at[THREAD];", None),
        ("if (THREAD < 32) at[THREAD] = round; SYNC(); sum += at[THREAD % 32]; SYNC();", None),
        ("if (THREAD < 32) at[THREAD] = round; SYNC(); sum += at[THREAD % 32];", "race"),
        ("if (THREAD < 32) sum += at[THREAD] = round; else if (round == 5) sum += at[THREAD - 32];", "race: reads"),
        ("if (round == 0) at[THREAD] = 1; sum += at[THREAD - (THREAD >= 32 && round == 5) * 32];", "race: reads"),
        ("if (THREAD < 32 && round == 0) at[THREAD] = 1; SYNC(); sum += at[THREAD % 32]; "
         "if (THREAD >= 32 && round == 5) at[THREAD - 32] = 2;", "race: writes"),
        ('int x = round; if (round == 4) asm volatile("v_mov_b32 %0, v99" : "=v"(x)); at[THREAD] = x; '
         "if (at[THREAD] == 7) out[THREAD] = 1;", "uninitialised"),
    ],
)  # fmt: skip
def test_a_loop_over_lds(body: str, finding: str | None, target: str, tmp_path: Path) -> None:
    out = np.zeros(64, np.int32)
    if finding is None:
        launch(compile_hip(SYNC + LDS_LOOP % body, target, tmp_path), target, 1, 64, out)
        assert (out == 15).all()
    else:
        expect(finding, LDS_LOOP % body, target, tmp_path, out)


def test_neighbours_in_one_dword_are_no_race(target: str, tmp_path: Path) -> None:
    code = compile_hip(SYNC + "KERNEL k(short* out) { out[THREAD * 2 + GROUP] = GROUP; }", target, tmp_path)
    launch(code, target, 2, 64, np.zeros(128, np.int16))


def test_atomics_do_not_race(target: str, tmp_path: Path) -> None:
    source = "KERNEL k(int* out) { __hip_atomic_fetch_add(out, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }"
    out = np.zeros(1, np.int32)
    launch(compile_hip(SYNC + source, target, tmp_path), target, 3, 64, out)
    assert out[0] == 192


# A compare-and-swap loop begins with an ordinary load: a value that is out of date only costs a round.
SWAP_LOOP = """KERNEL k(int* out, int* seen) {
  int mine = THREAD + 64 * GROUP;
  %s
  int* place = out + %s;
  int old = *place;
  while (!__hip_atomic_compare_exchange_strong(place, &old, old > mine ? old : mine, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {}
}"""


@pytest.mark.parametrize(
    ("place", "expected"), [("THREAD % 2", [190, 191]), ("0", [191, 0])]
)  # a vector, a scalar load
def test_the_load_before_a_compare_and_swap_does_not_race(
    place: str, expected: list[int], target: str, tmp_path: Path
) -> None:
    out, seen = np.zeros(2, np.int32), np.zeros(192, np.int32)
    launch(compile_hip(SYNC + SWAP_LOOP % ("", place), target, tmp_path), target, 3, 64, out, seen)
    np.testing.assert_array_equal(out, expected)
    early = SWAP_LOOP % ("seen[mine] = out[(THREAD + 1) % 2];", place)
    expect("race: reads", early, target, tmp_path, out, seen, grid=3)


def test_lanes_that_store_different_data_to_one_place(target: str, tmp_path: Path) -> None:
    message = expect(
        "collision", "KERNEL k(int* out) { out[THREAD / 2] = THREAD; }", target, tmp_path, np.zeros(64, np.int32)
    )
    assert "lanes 0 and 1" in message


def test_lanes_that_store_equal_data_to_one_place_are_no_finding(target: str, tmp_path: Path) -> None:
    code = compile_hip(SYNC + "KERNEL k(int* out) { out[THREAD / 32] = 5; }", target, tmp_path)
    launch(code, target, 1, 64, np.zeros(2, np.int32))


def test_a_wave_that_ends_before_a_barrier(target: str, tmp_path: Path) -> None:
    source = "KERNEL k(int* out) { if (THREAD >= 32) return; SYNC(); out[THREAD] = 1; }"
    expect("barrier", source, target, tmp_path, np.zeros(64, np.int32))


def test_out_of_bounds_needs_no_check(target: str, tmp_path: Path) -> None:
    code = compile_hip(SYNC + "KERNEL k(int* out) { out[THREAD] = 1; }", target, tmp_path)
    with pytest.raises(MemoryFault):
        launch(code, target, 1, 64, np.zeros(63, np.int32), checks=())


def test_a_spin_that_nobody_ends(target: str, tmp_path: Path) -> None:
    source = "KERNEL k(int* flag) { while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0); }"
    with pytest.raises(SpinError):
        launch(compile_hip(SYNC + source, target, tmp_path), target, 1, 64, np.zeros(1, np.int32))


def test_a_wmma_that_reads_the_result_of_the_one_before(target: str, tmp_path: Path) -> None:
    zeros = "\\n ".join(f"v_mov_b32 v{reg}, 0" for reg in range(64, 72))
    first = "v_wmma_f32_16x16x16_f16 v[72:79], v[64:71], v[64:71], 0"
    second = "v_wmma_f32_16x16x16_f16 v[80:87], v[72:79], v[64:71], 0"
    clobbers = ", ".join(f'"v{reg}"' for reg in range(64, 88))
    source = (
        f'KERNEL k(float* out) {{ asm volatile("{zeros}\\n {first}\\n {second}" ::: {clobbers}); out[THREAD] = 0; }}'
    )
    expect("missing v_nop", source, target, tmp_path, np.zeros(64, np.float32))


def test_findings_can_be_collected(target: str, tmp_path: Path) -> None:
    code = compile_hip(SYNC + "KERNEL k(int* out) { out[THREAD / 2] = THREAD; }", target, tmp_path)
    report = launch(code, target, 1, 64, np.zeros(64, np.int32), collect=True)
    assert len(report.findings) == 1
    assert "collision" in report.findings[0]


def test_unknown_checks_are_refused_by_name(target: str, tmp_path: Path) -> None:
    code = compile_hip(SYNC + "KERNEL k(int* out) { out[THREAD] = 1; }", target, tmp_path)
    with pytest.raises(ValueError, match="speling"):
        launch(code, target, 1, 64, np.zeros(64, np.int32), checks=("speling",))
