"""What a client saw of a stream, and what a worker's log says of an attempt: together they tell what
a resume cost. Pure; times are monotonic seconds of one clock.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_ATTEMPT = re.compile(
    r" (?P<worker>worker-\d+) INFO \S+: job (?P<job>[0-9a-f]{32}): attempt (?P<number>\d+)"
    r"(?P<alone>, alone)?.*?(?:, goes on after (?P<known>\d+) tokens)?(?:, request \S+)?"
    r"(?:, user .*)?(?: \w+=\S+)*$"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """``known_tokens`` that earlier attempts had sent."""

    job_id: str
    worker: str
    number: int
    known_tokens: int
    is_alone: bool
    began_s: float

    @classmethod
    def parse(cls, came_s: float, line: str) -> "Attempt | None":
        """Of a line of a worker's log; ``None`` of any other."""
        match = _ATTEMPT.search(line.rstrip("\n"))
        if match is None:
            return None
        known, is_alone = int(match["known"] or 0), match["alone"] is not None
        return cls(match["job"], match["worker"], int(match["number"]), known, is_alone, came_s)


@dataclass(slots=True)
class Story:
    """A stream as its client saw it."""

    prompt_tokens: int = 0
    num_tokens: int = 0
    num_skipped: int = 0
    num_repeated: int = 0
    status: str = ""  #: of the end event
    error_code: str = ""
    reported_tokens: int = 0  #: by the end event
    _ends: list[int] = field(default_factory=list)  #: tokens after each event
    _came_s: list[float] = field(default_factory=list)

    def token(self, index: int, count: int, came_s: float) -> None:
        self.num_skipped += max(0, index - self.num_tokens)
        self.num_repeated += max(0, min(self.num_tokens, index + count) - index)
        self.num_tokens = max(self.num_tokens, index + count)
        self._ends.append(self.num_tokens)
        self._came_s.append(came_s)

    @property
    def gaps_s(self) -> list[float]:
        """Between one event and the next."""
        return [after - before for before, after in pairwise(self._came_s)]

    def came_s(self, index: int) -> float | None:
        """When the token of that index came."""
        place = bisect_left(self._ends, index + 1)
        return self._came_s[place] if place < len(self._ends) else None


@dataclass(frozen=True, slots=True)
class Resume:
    """From a kill to the next token. ``wait_s`` passed until another attempt began (the death is
    noticed, a slot gets free, the prompt is tokenized); ``refeed_s`` from there to the client."""

    wait_s: float
    refeed_s: float
    fed_tokens: int  #: of prompt and answer, again
    known_tokens: int

    @property
    def gap_s(self) -> float:
        return self.wait_s + self.refeed_s


def match_resume(
    kill_s: float, story: Story, attempts: Sequence[Attempt], killed_attempt: int
) -> Resume | None:
    """``attempts`` of this job. ``None`` if the attempt that followed sent nothing: the job had
    ended already, or that attempt was killed in its turn."""
    began_s = {attempt.number: attempt.began_s for attempt in attempts}
    for attempt in attempts:
        if attempt.number != killed_attempt + 1:
            continue
        next_s = story.came_s(attempt.known_tokens)
        if next_s is None or next_s > began_s.get(attempt.number + 1, next_s):
            return None
        attempt_s = min(attempt.began_s, next_s)  # a log line may come late
        return Resume(
            wait_s=attempt_s - kill_s,
            refeed_s=next_s - attempt_s,
            fed_tokens=story.prompt_tokens + attempt.known_tokens,
            known_tokens=attempt.known_tokens,
        )
    return None
