"""The Lua scripts: every move that has to be atomic. Each file in ``lua`` says its arguments and reply."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import NoScriptError

#: Refused when Redis is full. The others go on: what was accepted is to be finished, and that frees.
#: `submit` looks by itself, refuses earlier, and counts that.
_NEEDS_MEMORY = {"create_batch"}


@cache
def script_text(name: str) -> str:
    folder = files("shared") / "lua"
    flags = "" if name in _NEEDS_MEMORY else "#!lua flags=allow-oom\n"
    return flags + (folder / "common.lua").read_text() + (folder / f"{name}.lua").read_text()


@cache
def script_sha(name: str) -> str:
    return hashlib.sha1(script_text(name).encode(), usedforsecurity=False).hexdigest()


def run_script(client: Redis, name: str, *args: Any) -> Any:
    try:
        return client.evalsha(script_sha(name), 0, *args)
    except NoScriptError:
        return client.eval(script_text(name), 0, *args)


async def run_script_async(client: AsyncRedis, name: str, *args: Any) -> Any:
    try:
        return await client.evalsha(script_sha(name), 0, *args)
    except NoScriptError:
        return await client.eval(script_text(name), 0, *args)


def run_scripts(client: Redis, calls: list[tuple[str, tuple[Any, ...]]]) -> list[Any]:
    """Several scripts in one round trip, in order; one that Redis does not know yet (its first use,
    or after a restart) is sent again with its text. Only that one: not all bear being run twice."""
    pipe = client.pipeline(transaction=False)
    for name, args in calls:
        pipe.evalsha(script_sha(name), 0, *args)
    replies = pipe.execute(raise_on_error=False)
    for i, (name, args) in enumerate(calls):
        if isinstance(replies[i], NoScriptError):
            replies[i] = client.eval(script_text(name), 0, *args)
        elif isinstance(replies[i], Exception):
            raise replies[i]
    return list(replies)
