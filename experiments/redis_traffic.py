"""What was asked of a Redis between two looks at it, and what of that a token costs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_COMMAND = "cmdstat_"
#: A script is called by one of them; what it calls itself is counted beside it.
_SCRIPT_CALLS = ("eval", "evalsha")


@dataclass(frozen=True, slots=True)
class Traffic:
    """``commands`` by name, those that scripts call too. ``received_bytes`` are Redis' point of view."""

    commands: Mapping[str, float]
    received_bytes: float
    sent_bytes: float

    @classmethod
    def from_info(cls, info: Mapping[str, Any]) -> "Traffic":
        """Of ``INFO everything``: totals since the server began."""
        return cls(
            commands={
                name.removeprefix(_COMMAND): float(stat["calls"])
                for name, stat in info.items()
                if name.startswith(_COMMAND)
            },
            received_bytes=float(info["total_net_input_bytes"]),
            sent_bytes=float(info["total_net_output_bytes"]),
        )

    @property
    def num_commands(self) -> float:
        return sum(self.commands.values())

    @property
    def num_script_calls(self) -> float:
        return sum(self.commands.get(name, 0) for name in _SCRIPT_CALLS)

    def __sub__(self, other: "Traffic") -> "Traffic":
        names = sorted({*self.commands, *other.commands})
        calls = {n: self.commands.get(n, 0) - other.commands.get(n, 0) for n in names}
        return Traffic(
            {name: count for name, count in calls.items() if count},
            self.received_bytes - other.received_bytes,
            self.sent_bytes - other.sent_bytes,
        )

    def __truediv__(self, count: float) -> "Traffic":
        return Traffic(
            {name: calls / count for name, calls in self.commands.items()},
            self.received_bytes / count,
            self.sent_bytes / count,
        )


def cost_of_tokens(
    short: Traffic, long: Traffic, *, jobs: int, short_tokens: int, long_tokens: int
) -> tuple[Traffic, Traffic]:
    """Of a token, and of a job beside its tokens. Both runs are of as many jobs, and differ in the number
    of tokens of each; so what looking costs counts as the jobs'."""
    token = (long - short) / (jobs * (long_tokens - short_tokens))
    job = short / jobs - Traffic(
        {name: calls * short_tokens for name, calls in token.commands.items()},
        token.received_bytes * short_tokens,
        token.sent_bytes * short_tokens,
    )
    return token, job
