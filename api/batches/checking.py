"""Looks whether a batch can be run: every line of its file, some at a time."""

from starlette.concurrency import run_in_threadpool

from api.batches.lines import LINE_EXTRA_BYTES, Checker
from api.batches.reader import LineReader
from api.batches.record import BatchRequest
from api.batches.tools import BatchTools
from shared.errors import ModelNotFound

#: At once, in a thread: the lease is renewed and requests are answered between.
_LINES_AT_ONCE = 100


async def check_file(tools: BatchTools, request: BatchRequest) -> Checker:
    """Raises ``FileNotFoundError``."""
    checker = Checker(request.endpoint, tools.settings.batch_max_lines)
    max_line_bytes = tools.settings.max_body_bytes + LINE_EXTRA_BYTES
    path = tools.files.path(request.input_file_id)
    with await run_in_threadpool(LineReader, path, max_line_bytes) as reader:
        while not checker.is_over and await run_in_threadpool(_check_some, reader, checker):
            pass
    checker.finish()
    for asked, number in checker.asked.items():
        try:
            await tools.models.find(asked)
        except ModelNotFound as error:
            checker.add(error.code, f"body: {error.message}", number, "model")
    return checker


def _check_some(reader: LineReader, checker: Checker) -> bool:
    """Whether there were any."""
    lines = reader.read(_LINES_AT_ONCE)
    for line in lines:
        if not checker.is_over:
            checker.feed(line.raw, is_too_long=line.is_too_long)
    return bool(lines)
