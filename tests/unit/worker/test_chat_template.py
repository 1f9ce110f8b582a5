import logging
from pathlib import Path

import pytest

from shared.errors import BadRequest
from shared.protocol import Message, Tool
from worker.backends.chat_template import ChatTemplate, compile_template

MODEL = Path("/models/some.gguf")
ALTERNATING = """
{%- for message in messages -%}
    {%- if (message.role == "user") != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("roles must alternate") }}
    {%- endif -%}
    [{{ message.role }}] {{ message.content }}
{% endfor -%}
"""


def compile_text(source: str) -> ChatTemplate:
    template = compile_template(source.encode(), MODEL, bos_token="<s>", eos_token="</s>")
    assert template is not None
    return template


def messages(*roles: str) -> list[Message]:
    return [Message.model_validate({"role": role, "content": f"I am {role}"}) for role in roles]


def test_renders_roles_and_contents_in_order() -> None:
    template = compile_text(ALTERNATING)
    rendered = template.render(messages("user", "assistant", "user"), 0)
    assert rendered == "[user] I am user\n[assistant] I am assistant\n[user] I am user\n"


def test_a_refusal_is_a_bad_request_in_the_words_of_the_template() -> None:
    with pytest.raises(BadRequest, match="roles must alternate") as caught:
        compile_text(ALTERNATING).render(messages("user", "user"), 0)
    assert caught.value.field == "messages"


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].content + 1 }}",
        "{{ messages[7].content }}",
        "{{ tools.names }}",
        "{% for a, b in messages[0].role %}{% endfor %}",
    ],
)
def test_a_template_that_fails_is_a_bad_request(source: str) -> None:
    with pytest.raises(BadRequest, match="chat template refuses"):
        compile_text(source).render(messages("user"), 0)


def test_what_a_template_may_rely_on() -> None:
    source = """{{ bos_token }}{{ eos_token }}
    {% if add_generation_prompt %}
go
    {% endif %}
{% for m in messages %}{% if loop.index0 == 1 %}{% break %}{% endif %}{{ m.role }}{% endfor %}"""
    assert compile_text(source).render(messages("user", "system"), 0) == "<s></s>\ngo\nuser"


def test_the_date_is_that_of_the_job_in_utc() -> None:
    """Else an attempt after midnight, or on another host, would go on behind another prompt."""
    template = compile_text("{{ strftime_now('%d %b %Y %H:%M') }}")
    assert template.render(messages("user"), 951_782_399) == "28 Feb 2000 23:59"
    assert template.render(messages("user"), 951_782_401) == "29 Feb 2000 00:00"


def test_content_is_never_a_template() -> None:
    hostile = [Message(role="user", content="{{ 7 * 7 }}{% raise %}")]
    assert compile_text("{{ messages[0].content }}").render(hostile, 0) == hostile[0].content


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
    ],
)
def test_a_template_is_kept_in_its_sandbox(source: str) -> None:
    with pytest.raises(BadRequest):
        compile_text(source).render(messages("user"), 0)


@pytest.mark.parametrize("source", [None, b"", b"chatml"])
def test_no_template(source: bytes | None) -> None:
    assert compile_template(source, MODEL, bos_token="", eos_token="") is None


@pytest.mark.parametrize("source", [b"{% if %}", b"{{ messages", b"{\xff}"])
def test_a_template_that_does_not_compile_is_none_and_logged(
    source: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert compile_template(source, MODEL, bos_token="", eos_token="") is None
    assert str(MODEL) in caplog.text


HERMES = (Path(__file__).parents[2] / "data" / "hermes.jinja").read_text()
WEATHER = Tool.model_validate(
    {"type": "function", "function": {"name": "weather", "description": "<now & then> für Städte"}}
)


@pytest.mark.parametrize(
    ("source", "tool_format"),
    [
        (HERMES, "hermes"),
        (ALTERNATING, None),
        ("{% if tools %}{{ tools | tojson }}{% endif %}", None),
        ("""{% if tools %}{"name": n, "parameters": p}{% endif %}<|ipython|>""", "llama3"),
    ],
)
def test_the_template_shows_how_a_model_calls_tools(source: str, tool_format: str | None) -> None:
    assert compile_text(source).tool_format == tool_format


def test_tools_calls_and_their_results_reach_the_template() -> None:
    call = {"id": "1", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    turns = [
        Message(role="user", content="How is it in Rome?"),
        Message.model_validate({"role": "assistant", "tool_calls": [call]}),
        Message(role="tool", tool_call_id="1", content="sunny"),
    ]
    rendered = compile_text(HERMES).render(turns, 0, [WEATHER])
    assert '"description": "<now & then> für Städte"' in rendered
    assert '{"name": "weather", "arguments": {"city": "Rome"}}' in rendered
    assert "<tool_response>\nsunny\n</tool_response>" in rendered
    assert "<tools>" not in compile_text(HERMES).render(turns[:1], 0)


def test_broken_arguments_of_a_call_stay_as_they_are() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": '{"city": '}}
    turns = [Message.model_validate({"role": "assistant", "content": "", "tool_calls": [call]})]
    template = compile_text("{{ messages[0].tool_calls[0].function.arguments }}")
    assert template.render(turns, 0) == '{"city": '
