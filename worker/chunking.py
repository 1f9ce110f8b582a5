"""How a prompt is cut into chunks. Pure.

A chunk of 2 to 63 rows takes the same kernels as decoding, so its borders change nothing; from 64 rows
on results agree only where the borders do (the grid).
"""


def next_chunk(position: int, stop: int, max_rows: int) -> int:
    """Rows of the next chunk on the way to ``stop``. Never one row, whose attention takes another
    kernel, and never leaves one, unless there is but one."""
    rest = stop - position
    if rest <= max_rows:
        return rest
    if rest - max_rows > 1:
        return max_rows
    return max_rows - 1 if max_rows > 2 else rest


def next_border(position: int, grid: int) -> int:
    return (position // grid + 1) * grid
