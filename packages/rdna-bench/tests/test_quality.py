"""The command ``quality`` on the tiny model: its forward pass, its figures, its outputs and what it refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import invoke
from rdna_bench.causal_attention import causal_attention, distortion
from rdna_bench.model_file import ModelFile
from rdna_bench.quality_run import QualityOptions, QualityRun
from rdna_bench.reference import numpy_attention, reference_attention
from rdna_bench.transformer import Transformer
from rdna_bench.weights import load_weights

NAMES = "fp16,bf16,int8,fp8_e4m3,minmax4,octave_k3v4,octave_k3v3,octave_k3v3_compact"


@pytest.fixture(scope="module")
def tiny_model(tiny_path: Path) -> Transformer:
    return Transformer(load_weights(ModelFile(tiny_path)))


def measure(path: Path, **options: Any) -> dict[str, Any]:
    run = QualityRun(QualityOptions(**{"tokens": 300, "model_path": path, **options}))
    run.run()
    return run.to_dict()


def test_causal_attention_is_the_reference_token_by_token() -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((200, 6, 64), np.float32)
    k, v = rng.standard_normal((2, 200, 2, 64), np.float32)
    cache = np.concatenate([k, v], axis=-1).transpose(1, 0, 2)[None]
    table, lengths = np.zeros((1, 1), np.int32), np.array([200], np.int32)
    expected = reference_attention(q, cache, table, lengths, max_query_len=200)
    np.testing.assert_allclose(causal_attention(q, k, v), expected, atol=2e-6)


def test_a_whole_sequence_is_what_the_paged_forward_pass_computes(tiny_model: Transformer) -> None:
    tokens = list(np.random.default_rng(1).integers(3, 250, 90))
    shapes = []

    def attend(layer: int, q: Any, k: Any, v: Any) -> Any:
        shapes.append((layer, q.shape, k.shape, v.shape))
        return causal_attention(q, k, v)

    whole = tiny_model.whole(tokens, attend)
    paged = tiny_model.forward(tokens, tiny_model.new_cache(16, "fp16"), numpy_attention)
    assert shapes == [(layer, (90, 4, 64), (90, 2, 64), (90, 2, 64)) for layer in range(2)]
    np.testing.assert_allclose(whole, paged, atol=0.02)
    assert np.abs(whole - paged).mean() < 1e-3
    with pytest.raises(ValueError, match="257 tokens do not fit the model's context of 256"):
        tiny_model.whole([3] * 257, attend)


def test_distortion_is_what_it_says() -> None:
    rng = np.random.default_rng(2)
    q = rng.standard_normal((150, 4, 64), np.float32)
    k, v = rng.standard_normal((2, 150, 2, 64), np.float32)
    queries = np.arange(149, 0, -64)
    nothing = distortion(q, (k, v), (k, v), queries)
    assert nothing.output_error == 0
    assert nothing.score_slope == 1
    # A softmax does not see a shift of all keys, and sees their stretching as a slope.
    shifted = distortion(q, (k, v), (k + rng.standard_normal(64, np.float32), v), queries)
    assert shifted.output_error < 1e-5
    assert shifted.score_slope == pytest.approx(1, abs=1e-5)
    assert distortion(q, (k, v), (1.25 * k, v), queries).score_slope == pytest.approx(1.25, abs=1e-5)
    changed = distortion(q, (k, v), (k, v + 0.1), queries)
    true = causal_attention(q, k, v)[queries]
    expected = np.linalg.norm(causal_attention(q, k, v + np.float32(0.1))[queries] - true) / np.linalg.norm(true)
    assert changed.output_error == pytest.approx(expected, rel=1e-5)
    both = nothing + changed
    assert both.output_error == pytest.approx(changed.output_error / 2**0.5)


def test_figures_of_all_formats(tiny_path: Path) -> None:
    result = measure(tiny_path, formats=tuple(NAMES.split(",")))
    assert result["sequences"] == [256, 44]
    assert result["predictions"] == 298
    by_name = {entry["name"]: entry for entry in result["formats"]}
    assert list(by_name) == NAMES.split(",")
    for name, entry in by_name.items():
        # Two layers with two KV heads of 64.
        assert entry["bytes_per_token"] == 4 * entry["slot_bytes"]
        assert entry["tokens_per_gib"] == 2**30 // entry["bytes_per_token"]
        assert entry["nll"] == pytest.approx(result["reference"]["nll"] + entry["nll_change"]["value"])
        assert entry["perplexity"] == pytest.approx(np.exp(entry["nll"]))
        assert len(entry["attention_output_error_per_layer"]) == len(entry["score_slope_per_layer"]) == 2
        assert entry["score_slope"] == pytest.approx(1, abs=0.02)
        for figure in ("nll_change", "kl", "top1_agreement"):
            assert entry[figure]["low"] <= entry[figure]["value"] <= entry[figure]["high"], (name, figure)
    errors = [by_name[name]["attention_output_error"] for name in ("fp16", "bf16", "int8", "fp8_e4m3", "octave_k3v4")]
    assert errors == sorted(errors)
    divergences = [by_name[name]["kl"]["value"] for name in ("fp16", "bf16", "int8", "octave_k3v4")]
    assert divergences == sorted(divergences)
    assert by_name["octave_k3v4"]["kl"]["value"] < by_name["octave_k3v3_compact"]["kl"]["value"]
    assert by_name["fp16"]["top1_agreement"]["value"] > 0.98


def test_runs_repeat_and_the_seed_moves_intervals_only(tiny_path: Path) -> None:
    first, again, other = (measure(tiny_path, formats=("octave_k3v3",), seed=seed)["formats"][0] for seed in (1, 1, 2))
    assert first == again
    assert first["nll_change"]["value"] == other["nll_change"]["value"]
    assert first["nll_change"]["low"] != other["nll_change"]["low"]


def test_a_variant_is_compared_with_its_format(tiny_path: Path) -> None:
    result = measure(tiny_path, tokens=256, formats=("octave_k3v3_compact+centred+search",))
    assert result["calibration_tokens"] == 256
    base, variant = result["formats"]
    assert base["name"] == "octave_k3v3_compact"
    assert base["against"] is None
    assert variant["against"]["format"] == base["name"]
    assert variant["bytes_per_token"] == base["bytes_per_token"]
    ratio = variant["against"]["kl_ratio"]
    assert ratio["value"] == pytest.approx(variant["kl"]["value"] / base["kl"]["value"])
    assert ratio["low"] <= ratio["value"] <= ratio["high"]
    nll = variant["against"]["nll_loss_ratio"]
    assert variant["against"]["wins"] == (nll is not None and nll["high"] <= 0.9)


def test_the_table_and_the_plot(tiny_path: Path, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    formats = "int8,octave_k3v4+centred"
    result = invoke("quality", "--model", tiny_path, "--tokens", "100", "--formats", formats, "--plot", plot)
    assert result.exit_code == 0, result.output
    for word in ("99 predictions in 1 sequence", "tokens/GiB", "int8", "octave_k3v4+centred", "its NLL loss"):
        assert word in result.stdout
    drawing = ElementTree.parse(plot).getroot()
    words = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"int8", "octave_k3v4", "octave_k3v4+centred"} <= set(words)
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}circle"))) == 3


def test_json_of_a_text_of_ones_own(tiny_path: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the thing that they thought " * 5, encoding="utf-8")
    arguments = ("--model", tiny_path, "--text", text, "--tokens", "50", "--skip", "10", "--formats", "fp16", "--json")
    result = invoke("quality", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    value = json.loads(result.stdout)
    assert value["text"] == str(text)
    assert value["predictions"] == 49
    # A flat text shows nothing but rounding.
    assert value["formats"][0]["kl"]["value"] < 1e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tokens", "1"), "it must be 2 or more"),
        (("--skip", "-1"), "it must be 0 or more"),
        (("--tokens", "100000"), "lower --tokens or --skip, or name a longer --text"),
        (("--tokens", "257"), "257 tokens leave one alone in a sequence of its own"),
        (("--formats", "fp16,int9"), "unknown format 'int9'; known: fp16"),
        (("--formats", "octave_k3v4+magic"), "unknown change 'magic'"),
        (("--formats", ""), "unknown format ''"),
        (("--plot", "plot.png"), "name a file that ends in .svg"),
        (("--plot", "no/such/folder/plot.svg"), "make it first"),
        (("--plot", "/proc/self/plot.svg"), "the plot file is /proc/self/plot.svg, which cannot be written ("),
        (("--text", "no-such-text"), "--text is no-such-text, which cannot be read: No such file or directory"),
        (("--text", "/dev/zero"), "--text is /dev/zero, a device: name a text file"),
        (("--text", "."), "--text is ., which cannot be read: Is a directory"),
        (("--seed", "-1"), "it must be 0 or more"),
    ],
)
def test_bad_input(tiny_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = invoke("quality", "--model", tiny_path, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_plot_file_that_is_a_folder_is_refused(tiny_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plot.svg"
    folder.mkdir()
    result = invoke("quality", "--model", tiny_path, "--plot", folder)
    assert result.exit_code == 2
    assert "which is no file: name one" in result.stderr


def test_an_error_in_a_thread_ends_the_run(tiny_model: Transformer, tiny_path: Path) -> None:
    run = QualityRun(QualityOptions(tokens=300, model_path=tiny_path, formats=("fp16", "bf16")))

    def fail(layer: int, k: Any, v: Any) -> Any:
        raise RuntimeError(f"layer {layer} cannot be stored")

    object.__setattr__(run.formats[0], "store", fail)
    with pytest.raises(RuntimeError, match="layer 0 cannot be stored"):
        run.run(model=tiny_model)


def test_the_packaged_text_is_long_enough(model_file: ModelFile) -> None:
    run = QualityRun(QualityOptions(), model_file)
    assert [len(sequence) for sequence in run.sequences] == [4096, 4096]


def test_the_real_model_on_three_hundred_tokens(model_file: ModelFile, model: Transformer) -> None:
    run = QualityRun(QualityOptions(tokens=300, formats=("fp16", "octave_k3v4_centred")), model_file)
    run.run(model=model)
    fp16, base, centred = run.results
    assert 2.5 < run.reference_nll.mean() < 4
    assert abs(fp16.nll_change.value) < 1e-3
    assert fp16.agreement.value > 0.98
    assert 0.01 < base.kl.value < 0.1
    assert centred.output_error < 0.9 * base.output_error
    assert base.bytes_per_token == centred.bytes_per_token == 30 * 3 * 72
