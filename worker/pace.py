"""How fast prompts are computed here, as measured, and how much of them fits into a step. Pure."""

#: A sample of so many tokens counts as much as all before it.
_MEMORY_TOKENS = 512
#: A chunk reads all weights, however few rows it has: smaller ones are not worth it.
MIN_BUDGET_TOKENS = 16
#: Until something was measured.
_FIRST_BUDGET_TOKENS = 56
#: While no stream is held up, cancels and new jobs are: they wait for a step.
_IDLE_STALL_S = 0.5


class Pace:
    def __init__(self, stall_s: float) -> None:
        """``stall_s``: how long prompt chunks may hold up running sequences in a step."""
        self._stall_s = stall_s
        self._s_per_token = 0.0

    def note(self, num_tokens: int, spent_s: float) -> None:
        if num_tokens <= 0 or spent_s <= 0:
            return
        sample = spent_s / num_tokens
        if not self._s_per_token:
            self._s_per_token = sample
            return
        weight = num_tokens / (num_tokens + _MEMORY_TOKENS)
        self._s_per_token += weight * (sample - self._s_per_token)

    @property
    def tokens_per_s(self) -> float:
        """0 until something was measured."""
        return 1 / self._s_per_token if self._s_per_token else 0.0

    def seconds_for(self, num_tokens: int) -> float:
        return num_tokens * self._s_per_token

    def budget_tokens(self, *, holds_up: bool) -> int:
        """``holds_up``: whether sequences are running that wait for the step to end."""
        if not self._s_per_token:
            return _FIRST_BUDGET_TOKENS
        stall_s = self._stall_s if holds_up else max(self._stall_s, _IDLE_STALL_S)
        return max(MIN_BUDGET_TOKENS, int(stall_s / self._s_per_token))
