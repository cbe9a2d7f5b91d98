"""The tokenizer against token ids that SmolLM2's own tokenizer is known to give."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdna_bench.model_file import ModelFile, ModelFileError
from rdna_bench.tokenizer import ChatTokenizer
from tiny_model import write_tiny_model

SYSTEM = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182]
USER = [2, 198, 1, 4093, 198]
ASSISTANT = [2, 198, 1, 520, 9531, 198]


@pytest.mark.parametrize(
    ("prompt", "ids"),
    [
        ("What is the capital of France?", [1780, 314, 260, 3575, 282, 4649, 47]),
        ("Hello", [19556]),
        ("hello world", [28120, 905]),
        (
            "Quelle est la capitale de la France ? Réponds en une phrase.",
            [65, 2726, 290, 1264, 2618, 47765, 1121, 367, 2618, 4649, 9148, 428, 2756, 96, 19870, 430, 16520, 8715, 30],
        ),
    ],
)
def test_known_chats(tokenizer: ChatTokenizer, prompt: str, ids: list[int]) -> None:
    assert tokenizer.encode_chat(prompt) == SYSTEM + USER + ids + ASSISTANT


def test_digits_stand_alone(tokenizer: ChatTokenizer) -> None:
    assert len(tokenizer.encode("2048")) == 4
    assert len(tokenizer.encode("١٢")) >= 2


def test_chat_template(tokenizer: ChatTokenizer) -> None:
    text = tokenizer.render_chat("Hi")
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert text.endswith("<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_control_tokens(tokenizer: ChatTokenizer) -> None:
    assert tokenizer.end_of_text == 2
    assert tokenizer.encode("<|im_start|>a<|im_end|>") == [1, *tokenizer.encode("a"), 2]
    assert tokenizer.decode([1, *tokenizer.encode("a b"), 2]) == "a b"


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], max_codepoint=0x3FFFF), max_size=40))
def test_text_survives_a_round_trip(tokenizer: ChatTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert "".join(piece for _, piece in tokenizer.stream(ids)) == text


def test_a_character_is_streamed_when_it_is_complete(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("🜁")
    pieces = [piece for _, piece in tokenizer.stream(ids)]
    assert len(pieces) > 1
    assert pieces == [""] * (len(ids) - 1) + ["🜁"]


@pytest.mark.parametrize("character", ["\x04", "\U00040000"])
def test_characters_that_the_vocabulary_cannot_spell(tokenizer: ChatTokenizer, character: str) -> None:
    with pytest.raises(ValueError, match=rf"U\+{ord(character):04X}\) cannot be spelt in the model's vocabulary"):
        tokenizer.encode(f"a{character}b")


def test_unknown_pre_tokenizer(tmp_path: Path) -> None:
    file = ModelFile(write_tiny_model(tmp_path / "other.gguf", pre="llama-bpe"))
    with pytest.raises(ModelFileError, match="pre-tokenizer 'llama-bpe' is not known: it must be 'smollm' or 'gpt-2'"):
        ChatTokenizer(file)
