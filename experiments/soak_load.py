"""The mixed load of the soak: what each kind of client does, and what it has to be answered.

Every accepted job is seen to its end, also those whose first client left or cancelled. A client that is
answered in another way than the service promises adds a line to ``surprises``.
"""

import asyncio
import random
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from experiments.client import Answer, ask, follow
from experiments.prompts import make_prompt, make_text

_BAD_BODIES: list[Any] = [
    {"prompt": "x", "max_tokens": 0},
    {"prompt": "x", "no_such_parameter": 1},
    {"prompt": "x", "messages": [{"role": "user", "content": "y"}]},
    {"prompt": "x", "temperature": "hot"},
    b"{not json",
    b"",
]


@dataclass(slots=True)
class Tally:
    accepted: set[str] = field(default_factory=set)
    ended: dict[str, str] = field(default_factory=dict)  #: job -> status
    kinds: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    num_tokens: int = 0  #: that clients read
    num_refused: int = 0  #: bad requests, as they should be

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.surprises.append(what)


class Load:
    def __init__(self, url: str, seed: int, tally: Tally) -> None:
        self._url = url
        self._rng = random.Random(seed)
        self._tally = tally
        self._number = seed * 1_000_000
        self.is_over = False

    async def run(self) -> None:
        """One client after the other, of kinds drawn by weight."""
        kinds = {
            self._read_chat: 4,
            self._read_raw: 3,
            self._read_long: 2,
            self._poll: 2,
            self._cancel: 2,
            self._leave: 2,
            self._repeat: 1,
            self._ask_badly: 2,
            self._ask_too_much: 1,
        }
        while not self.is_over:
            kind = self._rng.choices(list(kinds), list(kinds.values()))[0]
            self._tally.kinds[kind.__name__.lstrip("_")] += 1
            await kind()

    def _job(self, num_words: int = 20, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {
            "prompt": make_prompt(self._number, num_words),
            "max_tokens": self._rng.randint(8, 48),
            "priority": self._rng.choice(["high", "normal", "normal", "low"]),
            **fields,
        }

    async def _submit(self, job: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        answer = await ask(self._url, "POST", "/generate", job, headers)
        self._tally.expect(answer.status in (200, 202), f"a job was refused: {answer}")
        if answer.status == 202:
            self._tally.accepted.add(answer.body["job_id"])
        return answer

    async def _accepted_id(self, job: dict[str, Any]) -> str:
        return str((await self._submit(job)).body["job_id"])

    async def _read(self, job: dict[str, Any]) -> None:
        """Follows it to the end; every index once."""
        job_id, num_tokens = await self._accepted_id(job), 0
        async with aclosing(follow(self._url, job_id)) as stream:
            async for heard in stream:
                if heard.kind == "token":
                    is_next = heard.data["index"] == num_tokens
                    self._tally.expect(is_next, f"{job_id}: token {heard.data} after {num_tokens}")
                    num_tokens += heard.data["count"]
                elif heard.kind == "end":
                    self._tally.ended[job_id] = heard.data["status"]
                    is_whole = heard.data["usage"]["completion_tokens"] == num_tokens
                    self._tally.expect(is_whole, f"{job_id}: {num_tokens} tokens, {heard.data}")
        self._tally.num_tokens += num_tokens

    async def _wait_for_end(self, job_id: str) -> dict[str, Any]:
        while True:
            answer = await ask(self._url, "GET", f"/jobs/{job_id}?wait_s=30")
            if answer.status != 200:
                self._tally.surprises.append(f"{job_id}: {answer}")
                return {}
            job: dict[str, Any] = answer.body
            if job["ended_at"] is not None:
                self._tally.ended[job_id] = job["status"]
                return job

    async def _read_chat(self) -> None:
        job = self._job()
        turns = [{"role": "system", "content": "Be brief."}]
        turns.append({"role": "user", "content": job.pop("prompt")})
        await self._read(job | {"messages": turns})

    async def _read_raw(self) -> None:
        await self._read(self._job(raw=True, temperature=0, stop=["\n\n"]))

    async def _read_long(self) -> None:
        await self._read(self._job(num_words=450, max_tokens=16))

    async def _poll(self) -> None:
        await self._wait_for_end(await self._accepted_id(self._job()))

    async def _cancel(self) -> None:
        job_id = await self._accepted_id(self._job(max_tokens=400, ignore_eos=True))
        await asyncio.sleep(self._rng.uniform(0, 3))
        answer = await ask(self._url, "DELETE", f"/jobs/{job_id}")
        self._tally.expect(answer.status in (200, 202), f"cancelling {job_id}: {answer}")
        await self._wait_for_end(job_id)

    async def _leave(self) -> None:
        """In the middle of the stream; the job goes on without it."""
        job_id, most = await self._accepted_id(self._job()), self._rng.randint(1, 8)
        async with aclosing(follow(self._url, job_id)) as stream:
            async for heard in stream:
                if heard.kind == "token" and heard.data["index"] >= most:
                    break
        await self._wait_for_end(job_id)

    async def _repeat(self) -> None:
        job, headers = self._job(), {"Idempotency-Key": uuid4().hex}
        first = await self._submit(job, headers)
        again = await self._submit(job, headers)
        is_same = again.status == 200 and again.body["job_id"] == first.body["job_id"]
        self._tally.expect(is_same, f"a repeat got another job: {first}, {again}")
        other = await ask(self._url, "POST", "/generate", job | {"max_tokens": 7}, headers)
        self._tally.expect(other.status == 409, f"a key for two bodies: {other}")
        await self._wait_for_end(first.body["job_id"])

    async def _ask_badly(self) -> None:
        body = self._rng.choice(_BAD_BODIES)
        answer = await ask(self._url, "POST", "/generate", body)
        self._tally.expect(answer.status == 422 and "error" in answer.body, f"{body!r}: {answer}")
        self._tally.num_refused += 1
        await asyncio.sleep(0.5)

    async def _ask_too_much(self) -> None:
        """A prompt beyond the context is accepted, and fails by name."""
        job_id = await self._accepted_id(self._job() | {"prompt": make_text(self._number, 20_000)})
        job = await self._wait_for_end(job_id)
        code = (job.get("error") or {}).get("code")
        self._tally.expect(code == "context_length_exceeded", f"{job_id}: {code}")
