"""From a request to the tokens of its prompt."""

from shared.errors import BadRequest, InternalError, PromptTooLong, ServiceError
from shared.protocol import JobArgs, Message
from worker.backends.base import Backend
from worker.reuse import common_prefix

_INPUTS = ("prompt", "messages", "prompt_token_ids")


class Prompts:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def prepare(self, args: JobArgs, at_s: float) -> list[int]:
        """The tokens of the prompt. What fails here fails this job alone. Raises ``ServiceError``."""
        prompt = self._tokens(args, at_s)
        self._check_length(args, str(len(prompt)), len(prompt))
        return prompt

    def _tokens(self, args: JobArgs, at_s: float) -> list[int]:
        if args.request.prompt_token_ids is not None:
            return self._given_tokens(args.request.prompt_token_ids)
        try:
            text, is_raw = self._render(args, at_s)
            # Before it is tokenized: that takes seconds for a text that cannot fit anyway.
            at_least = self._backend.count_at_least(text, raw=is_raw)
            self._check_length(args, f"at least {at_least}", at_least)
            prompt = self._backend.tokenize(text, raw=is_raw)
            if args.warm and args.request.messages is not None:
                prompt = self._before_next_turn(args, prompt, at_s)
        except ServiceError:
            raise
        except Exception as error:
            raise InternalError(f"The prompt could not be prepared: {error}") from error
        if not prompt:
            raise BadRequest("prompt: has no tokens for this model", field="prompt")
        return prompt

    def _given_tokens(self, tokens: tuple[int, ...]) -> list[int]:
        num_vocab = self._backend.facts.num_vocab
        if num_vocab and max(tokens) >= num_vocab:
            raise BadRequest(
                f"prompt_token_ids: {max(tokens)} is no token of this model, which has {num_vocab}",
                field="prompt_token_ids",
            )
        return list(tokens)

    def _check_length(self, args: JobArgs, words: str, num_tokens: int) -> None:
        limit = self._backend.facts.context_tokens
        if num_tokens >= limit:
            raise PromptTooLong(
                f"The prompt has {words} tokens; the context of the model holds {limit}, "
                "the answer included.",
                field=next(name for name in _INPUTS if getattr(args.request, name) is not None),
            )

    def _render(self, args: JobArgs, at_s: float) -> tuple[str, bool]:
        """The text, and whether it is continued as it is."""
        request = args.request
        if request.messages is not None:
            tools = request.tools or () if request.calls_tools else ()
            return self._backend.render_chat(request.messages, at_s, tools), False
        assert request.prompt is not None, "a request has a prompt, token ids or messages"
        if request.raw or not self._backend.facts.has_chat_template:
            return request.prompt, True
        messages = [Message(role="user", content=request.prompt)]
        return self._backend.render_chat(messages, at_s), False

    def _before_next_turn(self, args: JobArgs, prompt: list[int], at_s: float) -> list[int]:
        """The part of a chat's prompt that does not depend on what is said next."""
        assert args.request.messages is not None, "asked for chats only"
        turns = [(*args.request.messages, Message(role="user", content=c)) for c in ("a", "1")]
        texts = [self._backend.render_chat(messages, at_s) for messages in turns]
        one, other = (tuple(self._backend.tokenize(text, raw=False)) for text in texts)
        common = common_prefix(one, other)
        return list(one[:common]) or prompt
