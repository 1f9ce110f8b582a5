"""How fast prompts are computed here, as measured, and how much of them fits into a step. Pure.

A call reads all weights, however few rows it has: it takes ``a + b * rows``. Both are fitted to the last
calls, since a rate alone would call small chunks slow and then allow still smaller ones.
"""

#: A sample of so many tokens counts as much as all before it.
_MEMORY_TOKENS = 512
#: Smaller chunks are not worth the reading of all weights.
MIN_BUDGET_TOKENS = 16
#: Until something was measured.
_FIRST_BUDGET_TOKENS = 56
#: While no stream is held up, cancels and new jobs are: they wait for a step.
_IDLE_STALL_S = 0.5
#: Sizes that vary less (their standard deviation, in rows) do not tell what a call costs by itself.
_LEAST_SPREAD_ROWS = 4.0


class Pace:
    def __init__(self, stall_s: float) -> None:
        """``stall_s``: how long prompt chunks may hold up running sequences in a step."""
        self._stall_s = stall_s
        self._s_per_token = 0.0
        #: sums over calls, older ones weighing less: of 1, rows, seconds, rows², rows x seconds
        self._sums = [0.0] * 5

    def note(self, num_tokens: int, spent_s: float) -> None:
        """One call."""
        if num_tokens <= 0 or spent_s <= 0:
            return
        weight = num_tokens / (num_tokens + _MEMORY_TOKENS)
        sample = (1.0, num_tokens, spent_s, num_tokens**2, num_tokens * spent_s)
        self._sums = [(1 - weight) * old + new for old, new in zip(self._sums, sample, strict=True)]
        per_token = spent_s / num_tokens
        if not self._s_per_token:
            self._s_per_token = per_token
            return
        self._s_per_token += weight * (per_token - self._s_per_token)

    @property
    def tokens_per_s(self) -> float:
        """0 until something was measured."""
        return 1 / self._s_per_token if self._s_per_token else 0.0

    def seconds_for(self, num_tokens: int) -> float:
        return num_tokens * self._s_per_token

    def _fit(self) -> tuple[float, float]:
        """Seconds of a call by itself, and for each of its rows."""
        calls, rows, seconds, squares, products = self._sums
        spread = squares / calls - (rows / calls) ** 2
        if spread >= _LEAST_SPREAD_ROWS**2:
            per_row_s = (products / calls - rows * seconds / calls**2) / spread
            call_s = (seconds - per_row_s * rows) / calls
            if per_row_s > 0 and call_s >= 0:
                return call_s, per_row_s
        return 0.0, seconds / rows

    def budget_tokens(self, *, holds_up: bool) -> int:
        """Of one call. ``holds_up``: whether sequences are running that wait for the step to end."""
        if not self._s_per_token:
            return _FIRST_BUDGET_TOKENS
        stall_s = self._stall_s if holds_up else max(self._stall_s, _IDLE_STALL_S)
        call_s, per_row_s = self._fit()
        return max(MIN_BUDGET_TOKENS, int((stall_s - call_s) / per_row_s))

    @property
    def call_tokens(self) -> int:
        """What another call costs by itself, in tokens."""
        if not self._s_per_token:
            return 0
        call_s, per_row_s = self._fit()
        return int(call_s / per_row_s)
