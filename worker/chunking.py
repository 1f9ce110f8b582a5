"""How a prompt is cut into chunks. Pure.

A chunk of 2 to 63 rows takes the same kernels as decoding, so its borders change nothing; from 64 rows
on results agree only where the borders do (the grid).
"""


def next_chunk(position: int, stop: int, max_rows: int) -> int:
    """Rows of the next chunk on the way to ``stop``, which is cut evenly. Never one row, whose attention
    takes another kernel, and never leaves one, unless there is but one."""
    rest = stop - position
    if rest <= max_rows:
        return rest
    size = -(-rest // -(-rest // max_rows))
    if may_take(rest, size):
        return size
    return size - 1 if size > 2 else rest


def may_take(rest: int, size: int) -> bool:
    """Whether a chunk of so many rows is neither one row nor leaves one, of so many that are left."""
    return size == rest or (2 <= size <= rest - 2)


def next_border(position: int, grid: int) -> int:
    return (position // grid + 1) * grid
