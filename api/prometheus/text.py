"""All families in one text, in the form that ``Accept`` asks for."""

from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def render(families: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """The text, and its content type: OpenMetrics if it is asked for, else Prometheus' 0.0.4."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # it has a version in it that is none
        encode, content_type = choose_encoder("")
    return encode(_Families(families)), content_type
