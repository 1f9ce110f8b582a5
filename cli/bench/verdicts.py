"""What has to be said beside the figures, lest somebody trusts them too far. Pure."""

from dataclasses import dataclass

from cli.bench.measured import Measured
from cli.bench.plan import Point
from cli.bench.workloads import LONG

#: Beyond it the one thread of the client may be what is measured.
BUSY_CLIENT_PERCENT = 70.0
_FEW_PERCENT = 5.0
_MAX_MESSAGE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Verdict:
    text: str
    is_loud: bool = False


def judge(measured: Measured) -> list[Verdict]:
    found = [verdict for name in measured.names for verdict in _of_server(measured, name)]
    for point in measured.points:
        for name in measured.names:
            found += [
                Verdict(f"{name}, {point.label}: {text}") for text in _of(measured, point, name)
            ]
    if measured.problem:
        told = f"ended early: {measured.problem}; these are the figures of what was measured until then"
        found.append(Verdict(told, is_loud=True))
    if measured.is_interrupted:
        found.append(Verdict("interrupted: these are the figures of what was measured until then"))
    return found


def has_answers(measured: Measured) -> bool:
    """Of each server that was asked."""
    asked = {name for _, name in measured.runs}
    return bool(asked) and all(measured.total(name, "completed") for name in asked)


def _of_server(measured: Measured, name: str) -> list[Verdict]:
    found = []
    failed, done = measured.total(name, "failed"), measured.total(name, "completed")
    if failed and failed >= done:
        what = f"{name} FAILED {failed:.0f} of {failed + done:.0f} requests"
        found.append(Verdict(f"{what}; the figures are those of the others", is_loud=True))
    for kind, (count, message) in measured.errors(name).items():
        found.append(Verdict(f"{name}: {count} x {kind}: {message[:_MAX_MESSAGE_CHARS]}"))
    if name in measured.without_ignore_eos:
        found.append(Verdict(f"{name} does not know ignore_eos; answers may end early"))
    if name in measured.rates and measured.rates[name] is None:
        what = "counts prompts of any length alike; a word was taken for a token"
        found.append(Verdict(f"{name} {what}"))
    return found


def _of(measured: Measured, point: Point, name: str) -> list[str]:
    plan, spreads = measured.plan, measured.spreads(point, name)
    value = {figure: spread["median"] for figure, spread in spreads.items()}
    found = []
    wanted = _wanted_prompt_tokens(measured)
    prompt = value.get("mean_prompt_tokens")
    if wanted and prompt is not None and _is_off(prompt, wanted):
        found.append(f"prompts came out at {prompt:g} tokens instead of {wanted}")
    if plan.workload and value.get("min_output_tokens", plan.lengths.output_tokens) < (
        plan.lengths.output_tokens
    ):
        least, mean = value["min_output_tokens"], value["mean_output_tokens"]
        asked = plan.lengths.output_tokens
        found.append(
            f"answers are shorter than the {asked} tokens asked for ({least:g}; mean {mean:g})"
        )
    pieces = value.get("tokens_per_piece")
    if pieces is not None and pieces > 1 + _FEW_PERCENT / 100:
        found.append(f"a piece of a stream has {pieces:g} tokens; ITL is between pieces")
    cpu = spreads.get("client_cpu_percent", {}).get("max", 0.0)
    if cpu > BUSY_CLIENT_PERCENT:
        told = "this client may be what limits the figures"
        found.append(f"the client itself used {cpu:.0f} % of a core: {told}")
    if point.clients and plan.workload and plan.workload.name != LONG:
        peak = value.get("max_concurrent_requests", point.clients)
        if peak < point.clients:
            found.append(f"no more than {peak:g} requests ran at once; give more --requests")
    if value.get("stream_errors"):
        found.append(f"{value['stream_errors']:g} of the streams ended before they were to")
    return found


def _wanted_prompt_tokens(measured: Measured) -> int:
    """0 where there is no one length: of a chat each turn is longer, and so is each line of a trace."""
    lengths, workload = measured.plan.lengths, measured.plan.workload
    if workload is None or workload.name == "chat":
        return 0
    return lengths.prompt_tokens + lengths.prefix_tokens


def _is_off(value: float, wanted: float) -> bool:
    return abs(value - wanted) > max(1.0, wanted * _FEW_PERCENT / 100)
