"""What a request may hold: pure, so that every bound is a setting and every refusal names it.

``GenerateRequest`` has ceilings of its own, which a worker holds to; these are the gateway's.
"""

from api.validation import InvalidRequest, Problem
from shared.asks import ApplyTemplate, Detokenize, Question, Tokenize
from shared.protocol import GenerateRequest, Message
from shared.settings import Settings
from shared.webhooks.addresses import url_problem


def check_bounds(request: GenerateRequest, settings: Settings) -> None:
    """Raises ``InvalidRequest`` with all that is too long or too many."""
    problems = [
        *_input_problems(request, settings),
        *_stop_problems(request, settings),
        *webhook_problems(request.webhook_url, settings),
    ]
    if problems:
        raise InvalidRequest(problems)


def check_text(field: str, text: str, settings: Settings) -> None:
    """Raises ``InvalidRequest`` for a prompt, or a part of one, that is too long by itself."""
    problems = _at_most(field, len(text), settings.max_prompt_chars, "characters")
    if problems:
        raise InvalidRequest(problems)


def check_question(question: Question, settings: Settings) -> None:
    """Raises ``InvalidRequest``; see ``check_bounds``."""
    match question:
        case Tokenize():
            num_chars = len(question.content)
            problems = _at_most("content", num_chars, settings.max_prompt_chars, "characters")
        case Detokenize():
            num_tokens = len(question.tokens)
            problems = _at_most("tokens", num_tokens, settings.max_prompt_chars, "elements")
        case ApplyTemplate():
            problems = _message_problems(question.messages, settings)
    if problems:
        raise InvalidRequest(problems)


def _input_problems(request: GenerateRequest, settings: Settings) -> list[Problem]:
    max_chars = settings.max_prompt_chars
    if request.prompt is not None:
        return _at_most("prompt", len(request.prompt), max_chars, "characters")
    if request.prompt_token_ids is not None:
        num_tokens = len(request.prompt_token_ids)
        return _at_most("prompt_token_ids", num_tokens, max_chars, "elements")
    return _message_problems(request.messages or (), settings)


def _message_problems(messages: tuple[Message, ...], settings: Settings) -> list[Problem]:
    num_chars = sum(message.num_chars for message in messages)
    return [
        *_at_most("messages", len(messages), settings.max_messages, "elements"),
        *_at_most(
            "messages",
            num_chars,
            settings.max_prompt_chars,
            "characters in all contents together",
        ),
    ]


def webhook_problems(url: str | None, settings: Settings) -> list[Problem]:
    """As far as it can be seen without a look-up; the rest is refused when it is sent."""
    if url is None:
        return []
    if not settings.webhook_secret.get_secret_value():
        problem: str | None = (
            "is refused: this gateway has no MINI_VLLM_WEBHOOK_SECRET to sign with"
        )
    else:
        problem = url_problem(url, allow_private=settings.webhook_allow_private)
    return [Problem("webhook_url", f"webhook_url: {problem}")] if problem else []


def _stop_problems(request: GenerateRequest, settings: Settings) -> list[Problem]:
    """Of the texts the first that is too long."""
    problems = _at_most("stop", len(request.stops), settings.max_stops, "elements")
    max_chars = settings.max_stop_chars
    for index, text in enumerate(request.stops):
        if len(text) > max_chars:
            field = "stop" if isinstance(request.stop, str) else f"stop.{index}"
            return problems + _at_most(field, len(text), max_chars, "characters")
    return problems


def _at_most(field: str, found: int, limit: int, unit: str) -> list[Problem]:
    if found <= limit:
        return []
    return [Problem(field, f"{field}: must have at most {limit} {unit} (has {found})")]
