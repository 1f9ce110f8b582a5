"""Numbers as people read them. Pure."""


def seconds(value_s: float) -> str:
    if value_s < 1:
        return f"{value_s * 1000:.3g} ms"
    return f"{value_s:.3g} s" if value_s < 1000 else f"{value_s:.0f} s"


def times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"
