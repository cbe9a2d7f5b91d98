"""The doctor's findings as plain text, for a terminal and for a report."""

from __future__ import annotations

from rdna_bench.doctor import Diagnosis


def doctor_text(diagnosis: Diagnosis) -> str:
    """Everything in lines that can be pasted into a report as they stand."""
    machine = diagnosis.machine
    lines = [
        f"machine   {machine.processor}, {machine.cores} cores, {machine.system}",
        f"python    {machine.python}, numpy {machine.numpy}",
        "packages  " + ", ".join(f"{name} {version}" for name, version in diagnosis.packages.items()),
        f"torch     {diagnosis.torch}",
        f"ROCm      {diagnosis.rocm}",
        *(f"variable  {name}={value}" for name, value in diagnosis.environment.items()),
        *(f"device    {text} (the hip executor is untested on hardware)" for text in diagnosis.devices),
        *(f"hip       {text}" for text in diagnosis.refused),
        "builds    "
        + (", ".join(f"{count} for {target}" for target, count in diagnosis.builds.items()) or "none")
        + f"; {diagnosis.compiler}",
        f"shape     {diagnosis.shape}",
    ]
    for test in diagnosis.self_test:
        found = test.error if isinstance(test.error, str) else f"error {test.error:.1e} of {test.tolerance:.0e} allowed"
        verdict = "passed" if test.passed else "FAILED"
        lines.append(f"trial     {verdict}: {test.executor} {test.target}, {test.shape}: {found}, {test.seconds:.2f} s")
    lines.append("result    " + ("everything that was tried works" if diagnosis.passed else "something does NOT work"))
    return "\n".join(lines)
