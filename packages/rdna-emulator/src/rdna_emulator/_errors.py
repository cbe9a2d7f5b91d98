"""What can go wrong, one class a kind."""

from __future__ import annotations


class EmulatorError(Exception):
    """Base of all errors of this package."""


class CodeObjectError(EmulatorError):
    """The bytes are no code object for this device: not ELF, truncated, for another target, or damaged."""


class LaunchError(EmulatorError, ValueError):
    """A launch that cannot begin: wrong arguments, sizes, or resources."""


class UnknownInstructionError(EmulatorError):
    """A wave reached words that are no instruction, or left its code."""


class UnsupportedError(EmulatorError):
    """A wave reached an instruction or a mode that is not executed, or the kernel stopped itself (s_trap)."""


class MemoryFault(EmulatorError):  # noqa: N818 - what the device calls it
    """A lane accessed memory that is not registered, LDS or scratch out of range, or an address that is not aligned."""


class CheckError(EmulatorError):
    """A check that was switched on has found something."""


class InterruptedLaunchError(EmulatorError):
    """Ctrl-C (SIGINT) ended a launch early. The main thread gets KeyboardInterrupt, as always; this is for others."""


class SpinError(EmulatorError):
    """Waves spin, and none in flight could end it."""
