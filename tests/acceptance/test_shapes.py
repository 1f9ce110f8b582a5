"""Answers held to a shape, on the real model: whatever it would rather say, JSON comes out."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from shared.protocol import EndEvent, FinishReason, GenerateRequest, JobArgs, TokenEvent
from shared.shapes import check_shape
from tests.factories import make_times
from tests.models import model_path
from worker.backends.llama import LlamaBackend
from worker.engine import Engine, Events
from worker.pace import Pace

pytestmark = pytest.mark.model

WORD = {"type": "string", "maxLength": 12}
SCHEMAS: dict[str, dict[str, Any]] = {
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer", "minimum": -5, "maximum": 5},
    "exclusive": {"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 9},
    "number": {"type": "number", "minimum": 0.5, "maximum": 2.5},
    "multiple": {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 100},
    "string": WORD,
    "min length": {"type": "string", "minLength": 5, "maxLength": 6},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
    "pattern without anchors": {"type": "string", "pattern": "b+c", "maxLength": 12},
    "alternation": {"type": "string", "pattern": "^(red|green|blue)$"},
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "ipv4": {"type": "string", "format": "ipv4"},
    "enum": {"enum": ["a", 1, None, True, {"x": [1]}]},
    "const": {"const": {"a": [1, "zwei"]}},
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4},
    "empty array": {"type": "array", "maxItems": 0},
    "tuple": {
        "type": "array",
        "prefixItems": [WORD, {"type": "integer"}],
        "items": False,
        "minItems": 2,
    },
    "object": {
        "type": "object",
        "properties": {"name": WORD, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "optional properties": {
        "type": "object",
        "properties": {"a": WORD, "b": WORD, "c": {"type": "boolean"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "who": {
                "type": "object",
                "properties": {"first": WORD, "last": WORD},
                "required": ["first", "last"],
                "additionalProperties": False,
            },
            "tags": {"type": "array", "items": WORD, "maxItems": 3},
        },
        "required": ["who", "tags"],
        "additionalProperties": False,
    },
    "definitions": {
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"$ref": "#/$defs/point"}},
        "required": ["from", "to"],
        "additionalProperties": False,
        "$defs": {
            "point": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer", "minimum": 0, "maximum": 9},
                    "y": {"type": "integer", "minimum": 0, "maximum": 9},
                },
                "required": ["x", "y"],
                "additionalProperties": False,
            }
        },
    },
    "recursive": {
        "type": "object",
        "properties": {
            "value": {"type": "boolean"},
            "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        },
        "required": ["value", "next"],
        "additionalProperties": False,
    },
    "any of": {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 3}]},
    "one of": {
        "oneOf": [
            {
                "type": "object",
                "properties": {"k": {"const": "a"}},
                "required": ["k"],
                "additionalProperties": False,
            },
            {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        ]
    },
    "all of": {
        "allOf": [
            {"type": "object", "properties": {"a": WORD}, "required": ["a"]},
            {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
        ],
        "unevaluatedProperties": True,
    },
    "types": {"type": ["integer", "null"], "minimum": 0, "maximum": 50},
    "pattern properties": {
        "type": "object",
        "patternProperties": {"^n[0-9]$": {"type": "boolean"}},
        "additionalProperties": False,
        "maxProperties": 2,
    },
    "additional properties": {
        "type": "object",
        "properties": {"id": {"type": "boolean"}},
        "required": ["id"],
        "additionalProperties": {"type": "boolean"},
        "maxProperties": 3,
    },
    "annotations": {
        "title": "T",
        "description": "D",
        "type": "string",
        "default": "x",
        "examples": ["y"],
        "enum": ["x", "y"],
    },
    "escapes": {"type": "string", "pattern": '^"\\\\[a-c]\n$'},
    "unicode": {"enum": ["é", "日本", "🦭"]},
    # What cannot be kept to, which is refused before a worker sees it.
    "not": {"not": {"type": "string"}},
    "unique items": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    "conditional": {"if": {"type": "integer"}, "then": {"minimum": 3}},
    "dependent": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "contains": {"type": "array", "contains": {"const": 1}},
}
#: Of those above: everything else must be kept to.
REFUSED = {"not", "unique items", "conditional", "dependent", "contains", "all of"}
MAX_TOKENS = 120


@pytest.fixture(scope="module")
def backend() -> Iterator[LlamaBackend]:
    model = LlamaBackend(model_path(), slots=8, threads=1, context_tokens=512)
    yield model
    model.close()


def make_request(schema: dict[str, Any], **fields: Any) -> GenerateRequest:
    shape = {"type": "json_schema", "json_schema": {"schema": schema}}
    words = {"prompt": "Invent something and say it as JSON.", "max_tokens": MAX_TOKENS}
    return GenerateRequest.model_validate(words | {"response_format": shape} | fields)


class Runs:
    """Requests that run at once on one engine, each under a name."""

    def __init__(self, backend: LlamaBackend) -> None:
        self._engine = Engine(backend, worker="w", chunk_tokens=56, pace=Pace(0.5))
        self.events: dict[str, Events] = {}

    def run(
        self, requests: dict[str, GenerateRequest], known: dict[str, list[int]] | None = None
    ) -> None:
        waiting = list(requests.items())
        while waiting or self._engine.num_active:
            while waiting and self._engine.num_free_slots:
                name, request = waiting.pop(0)
                args = JobArgs(request=request, seed=7)
                before = (known or {}).get(name)
                self._take(self._engine.admit(name, 1, args, make_times(), known=before))
            self._take(self._engine.step())

    def _take(self, events: Events) -> None:
        for sequence, event in events:
            self.events.setdefault(sequence.job_id, []).append((sequence, event))

    def text(self, name: str) -> str:
        return "".join(e.text for _, e in self.events[name] if isinstance(e, TokenEvent))

    def tokens(self, name: str) -> list[int]:
        return [t for _, e in self.events[name] if isinstance(e, TokenEvent) for t in e.tokens]

    def end(self, name: str) -> EndEvent:
        end = self.events[name][-1][1]
        assert isinstance(end, EndEvent)
        return end


def test_every_schema_is_kept_to_or_refused_by_name(backend: LlamaBackend) -> None:
    """Eight at a time in one batch; seeds are those of the jobs."""
    assert len(SCHEMAS) >= 36
    requests, refused = {}, set()
    for name, schema in SCHEMAS.items():
        Draft202012Validator.check_schema(schema)
        request = make_request(schema)
        try:
            check_shape(request)
        except Exception as error:
            assert "response_format.json_schema.schema" in str(error)
            refused.add(name)
        else:
            requests[name] = request
    assert refused == REFUSED
    runs = Runs(backend)
    runs.run(requests)
    num_whole = 0
    for name in requests:
        end = runs.end(name)
        assert end.error is None, (name, end.error)
        if end.finish_reason is FinishReason.LENGTH:
            assert name == "recursive" or end.usage.completion_tokens == MAX_TOKENS, name
            continue
        answer = json.loads(runs.text(name))
        Draft202012Validator(
            SCHEMAS[name], format_checker=Draft202012Validator.FORMAT_CHECKER
        ).validate(answer)
        num_whole += 1
    assert num_whole >= len(requests) - 3


def test_a_shaped_answer_is_the_same_alone_in_a_batch_and_resumed(backend: LlamaBackend) -> None:
    names = ["object", "nested", "definitions", "pattern"]
    requests = {name: make_request(SCHEMAS[name]) for name in names}
    together = Runs(backend)
    together.run(requests)
    for name in names:
        alone = Runs(backend)
        alone.run({name: requests[name]})
        assert alone.text(name) == together.text(name)
        tokens = alone.tokens(name)
        for count in (1, len(tokens) // 2, len(tokens) - 1):
            resumed = Runs(backend)
            resumed.run({name: requests[name]}, {name: tokens[:count]})
            assert tokens[:count] + resumed.tokens(name) == tokens


def test_an_answer_that_meets_its_limit_within_json_ends_with_length(backend: LlamaBackend) -> None:
    runs = Runs(backend)
    runs.run({"a": make_request(SCHEMAS["nested"], max_tokens=5)})
    assert runs.end("a").finish_reason is FinishReason.LENGTH
    assert runs.end("a").usage.completion_tokens == 5
    with pytest.raises(ValueError):
        json.loads(runs.text("a"))


def test_a_grammar_is_kept_to_at_any_temperature(backend: LlamaBackend) -> None:
    requests = {
        str(seed): GenerateRequest.model_validate(
            {
                "prompt": "Is water wet?",
                "grammar": 'root ::= ("yes" | "no") [.!] "\\u00e9"?',
                "temperature": 5,
                "top_k": 0,
                "top_p": 1,
                "min_p": 0,
                "repeat_penalty": 1.3,
                "seed": seed,
            }
        )
        for seed in range(8)
    }
    runs = Runs(backend)
    runs.run(requests)
    answers = {runs.text(name) for name in requests}
    assert answers <= {w + e + x for w in ("yes", "no") for e in ".!" for x in ("", "é")}


def test_a_bias_of_a_hundred_decides_and_one_of_minus_a_hundred_forbids(
    backend: LlamaBackend,
) -> None:
    def run(**fields: Any) -> list[int]:
        words = {
            "prompt": "The capital of France is",
            "raw": True,
            "max_tokens": 3,
            "temperature": 0,
        }
        runs = Runs(backend)
        runs.run({"a": GenerateRequest.model_validate(words | fields)})
        return runs.tokens("a")

    plain = run()
    assert run(logit_bias={28: 100}) == [28, 28, 28]
    assert run(logit_bias={plain[0]: -100})[0] != plain[0]


def test_log_probabilities_are_those_of_the_model_whatever_draws(backend: LlamaBackend) -> None:
    def run(**fields: Any) -> list[Any]:
        words = {"prompt": "The capital of France is", "raw": True, "max_tokens": 4}
        runs = Runs(backend)
        runs.run({"a": GenerateRequest.model_validate(words | {"logprobs": 5} | fields)})
        return [
            p for _, e in runs.events["a"] if isinstance(e, TokenEvent) for p in e.logprobs or ()
        ]

    greedy = run(temperature=0)
    assert len(greedy) == 4
    for told in greedy:
        assert told.token == told.top[0].token and told.logprob == told.top[0].logprob <= 0
        assert [a.logprob for a in told.top] == sorted((a.logprob for a in told.top), reverse=True)
    forced = run(temperature=0, logit_bias={28: 100})
    assert forced[0].token == 28 and forced[0].top == greedy[0].top
    shaped = run(temperature=0, grammar='root ::= " Lyon."')
    assert shaped[0].top == greedy[0].top
    assert shaped[0].logprob < greedy[0].logprob


def test_a_grammar_that_takes_too_much_fails_by_itself(backend: LlamaBackend) -> None:
    """Its ambiguity shows with the model's tokens only; what runs beside it is none the wiser."""
    hungry = 'root ::= a a a a a a a a\na ::= "x"* | "x" a | a "x" | [a-z]*'
    plain = GenerateRequest.model_validate({"prompt": "Tell me a story", "max_tokens": 24})
    shaped = GenerateRequest.model_validate({"prompt": "Say x", "grammar": hungry})
    check_shape(shaped)
    alone, together = Runs(backend), Runs(backend)
    alone.run({"plain": plain})
    together.run({"hungry": shaped, "plain": plain})
    error = together.end("hungry").error
    assert error is not None and error.code == "shape_failed"
    assert "Too many items" in error.message and "<" not in error.message
    assert together.text("plain") == alone.text("plain")
