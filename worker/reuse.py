"""What of a stored state may be used, what is worth storing, and what is worth waiting for. Pure.

A stored state holds the KV of the first tokens of some sequence. Another one that begins alike starts
from it, trimmed to what they have in common.
"""

from dataclasses import dataclass
from typing import Any

#: Fewer are computed rather than restored.
MIN_RESTORED_TOKENS = 16
#: Left over by any reuse where the next token is to come of the prefill: states have no logits, and
#: a lone row takes other kernels.
REFED_TOKENS = 2
#: A snapshot of a prompt of which so small a part is new would drive more useful ones out.
_MIN_NEW_PART = 1 / 8
#: One that waits does not wait for much more work than it is spared.
_MAX_WAIT_RATIO = 2.0
#: One that has waited for two others goes on by itself.
MAX_WAITS = 2


@dataclass(slots=True)
class Reuse:
    """How one sequence takes part. ``scope``: whose snapshots it adds to; ``scopes``: whose it reads;
    ``own_scope``: of this job alone."""

    scope: str = ""
    scopes: tuple[str, ...] = ()
    own_scope: str = ""
    keeps_answer: bool = False  #: a next turn may follow
    num_restored: int = 0  #: tokens that this attempt did not compute
    num_safe: int = 0  #: tokens that some snapshot holds
    num_shared: int = 0  #: tokens that a snapshot for others holds, which stays when this one ends
    save_points: tuple[int, ...] = ()  #: its state is saved when so many are computed
    cuts: tuple[int, ...] = ()  #: where chunks have to end
    has_own_snapshot: bool = False
    claim: Any = None  #: tells other workers what this one computes
    leader: Any = None  #: the sequence of this worker that computes what this one waits for
    awaited_claim: str = ""  #: the same, of another worker
    awaited: int = 0  #: how many tokens of the leader
    wait_until_s: float = 0.0
    num_waits: int = 0

    @property
    def is_waiting(self) -> bool:
        return self.leader is not None or bool(self.awaited_claim)

    @property
    def may_wait(self) -> bool:
        return self.num_waits < MAX_WAITS

    def stop_waiting(self) -> None:
        self.leader, self.awaited_claim, self.awaited = None, "", 0


@dataclass(frozen=True, slots=True)
class Rules:
    """``window_tokens``: how far back the model's local layers look, 0: it has none. A state keeps no
    more than the last window of theirs. ``grid_tokens``: see ``worker.chunking``; 0: none."""

    window_tokens: int
    grid_tokens: int
    min_tokens: int

    def usable(
        self,
        stored: int,
        common: int,
        *,
        num_prompt: int,
        prefill_end: int,
        draws: bool,
        is_own: bool = False,
    ) -> int:
        """How many tokens of a state of ``stored`` a sequence that shares ``common`` of them may start
        from. ``draws``: its next token comes of the prefill. ``is_own``: the state is one of the very
        job. A state that is saved where it is needed, and no further, has ``stored`` 0."""
        kept = min(common, prefill_end - REFED_TOKENS if draws else prefill_end)
        if self.grid_tokens:
            if not is_own:
                kept = min(kept, num_prompt)
            if not is_own or kept < num_prompt:
                kept -= max(0, kept) % self.grid_tokens
        if self.is_trimmed_too_far(stored, kept) or kept < MIN_RESTORED_TOKENS:
            return 0
        return kept

    def is_trimmed_too_far(self, stored: int, kept: int) -> bool:
        """The next token needs the last ``window - 1`` before it, the state has ``window`` of its end."""
        return 0 < self.window_tokens < stored and kept < stored - 1

    def save_point(self, num_prompt: int, kept: int) -> int:
        """At how many tokens a prompt's state is worth storing, if ``kept`` of it were restored; 0: at
        none."""
        point = num_prompt
        if self.window_tokens and num_prompt > self.window_tokens:
            point -= REFED_TOKENS  # the same prompt again cannot trim it
        if self.grid_tokens:
            point -= point % self.grid_tokens
        is_worth_it = point - kept >= max(self.min_tokens, _MIN_NEW_PART * point)
        return point if is_worth_it else 0

    def popular_point(self, common: int, kept: int, before: int) -> int:
        """Where a prefix that was seen before, but can only be used where it ends, is to be stored too;
        0: nowhere. ``before``: the save point after it, or the prompt's end."""
        if not self.window_tokens:
            return 0
        if self.grid_tokens:
            common -= common % self.grid_tokens
        is_worth_it = common - kept >= self.min_tokens and before - common >= REFED_TOKENS
        return common if is_worth_it else 0

    def reusable(self, num_prompt: int, num_computed: int) -> int:
        """How many tokens of its state others may start from."""
        if not self.grid_tokens:
            return num_computed
        whole = min(num_prompt, num_computed)
        return whole - whole % self.grid_tokens

    def first_position(self, num_computed: int) -> int:
        """Of what a state of so many tokens holds of every layer."""
        return max(0, num_computed - self.window_tokens) if self.window_tokens else 0

    def is_worth_waiting(self, later: int, now: int, rest: int) -> bool:
        """``later`` tokens could be restored when another has computed ``rest`` more, ``now`` at once."""
        gain = later - now
        return gain >= self.min_tokens and rest <= _MAX_WAIT_RATIO * gain


def common_prefix(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """By halves: slices are compared far faster than elements."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
