import pytest

from api.validation import InvalidRequest, parse_generate_request


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ("{}", None, "give either `prompt` or `messages`"),
        ('{"prompt": ""}', "prompt", "prompt: must not be empty"),
        ('{"prompt": 5}', "prompt", "prompt: must be a text (got 5)"),
        (
            '{"prompt": "x", "max_tokens": 0}',
            "max_tokens",
            "max_tokens: must be greater than or equal to 1 (got 0)",
        ),
        (
            '{"prompt": "x", "max_tokens": "5"}',
            "max_tokens",
            "max_tokens: must be an integer (got '5')",
        ),
        ('{"prompt": "x", "raw": 1}', "raw", "raw: must be true or false (got 1)"),
        ('{"prompt": "x", "foo": 1}', "foo", "unknown field `foo`"),
        (
            '{"prompt": "x", "temperature": NaN}',
            "temperature",
            "temperature: must be a finite number (got nan)",
        ),
        (
            '{"prompt": "x", "priority": "urgent"}',
            "priority",
            "priority: must be 'high', 'normal' or 'low' (got 'urgent')",
        ),
        ('{"prompt": "x", "stop": [""]}', "stop.0", "stop.0: must not be empty"),
        ('{"prompt": "x", "stop": 5}', "stop", "stop: must be a text or a list of texts"),
        (
            '{"prompt": "x", "stop": ["%s"]}' % ("y" * 4097),
            "stop.0",
            "stop.0: must have at most 4096 characters (has 4097)",
        ),
        (
            '{"messages": [{"role": "robot", "content": "x"}]}',
            "messages.0.role",
            "messages.0.role: must be 'system', 'user', 'assistant' or 'tool' (got 'robot')",
        ),
        ('{"messages": []}', "messages", "messages: must not be empty"),
        (
            '{"messages": [{"role": "user"}]}',
            "messages.0",
            "messages.0: `content` is required",
        ),
        ("[]", None, "the body must be an object"),
    ],
)
def test_a_message_names_field_and_limit(body: str, field: str | None, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_generate_request(body.encode())
    assert (caught.value.field, caught.value.message) == (field, message)
    assert caught.value.problems == ()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"prompt": "\\ud800"'])
def test_what_is_not_json_is_said_to_be_so(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="the body is not valid JSON"):
        parse_generate_request(body)


LONE = "must be valid Unicode text, without lone surrogates"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (r'{"prompt": "\ud800"}', "prompt"),
        (r'{"prompt": "a\uDFFFb"}', "prompt"),
        (r'{"prompt": "\ud800\u0041"}', "prompt"),
        (r'{"prompt": "x", "stop": "\udc00"}', "stop"),
        (r'{"prompt": "x", "stop": ["\udc00"]}', "stop.0"),
        (r'{"prompt": "x", "stop": ["a", "\ud800"], "max_tokens": 0}', "stop.1"),
        (r'{"messages": [{"role": "user", "content": "\ud800"}]}', "messages.0.content"),
        (r'{"prompt": "\ud83d\ude00", "stop": "\ud83d"}', "stop"),
    ],
)
def test_half_a_character_is_refused_at_its_field(body: str, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_generate_request(body.encode())
    assert (caught.value.field, caught.value.message) == (field, f"{field}: {LONE}")


@pytest.mark.parametrize("body", [rb'{"\ud800": 1}', rb'{"prompt": "x", "role\ud800": "y"}'])
def test_half_a_character_in_a_name_is_refused_too(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=LONE):
        parse_generate_request(body)


def test_both_halves_are_a_character() -> None:
    assert parse_generate_request(rb'{"prompt": "\ud83d\ude00"}').prompt == "\U0001f600"


@pytest.mark.parametrize(
    "body",
    [
        rb'{"prompt": "\ud800", "prompt": "x"}',
        rb'{"prompt": "\ud800", "seed": ' + b"9" * 5000 + b"}",
        rb'{"prompt": "\ud800", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["given twice", "a number of 5000 digits", "deep"],
)
def test_what_cannot_be_found_again_is_not_json(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="the body is not valid JSON"):
        parse_generate_request(body)


def test_several_problems_are_all_listed() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_generate_request(b'{"prompt": "x", "top_p": 2, "min_p": -1, "foo": 1}')
    assert [p.field for p in caught.value.problems] == ["top_p", "min_p", "foo"]
    assert caught.value.message.startswith("top_p: must be less than or equal to 1 (got 2)")


def test_a_whole_request_is_read() -> None:
    request = parse_generate_request(b'{"prompt": "x", "temperature": 1, "stop": "a", "seed": 3}')
    assert (request.temperature, request.stops, request.seed) == (1.0, ("a",), 3)


def test_an_integer_may_be_written_with_a_point_where_nothing_is_behind_it() -> None:
    body = b'{"prompt": "x", "max_tokens": 64.0, "top_k": 1e1, "seed": 3.0}'
    request = parse_generate_request(body)
    assert (request.max_tokens, request.top_k, request.seed) == (64, 10, 3)
    assert request == parse_generate_request(b'{"prompt":"x","max_tokens":64,"top_k":10,"seed":3}')
    for value in (b"64.5", b"1e400", b"true", b'"64"'):
        with pytest.raises(InvalidRequest, match="max_tokens: must be"):
            parse_generate_request(b'{"prompt": "x", "max_tokens": %s}' % value)


def test_long_values_are_not_echoed() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_generate_request(b'{"prompt": "x", "max_tokens": "%s"}' % (b"9" * 5000))
    assert caught.value.message == "max_tokens: must be an integer"


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [' + b"{}," * 200_000 + b"{}]}",
        b'{"prompt": "x", "stop": [' + b"0," * 200_000 + b"0]}",
        b"{" + b",".join(b'"x%d": 1' % i for i in range(50_000)) + b"}",
    ],
    ids=["messages", "stop", "unknown fields"],
)
def test_a_body_full_of_nonsense_has_few_problems(body: bytes) -> None:
    """One for each of its elements would hold the gateway up for seconds, and take its memory."""
    with pytest.raises(InvalidRequest) as refused:
        parse_generate_request(body)
    assert len(refused.value.problems) < 10
    assert len(refused.value.message) < 500
