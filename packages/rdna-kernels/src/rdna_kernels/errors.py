"""The errors of this package: each says what was given, what is allowed and what to do."""

from __future__ import annotations


class KernelsError(Exception):
    """Base of every error that rdna_kernels raises on purpose."""


class ArgumentError(KernelsError, ValueError):
    """An argument that cannot be served: wrong shape, dtype, stride or value. Nothing has been written."""


class UnsupportedError(KernelsError, NotImplementedError):
    """A feature that no kernel has yet, refused by name. Nothing has been written."""


class MissingBuildError(KernelsError, LookupError):
    """No code object of this name for this target is installed."""


class ExecutorError(KernelsError, RuntimeError):
    """No executor can run the call where its arrays live, or the executor refused a code object."""


class OutOfMemoryError(ExecutorError, MemoryError):
    """The device has no memory for scratch, an output or a code object."""
