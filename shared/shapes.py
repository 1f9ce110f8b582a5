"""The shape that an answer is held to, as a grammar of llguidance: from a JSON schema, from GBNF, or from
tools. Pure. The gateway refuses here what a worker could not hold to; the worker compiles the same text.

JSON is written as Python's ``json.dumps`` writes it, ``", "`` and ``": "``, and no other white space:
small models are known to write blanks without end where a grammar allows them.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from llguidance import LLMatcher

from shared.errors import BadRequest
from shared.gbnf import lark_of, told
from shared.matching import problem_of
from shared.protocol import (
    GenerateRequest,
    JsonObjectFormat,
    JsonSchemaFormat,
    NamedTool,
    Tool,
)

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

#: Of a schema, or of all tools together: to compile more takes a second.
MAX_SHAPE_CHARS = 32_768
#: Of one schema: llguidance follows them on the stack.
MAX_REFERENCES = 256
#: How a model may write calls of tools; a chat template tells (worker/backends/chat_template.py).
TOOL_FORMATS = ("hermes", "llama3")

#: Parts of a schema that are looked at for the one that is wrong.
_MAX_LOOKS = 200
_REASON_CHARS = 500

Schema = dict[str, Any]


def shape_of(request: GenerateRequest, tool_format: str | None = None) -> str | None:
    """``None`` for free text. ``tool_format`` is that of the model, one of ``TOOL_FORMATS``. Raises
    ``BadRequest``."""
    if request.grammar is not None:
        return lark_of(request.grammar)
    if request.calls_tools:
        return _from_tools(request, tool_format)
    match request.response_format:
        case JsonObjectFormat():
            return _from_schema({"type": "object"}, "response_format")
        case JsonSchemaFormat(json_schema=asked):
            return _from_schema(asked.schema_, "response_format.json_schema.schema")
    return None


def check_shape(request: GenerateRequest, tool_format: str | None = None) -> None:
    """Raises ``BadRequest`` that says where and what is wrong with a schema, grammar or tool."""
    shape = shape_of(request, tool_format)
    if shape is None:
        return
    problem = problem_of(shape)
    if problem:
        if request.grammar is not None:
            _refuse("grammar", told(problem))
        _refuse("tools", problem)


def _from_schema(schema: Schema, field: str, *, lenient: bool = False) -> str:
    _check_schema(schema, field, lenient)
    return LLMatcher.grammar_from_json_schema(schema, overrides=_style(lenient))


def _check_schema(schema: Schema, field: str, lenient: bool) -> None:
    text = _text_of(schema, field)
    _check_size(field, text)
    if "x-guidance" in schema:  # llguidance's own options, which are ours to set
        _refuse(field, "at /x-guidance: unknown keyword")
    num_references = text.count('"$ref"')
    if num_references > MAX_REFERENCES:
        _refuse(field, f"must have at most {MAX_REFERENCES} `$ref` (has {num_references})")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "".join(f"/{step}" for step in error.absolute_path)
        _refuse(field, _at(where, error.message))
    except RecursionError:
        _refuse(field, "is nested too deeply")
    problem = _schema_problem(schema, lenient)
    if problem:
        where = _where(schema, problem, lenient)
        _refuse(field, _at(where, problem))


def _schema_problem(schema: Schema, lenient: bool) -> str:
    try:
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides=_style(lenient))
    except ValueError as error:
        return str(error)
    return problem_of(grammar)


def _where(schema: Schema, problem: str, lenient: bool) -> str:
    """The pointer to the smallest part that has the same problem alone; '' if it is the whole."""
    root = {k: v for k, v in schema.items() if k in ("$defs", "definitions")}
    where, part, num_looks = "", schema, 0
    while True:
        for name, child in _parts(part):
            num_looks += 1
            if num_looks > _MAX_LOOKS:
                return where
            if _schema_problem(root | child, lenient) == problem:
                where, part = f"{where}/{name}", child
                break
        else:
            return where


def _parts(schema: Schema) -> Iterator[tuple[str, Schema]]:
    for keyword, value in schema.items():
        if keyword in ("enum", "const", "default", "examples"):
            continue
        if isinstance(value, dict):
            yield keyword, value
            for name, inner in value.items():
                if isinstance(inner, dict):
                    yield f"{keyword}/{name}", inner
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                if isinstance(inner, dict):
                    yield f"{keyword}/{index}", inner


def _from_tools(request: GenerateRequest, tool_format: str | None) -> str:
    assert request.tools is not None, "a request that calls tools has some"
    if tool_format not in TOOL_FORMATS:
        _refuse("tools", "the chat template of this model knows no tools; leave `tools` out")
    choice = request.tool_choice
    tools = request.tools
    if isinstance(choice, NamedTool):
        tools = tuple(t for t in tools if t.function.name == choice.function.name)
    _check_size("tools", _text_of({"tools": [tool.model_dump() for tool in tools]}, "tools"))
    must_call = choice not in (None, "auto")
    is_single = isinstance(choice, NamedTool) or not request.parallel_tool_calls
    write = _hermes if tool_format == "hermes" else _llama3
    return write([_arguments(i, tool) for i, tool in enumerate(tools)], must_call, is_single)


def _arguments(index: int, tool: Tool) -> tuple[str, str]:
    """Its name, and the grammar of its arguments. Keywords that cannot be held to are left to the model,
    unless the tool is strict: schemas of tools are made by libraries, and OpenAI takes them all."""
    function = tool.function
    schema = function.parameters or {"type": "object", "additionalProperties": False}
    lenient = function.strict is not True
    field = f"tools.{index}.function.parameters"
    _check_schema(schema, field, lenient)
    return function.name, "%json " + json.dumps(schema | {"x-guidance": _style(lenient)})


def _hermes(tools: list[tuple[str, str]], must_call: bool, is_single: bool) -> str:
    """``<tool_call>`` lines between JSON; before them free text, where no call is asked for."""
    calls = [
        rf'"\n{{\"name\": {_quoted(name)}, \"arguments\": " {arguments} "}}\n</tool_call>"'
        for name, arguments in tools
    ]
    call = "call: " + "\n    | ".join(calls)
    if must_call:
        more = "" if is_single else r' ("\n<tool_call>" call)*'
        return f'%llguidance {{}}\nstart: "<tool_call>" call{more}\n{call}\n'
    begin = 'begin[lazy]: /(.|\\n)*/ "<tool_call>"'
    first = "begin call" + ("" if is_single else r' ("\n<tool_call>" call)*')
    return f"%llguidance {{}}\nstart: TEXT | {first}\nTEXT: /(.|\\n)*/\n{begin}\n{call}\n"


def _llama3(tools: list[tuple[str, str]], must_call: bool, is_single: bool) -> str:  # noqa: ARG001
    """The whole answer is one call; free text does not begin with a brace."""
    calls = [
        rf'"{{\"name\": {_quoted(name)}, \"parameters\": " {arguments} "}}"'
        for name, arguments in tools
    ]
    call = "call: " + "\n    | ".join(calls)
    start = "call" if must_call else "call | TEXT"
    return f"%llguidance {{}}\nstart: {start}\nTEXT: /([^{{](.|\\n)*)?/\n{call}\n"


def _quoted(name: str) -> str:
    """A name in JSON, within a text of a grammar; names of tools need no further escape."""
    return f'\\"{name}\\"'


def _style(lenient: bool) -> "JsonCompileOptions":
    return {
        "whitespace_flexible": False,
        "item_separator": ", ",
        "key_separator": ": ",
        "lenient": lenient,
    }


def _text_of(schema: Schema, field: str) -> str:
    try:
        return json.dumps(schema, allow_nan=False)
    except RecursionError:
        _refuse(field, "is nested too deeply")
    except ValueError:  # NaN and Infinity, or an integer of more digits than Python writes
        _refuse(field, "has a number that JSON does not have, or one that is too long")


def _check_size(field: str, text: str) -> None:
    if len(text) > MAX_SHAPE_CHARS:
        _refuse(field, f"must have at most {MAX_SHAPE_CHARS} characters (has {len(text)})")


def _at(where: str, problem: str) -> str:
    return f"at {where}: {problem}" if where else problem


def _refuse(field: str, reason: str) -> NoReturn:
    raise BadRequest(f"{field}: {reason[:_REASON_CHARS]}", field=field)
