"""The lines of an input file: each a request, with an id of the user's. Pure.

Empty lines are none. ``Checker`` finds what is wrong with a file, and holds of each line no more than a
hash of its id.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from api.batches.record import LineProblem
from api.completions.call import Call, parse_call
from api.completions.form import Endpoint
from shared.errors import BadRequest
from shared.protocol import Priority
from shared.shapes import check_shape

MAX_CUSTOM_ID_CHARS = 512
MAX_PROBLEMS = 100
#: Beside the body, which is bounded as that of a request is.
LINE_EXTRA_BYTES = 4096
_FIELDS = ("custom_id", "method", "url", "body")


@dataclass(frozen=True, slots=True)
class Line:
    custom_id: str
    call: Call


class BadLine(Exception):
    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


def parse_line(raw: bytes, endpoint: Endpoint) -> Line:
    """Raises ``BadLine``."""
    value = _object(raw)
    for name in value:
        if name not in _FIELDS:
            raise BadLine("unknown_parameter", f"unknown field `{name[:100]}`", name[:100])
    for name in _FIELDS:
        if name not in value:
            raise BadLine("missing_required_parameter", f"{name}: is required", name)
    custom_id = _custom_id(value["custom_id"])
    if value["method"] != "POST":
        raise BadLine("invalid_method", "method: must be 'POST'", "method")
    if value["url"] != endpoint:
        words = f"url: must be {endpoint!r}, the endpoint of the batch"
        raise BadLine("url_mismatch", words, "url")
    return Line(custom_id, _call(endpoint, value["body"]))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        words = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadLine("invalid_json_line", f"the line is not valid JSON: {words}"[:300]) from None
    if not isinstance(value, dict):
        raise BadLine("invalid_json_line", "the line must be a JSON object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _custom_id(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_CUSTOM_ID_CHARS:
        words = f"custom_id: must be a text of 1 to {MAX_CUSTOM_ID_CHARS} characters"
        raise BadLine("invalid_custom_id", words, "custom_id")
    try:
        value.encode()
    except UnicodeEncodeError:
        words = "custom_id: must be valid Unicode text, without lone surrogates"
        raise BadLine("invalid_custom_id", words, "custom_id") from None
    return value


def _call(endpoint: Endpoint, body: object) -> Call:
    if not isinstance(body, dict):
        raise BadLine("invalid_request", "body: must be an object", "body")
    try:
        call = parse_call(endpoint, json.dumps(body).encode())
        if not call.jobs[0].calls_tools:  # those depend on the model, which is looked up later
            check_shape(call.jobs[0])
    except BadRequest as error:
        raise BadLine(error.code, f"body: {error.message}"[:1000], error.field) from None
    if call.stream:
        raise BadLine("invalid_request", "body: stream: must be false in a batch", "stream")
    if call.background:
        raise BadLine("invalid_request", "body: background: must be false in a batch", "background")
    if call.jobs[0].priority is Priority.HIGH:
        words = "body: priority: requests of a batch run at low priority"
        raise BadLine("invalid_request", words, "priority")
    return call


class Checker:
    """``asked`` has the models that lines ask for, with the first line that does."""

    def __init__(self, endpoint: Endpoint, max_lines: int) -> None:
        self._endpoint = endpoint
        self._max_lines = max_lines
        self._seen: set[bytes] = set()
        self._number = 0
        self.total = 0
        self.problems: list[LineProblem] = []
        self.asked: dict[str | None, int] = {}

    @property
    def is_over(self) -> bool:
        """Nothing more is worth looking at."""
        return len(self.problems) >= MAX_PROBLEMS or self.total > self._max_lines

    def feed(self, raw: bytes, *, is_too_long: bool = False) -> None:
        self._number += 1
        if not is_too_long and not raw.strip():
            return
        self.total += 1
        if self.total > self._max_lines:
            words = f"the file has more than {self._max_lines} requests (batch_max_lines)"
            self.add("too_many_tasks", words, self._number)
            return
        if is_too_long:
            self.add("line_too_long", "the line is longer than a request may be", self._number)
            return
        try:
            line = parse_line(raw, self._endpoint)
        except BadLine as error:
            self.add(error.code, error.message, self._number, error.param)
            return
        digest = hashlib.sha256(line.custom_id.encode()).digest()[:16]
        if digest in self._seen:
            words = f"custom_id: {line.custom_id[:100]!r} is that of an earlier line"
            self.add("duplicate_custom_id", words, self._number, "custom_id")
        self._seen.add(digest)
        self.asked.setdefault(line.call.model, self._number)

    def finish(self) -> None:
        if not self.total:
            self.add("empty_file", "the file has no requests in it", None)

    def add(self, code: str, message: str, line: int | None, param: str | None = None) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(LineProblem(code=code, message=message, line=line, param=param))
