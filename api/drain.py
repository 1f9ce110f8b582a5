"""The end of a gateway's life: it admits nothing more, and those who follow a job may read on."""

from shared.errors import ShuttingDown


class Drain:
    """Asked for by a signal; a second request ends the waiting. Times are monotonic."""

    def __init__(self, grace_s: float) -> None:
        self.grace_s = grace_s
        self._until_s: float | None = None
        self._is_closing = False

    def stop_admitting(self) -> None:
        """The end is near: workers finish what they have, and take nothing more."""
        self._is_closing = True

    def request(self, now_s: float) -> None:
        # NOTE: runs in a signal handler, so it may do no more than this.
        self._until_s = now_s + (self.grace_s if self._until_s is None else 0)

    @property
    def is_requested(self) -> bool:
        return self._until_s is not None

    def is_over(self, num_followers: int, now_s: float) -> bool:
        """Nobody follows any more, or they had their time."""
        return self._until_s is not None and (not num_followers or now_s >= self._until_s)

    def check_admission(self) -> None:
        """Raises ``ShuttingDown`` once the end was asked for, or announced."""
        if self.is_requested or self._is_closing:
            raise ShuttingDown
