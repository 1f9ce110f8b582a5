import json
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from shared.errors import BadRequest
from shared.gbnf import MAX_GRAMMAR_CHARS, MAX_RULES
from shared.protocol import GenerateRequest
from shared.shapes import MAX_REFERENCES, MAX_SHAPE_CHARS, check_shape, shape_of

END = 256


class _Bytes:
    """A vocabulary of the 256 bytes and an end."""

    eos_token_id = END
    bos_token_id = END
    tokens = tuple(bytes([byte]) for byte in range(256)) + (b"\xff<end>",)
    special_token_ids = (END,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


TOKENIZER = LLTokenizer(TokenizerWrapper(_Bytes()))
MESSAGES = [{"role": "user", "content": "Hi"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "now"}},
]


def make(**fields: Any) -> GenerateRequest:
    return GenerateRequest.model_validate({"messages": MESSAGES} | fields)


def schema(body: dict[str, Any]) -> GenerateRequest:
    return make(response_format={"type": "json_schema", "json_schema": {"schema": body}})


def takes(request: GenerateRequest, text: str, tool_format: str | None = None) -> bool:
    """Whether an answer may be this text, whole."""
    shape = shape_of(request, tool_format)
    assert shape is not None
    matcher = LLMatcher(TOKENIZER, shape, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    encoded = list(text.encode())
    return matcher.try_consume_tokens(encoded) == len(encoded) and matcher.is_accepting()


def test_free_text_has_no_shape() -> None:
    assert shape_of(make()) is None
    assert shape_of(make(response_format={"type": "text"})) is None
    assert shape_of(make(tools=TOOLS, tool_choice="none")) is None


def test_an_object_is_any_json_object_and_nothing_else() -> None:
    request = make(response_format={"type": "json_object"})
    assert takes(request, '{"a": [1, null, {"b": "c"}]}')
    assert not takes(request, "[1]")
    assert not takes(request, '{"a": 1} and more')


def test_there_is_no_white_space_to_get_lost_in() -> None:
    request = make(response_format={"type": "json_object"})
    assert takes(request, json.dumps({"a": [1, 2], "b": {}}))
    assert not takes(request, '{ "a": 1}')
    assert not takes(request, '{"a":  1}')
    assert not takes(request, '{"a": 1\n}')


def test_a_schema_is_kept_to() -> None:
    request = schema(
        {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 12}},
            "required": ["n"],
            "additionalProperties": False,
        }
    )
    assert takes(request, '{"n": 12}')
    assert not takes(request, '{"n": 13}')
    assert not takes(request, "{}")
    assert not takes(request, '{"n": 3, "m": 1}')


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"properties": {"a": {"not": {"type": "string"}}}}, 'at /properties/a: .*"not"'),
        (
            {"items": {"properties": {"b": {"uniqueItems": True}}}},
            "at /items/properties/b: .*unique",
        ),
        ({"anyOf": [{"type": "null"}, {"format": "sundial"}]}, "at /anyOf/1: .*sundial"),
        ({"type": "blob"}, "at /type: 'blob'"),
        ({"properties": {"a": {"minLength": "3"}}}, "at /properties/a/minLength: '3'"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        ({"$ref": "#/$defs/nothing"}, "does not exist"),
        ({"$ref": "https://example.org/schema.json"}, "example.org"),
        (
            {"type": "integer", "minimum": 5, "maximum": 3},
            "minimum .5. is greater than maximum .3.",
        ),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, '"if", "then"'),
        ({"enum": ["x" * MAX_SHAPE_CHARS]}, f"at most {MAX_SHAPE_CHARS} characters"),
        ({"$ref": "#"}, "no answer can fit it"),
        ({"const": float("nan")}, "a number that JSON does not have"),
        ({"x-guidance": {"lenient": True}}, "at /x-guidance: unknown keyword"),
        (
            {"anyOf": [{"$ref": "#/$defs/a"}] * (MAX_REFERENCES + 1), "$defs": {"a": {}}},
            f"at most {MAX_REFERENCES} `.ref`",
        ),
    ],
)
def test_what_cannot_be_kept_to_is_refused_by_place_and_name(
    body: dict[str, Any], where: str
) -> None:
    with pytest.raises(BadRequest, match=where) as caught:
        check_shape(schema(body))
    assert caught.value.field == "response_format.json_schema.schema"


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    body: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        body = {"type": "object", "properties": {"a": body}}
    with pytest.raises(BadRequest, match=r"recursion limit|nested too deeply"):
        check_shape(schema(body))


