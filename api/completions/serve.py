"""What the two routes of OpenAI's API do: read a request, see whether it can be run, and submit it."""

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from api.admission import check_request
from api.completions.call import parse_call
from api.completions.form import Endpoint
from api.completions.later import announced, read_later
from api.completions.run import Run, RunResponse
from api.completions.submission import Origin, submit_call
from api.deps import Gateway
from api.keyring import Caller


async def serve_call(
    endpoint: Endpoint, request: Request, gateway: Gateway, caller: Caller, origin: Origin
) -> Response:
    raw = await request.body()
    gateway.drain.check_admission()
    call = parse_call(endpoint, raw)
    model = await gateway.models.find(call.model)
    for job in call.jobs[:: call.num_choices]:
        check_request(job, model, gateway.settings, ids_field="prompt")
    call = call.served_by(model.name, model.tool_format, model.fingerprint)
    jobs = await run_in_threadpool(submit_call, gateway.broker, call, model.name, origin)
    # A call that comes again is told as the first time, by whichever gateway.
    first, created_s = jobs[0], jobs[0].created_ms // 1000
    call = call.told_as(first.note)
    call_id = call.form.call_id(first.job_id)
    if call.background and not call.stream:
        headers = {"X-Job-Id": first.job_id, "Location": f"{endpoint}/{call_id}"}
        told = announced(call.form, first.job_id, created_s)
        if not first.is_new:
            told = await read_later(gateway, endpoint, call_id, caller)
        return JSONResponse(told, 202 if first.is_new else 200, headers)
    # Who sends an Idempotency-Key may come again for the same jobs.
    is_kept = call.background or origin.idempotency_key is not None
    run = Run(call, call_id, created_s, tuple(job.job_id for job in jobs), is_kept)
    return RunResponse(gateway, run)
