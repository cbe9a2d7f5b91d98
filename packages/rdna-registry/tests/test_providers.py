from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import pytest
from rdna_registry import load, load_prefill, prefill_variants, providers, variants

DECODE = variants()[0]
PREFILL = prefill_variants(14, 2, 64, 16, 0, "fp16")[0]


def nothing(variant: object) -> None:
    return None


def decode_only(variant: Any) -> Callable[[], str] | None:
    return (lambda: variant.name) if variant is DECODE else None


def everything(variant: Any) -> Callable[[], str]:
    return lambda: "any"


no_function = 3


@pytest.fixture
def provide(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], None]]:
    def install(names: dict[str, str]) -> None:
        group = providers.ENTRY_POINT_GROUP
        points = [metadata.EntryPoint(name, value, group) for name, value in names.items()]
        monkeypatch.setattr(metadata, "entry_points", lambda **given: points if given == {"group": group} else [])
        monkeypatch.setitem(sys.modules, "some_kernels", sys.modules[__name__])
        providers._providers.cache_clear()

    yield install
    monkeypatch.undo()
    providers._providers.cache_clear()


def test_the_group() -> None:
    assert providers.ENTRY_POINT_GROUP == "rdna_registry.kernels"


def test_no_provider(provide: Callable[[dict[str, str]], None]) -> None:
    provide({})
    assert load(DECODE) is None
    assert load_prefill(PREFILL) is None


def test_the_first_that_has_one(provide: Callable[[dict[str, str]], None]) -> None:
    provide({"c": "some_kernels:everything", "a": "some_kernels:nothing", "b": "some_kernels:decode_only"})
    kernel, prefill = load(DECODE), load_prefill(PREFILL)
    assert kernel is not None
    assert kernel() == DECODE.name
    assert prefill is not None
    assert prefill() == "any"


@pytest.mark.parametrize("value", ["no_such_module_here:provider", "some_kernels:missing"])
def test_a_provider_that_cannot_be_imported(provide: Callable[[dict[str, str]], None], value: str) -> None:
    provide({"broken": value})
    with pytest.raises(
        RuntimeError, match=rf"kernel provider 'broken' \({value}\) cannot be imported: .*repair or remove"
    ):
        load(DECODE)


def test_a_provider_that_is_no_function(provide: Callable[[dict[str, str]], None]) -> None:
    provide({"number": "some_kernels:no_function"})
    with pytest.raises(RuntimeError, match=r"'number'.*no function that takes a variant"):
        load(DECODE)


def test_other_variants() -> None:
    with pytest.raises(TypeError, match=r"^variant is .*a KernelVariant is needed"):
        load(PREFILL)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match=r"^variant is .*a PrefillVariant is needed"):
        load_prefill(DECODE)  # type: ignore[arg-type]  # wrong on purpose