def test_a_grammar_is_kept_to() -> None:
    request = make(grammar='root ::= "yes" | "no" ws\nws ::= [ \\n]*')
    check_shape(request)
    assert takes(request, "yes")
    assert takes(request, "no \n")
    assert not takes(request, "maybe")


def test_characters_of_a_grammar_may_be_written_by_number() -> None:
    request = make(grammar='root ::= "\\u00e9\\x41\\U0001F600" [\\u0041-\\u0043] "\\\\u"')
    check_shape(request)
    assert takes(request, "éA😀B\\u")
    assert not takes(request, "éA😀D\\u")


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        ("root ::= foo", "no rule 'foo', which 'root' refers to"),
        ('root ::= "a', "end of input in line 1"),
        ('start ::= "a"', "no rule of the name root"),
        ('root ::= "\\ud800"', "is no character"),
        ("root ::= " + "(" * 5000 + '"a"' + ")" * 5000, "nested too deeply"),
        ('root ::= "' + "a" * MAX_GRAMMAR_CHARS + '"', f"at most {MAX_GRAMMAR_CHARS} characters"),
        ("hello", "expected ::= in line 1"),
        ("root ::= root", "no answer can fit it"),
        ("root ::= <think>", "a token .<...>. cannot be asked for"),
        ("root ::= !<[3]>", "a token .<...>. cannot be asked for"),
        ('root ::= "a"{,3}', "expected a number"),
        ('root ::= "a"{3,2}', r"\{3,2\} has more at least than at most"),
        ("root ::= | *", "nothing before '[*]'"),
        ("root ::= [z-a]", "a range ends before it begins"),
        ('root ::= "\\q"', r"unknown escape \\q"),
        ('root ::= "\\x4"', r"\\x needs 2 hexadecimal digits"),
        ('root ::= "\\U00110000"', "is no character"),
        ('root ::= "a" b ::= "c"', "expected a newline"),
        ('root ::= "a"\n  | "b"', "expected the name of a rule in line 2"),
        ("root ::= (\n[a\n", "end of input in line 3"),
        ('root ::= ("a"', r"expected \) in line 1"),
        ("root ::= [^\\x00-\\U0010FFFF]", "no answer can fit it"),
        ('root ::= "a"' + "+?" * 300, "^grammar: lark grammar too deeply nested$"),
        ("root ::= " + '"a"? ' * 5000, "Too many items"),
        ('root ::= "a"\n' + 'x ::= "b"\n' * MAX_RULES, f"at most {MAX_RULES} rules"),
    ],
)
def test_a_bad_grammar_is_refused_with_its_reason(grammar: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why) as caught:
        check_shape(make(grammar=grammar))
    assert caught.value.field == "grammar"


def test_the_longest_chain_of_rules_that_is_taken_is_compiled() -> None:
    """What compiles it descends on the stack: one of 3,000 rules ended the process."""
    chain = [f"a{i} ::= a{i + 1}" for i in range(MAX_RULES - 2)]
    rules = ["root ::= a0", *chain, f'a{MAX_RULES - 2} ::= "b" | "c" a0']
    request = make(grammar="\n".join(rules))
    check_shape(request)
    assert takes(request, "ccb")


