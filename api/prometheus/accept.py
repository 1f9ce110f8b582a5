"""Which form of the metrics a client asks for by ``Accept``. Pure."""

_TEXT = ("text/plain", "application/openmetrics-text")
_JSON = ("application/json", "application/*", "*/*")


def wants_text(accept: str) -> bool:
    """What names one of Prometheus' forms, and nothing of JSON that it likes better."""
    weights = _weights(accept)
    text = max((weights.get(kind, 0.0) for kind in _TEXT), default=0.0)
    return text > 0 and text >= max(weights.get(kind, 0.0) for kind in _JSON)


def _weights(accept: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in accept.lower().split(","):
        kind, *parameters = (word.strip() for word in part.split(";"))
        q = next((p.removeprefix("q=") for p in parameters if p.startswith("q=")), "1")
        try:
            weights[kind] = max(weights.get(kind, 0.0), float(q))
        except ValueError:
            continue
    return weights
