"""How much of all bodies a gateway holds at one time, so that a flood of them cannot take its memory."""

from shared.errors import Overloaded


class BodyBudget:
    """Counts for one event loop: nothing here waits, so nothing has to be locked."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0

    def take(self, num_bytes: int) -> None:
        """Raises ``Overloaded``, and then has taken nothing."""
        if self.held_bytes + num_bytes > self._max_bytes:
            raise Overloaded(
                f"The requests under way hold all of the {self._max_bytes} bytes that there are "
                "for bodies; nothing was accepted. Try again."
            )
        self.held_bytes += num_bytes

    def give_back(self, num_bytes: int) -> None:
        assert num_bytes <= self.held_bytes, "more was given back than was taken"
        self.held_bytes -= num_bytes