@pytest.mark.parametrize(
    ("grammar", "texts", "others"),
    [
        ('root ::= ("a"*)+', ["", "aaa"], ["b"]),
        ('root ::= ("a" | "b"+)*? "."', ["abba.", "."], ["ab"]),
        ('root ::= "a"{2}{2} "b" {1,} "c"{ 0 , 1 }', ["aaaab", "aaaabbc"], ["aab", "aaaabcc"]),
        ('root ::= "a"{0,0} "b"{0} "c"', ["c"], ["ac", "bc"]),
        ('root ::= ""* ""+ "x"*+ []', ["", "xx"], ["y"]),
        ('root ::= start "," root | end\nstart ::= "a"\nend ::= "b"', ["b", "a,a,b"], ["a"]),
        ('root ::= 1a aB a-b a_b r0 R1 TEXT\n1a ::= "1"\naB ::= "2"\na-b ::= "3"\na_b ::= "4"\n'
         'r0 ::= "5"\nR1 ::= "6"\nTEXT ::= "7"', ["1234567"], ["1334567"]),
        ('root ::= "x" | "y" root\nroot ::= "z"', ["z"], ["x"]),
        (r'root ::= "/\"\\\[\]\-\t\x41\xe9" [/\]\-^] [^/\]\n]', ['/"\\[]-\tAé^x'], ['/"\\[]-\tAé^]']),
        ("root ::= [a-] [a-c-] [^^]", ["--x", "ab-"], ["b-x", "a-^"]),
        ("root ::= . .", ["\né", '""'], ["a", "abc"]),
        ('# one\nroot ::= ( # two\n\n  "a" |\n  "b"\n  c\n)+ # three\nc ::= |\n "c" |\n# four',
         ["abab", "abca"], ["ac"]),
        ('root ::= "a"\r\n\r\nb ::=\r\n  "b"', ["a"], ["b"]),
        ('root ::= word "s"\nword ::= [a-z]+', ["cats"], ["cat"]),
        ('root ::= ("ab" | "abc") "cd"', ["abcd", "abccd"], ["abc"]),
    ],
)  # fmt: skip
def test_what_llama_cpp_takes_is_taken_and_means_the_same(
    grammar: str, texts: list[str], others: list[str]
) -> None:
    request = make(grammar=grammar)
    check_shape(request)
    assert [text for text in texts if not takes(request, text)] == []
    assert [text for text in others if takes(request, text)] == []


def test_a_grammar_that_doubles_with_every_rule_is_compiled_at_once() -> None:
    chain = [f"a{i} ::= a{i + 1} a{i + 1}" for i in range(200)]
    request = make(grammar="\n".join(["root ::= a0", *chain, 'a200 ::= "a" | "b"']))
    shape = shape_of(request)
    assert shape is not None
    assert len(shape) < 10_000
    with pytest.raises(BadRequest, match=r"^grammar: [^0-9]*$") as caught:
        check_shape(make(grammar="root ::= a0\n" + "\n".join(chain) + "\na200 ::= a200"))
    assert caught.value.field == "grammar"


HERMES = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
LLAMA3 = '{"name": "weather", "parameters": {"city": "Rome"}}'


def test_a_model_may_call_tools_or_talk() -> None:
    request = make(tools=TOOLS)
    for text in ("It is sunny.", "Let me see.\n" + HERMES, f"{HERMES}\n{NOW}", ""):
        assert takes(request, text, "hermes"), text
    assert not takes(request, HERMES.replace("city", "town"), "hermes")
    assert not takes(request, HERMES.replace("weather", "whether"), "hermes")
    assert takes(request, LLAMA3, "llama3")
    assert takes(request, "It is sunny.", "llama3")
    assert not takes(request, LLAMA3.replace("Rome", 'Rome"'), "llama3")


def test_a_call_can_be_demanded_of_one_tool_and_only_once() -> None:
    must = make(tools=TOOLS, tool_choice="required")
    assert takes(must, f"{NOW}\n{HERMES}", "hermes")
    assert not takes(must, "It is sunny.", "hermes")
    once = make(tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    assert takes(once, NOW, "hermes")
    assert not takes(once, f"{NOW}\n{HERMES}", "hermes")
    named = make(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "now"}})
    assert takes(named, NOW, "hermes")
    assert not takes(named, HERMES, "hermes")
    assert not takes(must, "It is sunny.", "llama3")


def test_tools_need_a_template_that_knows_them() -> None:
    with pytest.raises(BadRequest, match="knows no tools"):
        check_shape(make(tools=TOOLS), None)


def test_a_tool_that_is_not_strict_may_have_keywords_that_cannot_be_kept_to() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    function = {"name": "f", "parameters": parameters}
    check_shape(make(tools=[{"type": "function", "function": function}]), "hermes")
    strict = {"type": "function", "function": function | {"strict": True}}
    with pytest.raises(BadRequest, match="at /properties/a") as caught:
        check_shape(make(tools=[strict]), "hermes")
    assert caught.value.field == "tools.0.function.parameters"
