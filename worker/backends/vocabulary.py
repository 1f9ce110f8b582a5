"""The vocabulary of a model in llama.cpp: text to tokens and back."""

import ctypes
from itertools import islice
from typing import Any

import llama_cpp as llama

MAX_COUNTED_CONTROLS = 256


class Vocabulary:
    """``num_tokens`` may be 0: such a model cannot generate. ``handle`` is llama.cpp's."""

    def __init__(self, model: Any) -> None:
        self.handle: Any = llama.llama_model_get_vocab(model)
        self.num_tokens: int = llama.llama_vocab_n_tokens(self.handle)
        self._pieces: dict[int, bytes] = {}
        tokens = range(self.num_tokens)
        is_end = llama.llama_vocab_is_eog
        self.ends = frozenset(t for t in tokens if is_end(self.handle, t))
        texts = [self._piece_bytes(t, True).decode(errors="replace") for t in self._controls()]
        # Those that are a part of another one would be counted twice.
        self._specials = [t for t in texts if t and sum(t in other for other in texts) == 1]
        self.max_piece_bytes = max((len(self._piece_bytes(t, True)) for t in tokens), default=1)

    @property
    def bos_text(self) -> str:
        return self._text_of(llama.llama_vocab_bos(self.handle))

    @property
    def eos_text(self) -> str:
        return self._text_of(llama.llama_vocab_eos(self.handle))

    def count_at_least(self, text: str, *, raw: bool) -> int:
        """How many tokens the text has in any case, without tokenizing it."""
        # llama.cpp's search for special tokens takes the square of how many there are.
        num_special = 0 if raw else sum(text.count(special) for special in self._specials)
        return max(num_special, -(-len(text.encode()) // self.max_piece_bytes))

    def tokenize(self, text: str, *, raw: bool, add_special: bool = True) -> list[int]:
        """``raw``: special tokens in the text are plain text."""
        encoded = text.encode()
        size = len(encoded) + 8
        while True:
            buffer = (llama.llama_token * size)()
            count = llama.llama_tokenize(
                self.handle, encoded, len(encoded), buffer, size, add_special, not raw
            )
            if count >= 0:
                break
            size = -count
        tokens = list(buffer[:count])
        bos = llama.llama_vocab_bos(self.handle)
        written_twice = add_special and not raw and tokens[:2] == [bos, bos]
        if written_twice and llama.llama_vocab_get_add_bos(self.handle):
            return tokens[1:]
        return tokens

    def is_control(self, token: int) -> bool:
        return bool(llama.llama_vocab_is_control(self.handle, token))

    @property
    def tokenize_address(self) -> int:
        """Of llama.cpp's function, for a library that calls it by itself."""
        return ctypes.cast(llama.llama_cpp._lib.llama_tokenize, ctypes.c_void_p).value or 0

    def text_bytes(self, token: int) -> bytes:
        """Like ``piece``, and a control token as it is written in a template."""
        if not 0 <= token < self.num_tokens:
            raise ValueError(f"{token} is no token of this model")
        return self._piece_bytes(token, True)

    def piece(self, token: int) -> bytes:
        """Raises ``ValueError`` for what is no token: llama.cpp would end the process."""
        piece = self._pieces.get(token)
        if piece is None:
            if not 0 <= token < self.num_tokens:
                raise ValueError(f"{token} is no token of this model")
            piece = self._pieces[token] = self._piece_bytes(token, False)
        return piece

    def _controls(self) -> list[int]:
        """The first control tokens; some models have thousands that they do not use."""
        found = (t for t in range(self.num_tokens) if self.is_control(t))
        return list(islice(found, MAX_COUNTED_CONTROLS))

    def _text_of(self, token: int) -> str:
        return "" if token < 0 else self._piece_bytes(token, True).decode(errors="replace")

    def _piece_bytes(self, token: int, special: bool) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = llama.llama_token_to_piece(self.handle, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count
