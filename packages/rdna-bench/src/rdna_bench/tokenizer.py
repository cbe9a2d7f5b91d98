"""The tokenizer and chat template that a GGUF file describes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.decoders import DecodeStream
from tokenizers.models import BPE

from rdna_bench.model_file import ModelFile, ModelFileError

# gguf's token types: control tokens are matched whole in a text, never built from characters.
_CONTROL_TOKEN = 3


def _pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """How a text is cut before byte-pair merges, by the GGUF key ``tokenizer.ggml.pre``."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if name == "gpt-2":
        return byte_level
    raise ModelFileError(f"pre-tokenizer {name!r} is not known: it must be 'smollm' or 'gpt-2'")


def _byte_characters() -> list[str]:
    """The character that stands for each byte in byte-level BPE: itself where it prints, else one from U+0100 on."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in prints else chr(next(others)) for byte in range(256)]


class ChatTokenizer:
    """Text to token ids and back, with the chat template of the model."""

    def __init__(self, file: ModelFile) -> None:
        """Read vocabulary, merges, control tokens and chat template from ``file``.

        Raises:
            ModelFileError: the tokenizer is of a kind that is not served.
        """
        kind = file.value("tokenizer.ggml.model", str)
        if kind != "gpt2":
            raise ModelFileError(f"{file.path}: tokenizer {kind!r} is not served: it must be 'gpt2' (byte-level BPE)")
        tokens = file.value("tokenizer.ggml.tokens", list)
        merges = [tuple(merge.split(" ")) for merge in file.value("tokenizer.ggml.merges", list)]
        types = file.value("tokenizer.ggml.token_type", list)
        self._tokenizer = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
        self._tokenizer.pre_tokenizer = _pre_tokenizer(file.value("tokenizer.ggml.pre", str))
        self._tokenizer.decoder = decoders.ByteLevel()
        control = [token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL_TOKEN]
        self._tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in control])
        # Byte-level BPE spells text in bytes, byte b by one character; a vocabulary may lack some and would drop them.
        spelt = set(tokens)
        self._unknown_bytes = frozenset(b for b, character in enumerate(_byte_characters()) if character not in spelt)
        self.end_of_text = file.value("tokenizer.ggml.eos_token_id", int)
        # The settings that chat templates are written for: a tag's own line leaves no blank line.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        self._chat = environment.from_string(file.value("tokenizer.chat_template", str))

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``; control tokens written in it (``<|im_end|>``) become their one id.

        Raises:
            ValueError: a character holds a UTF-8 byte that the vocabulary cannot spell.
        """
        for character in text if self._unknown_bytes.intersection(text.encode()) else "":
            if self._unknown_bytes.intersection(character.encode()):
                raise ValueError(
                    f"{character!r} (U+{ord(character):04X}) cannot be spelt in the model's vocabulary: leave it out"
                )
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ``ids``, control tokens left out; bytes that are no UTF-8 become U+FFFD."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def render_chat(self, prompt: str) -> str:
        """The chat template filled with one user message, up to where the assistant's answer begins."""
        return self._chat.render(messages=[{"role": "user", "content": prompt}], add_generation_prompt=True)

    def encode_chat(self, prompt: str) -> list[int]:
        """Token ids of ``render_chat(prompt)``."""
        return self.encode(self.render_chat(prompt))

    def stream(self, ids: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Yield ``(token, text)`` as ids come; text waits ("") until its last character is complete."""
        stream = DecodeStream(skip_special_tokens=True)
        for token in ids:
            yield token, stream.step(self._tokenizer, token) or ""
