"""How a server counts tokens and what it knows, asked of itself before the first round.

What is sent here is in no round, so that no cache has anything of those.
"""

import random
import time

from cli.bench.answers import Answer
from cli.bench.asks import Ask
from cli.bench.client import Client
from cli.bench.words import Rate, fit_rate, make_words
from shared.errors import SetupError

#: Two lengths tell what a word takes and what is added to every prompt.
_WORDS = (16, 144)


async def calibrate(client: Client, seed: int) -> Rate | None:
    """Also warms up connections and the server. ``None`` if what the server counts does not grow with
    the prompt. Raises ``SetupError`` of a server that answers nothing."""
    rng = random.Random(f"{seed} calibration")
    counts = [await _count(client, Ask(2, make_words(rng, num))) for num in _WORDS]
    return fit_rate(_WORDS, (counts[0], counts[1]))


async def _count(client: Client, ask: Ask) -> int:
    answer = await _ask(client, ask)
    if answer.error and client.knows_ignore_eos and answer.error_kind in ("HTTP 400", "HTTP 422"):
        client.knows_ignore_eos = False
        answer = await _ask(client, ask)
    if answer.error:
        what = f"the first request failed: {answer.error}"
        raise SetupError(f"--url {client.server.name}: {what}", field="url")
    return answer.prompt_tokens


async def _ask(client: Client, ask: Ask) -> Answer:
    answer = Answer(time.monotonic())
    await client.send(ask, answer)
    return answer
