"""The errors that reach a user. Each has a stable ``code``; its docstring is its default message.

ServiceError
├── BadRequest                invalid_request
│   ├── BodyTooLarge          body_too_large
│   ├── BodyTimedOut          body_timeout
│   ├── HeadersTooLarge       headers_too_large
│   ├── UnsupportedParameter  unsupported_parameter
│   └── PromptTooLong         context_length_exceeded
├── IdempotencyConflict       idempotency_conflict
├── FileNotStored             file_not_found
├── FileInUse                 file_in_use
├── StorageFull               storage_full
├── BatchNotFound             batch_not_found
├── BatchEnded                batch_ended
├── Unauthorized              unauthorized
├── Forbidden                 forbidden
├── TooManyRequests
│   ├── QueueFull             queue_full
│   ├── TooManyJobs           too_many_jobs
│   ├── TooManyBatches        too_many_batches
│   └── RateLimited           rate_limited
├── JobNotFound               job_not_found
├── JobCancelled              job_cancelled
├── JobFailed                 job_failed
├── ModelNotFound             model_not_found
├── RouteNotFound             not_found
├── MethodNotAllowed          method_not_allowed
├── Unavailable
│   ├── RedisUnavailable      redis_unavailable
│   ├── RedisFull             redis_full
│   ├── NoWorkerReady         no_worker_ready
│   ├── ShuttingDown          shutting_down
│   ├── StorageUnusable       storage_unusable
│   └── Overloaded            overloaded
├── GenerationTimedOut        timeout
├── NoChatTemplate            no_chat_template
├── UnknownModel              unknown_model
├── ModelUnusable             model_unusable
├── SetupError                setup_error
└── InternalError             internal_error
"""

from inspect import cleandoc


class ServiceError(Exception):
    """Something went wrong."""

    code = "service_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        self.message = message or cleandoc(type(self).__doc__ or "")
        self.field = field
        self.retry_after_s = retry_after_s
        super().__init__(self.message)


class BadRequest(ServiceError):
    """The request is not valid."""

    code = "invalid_request"


class BodyTooLarge(BadRequest):
    """The body of the request is larger than this route takes."""

    code = "body_too_large"


class BodyTimedOut(BadRequest):
    """The body of the request did not go on to arrive in time."""

    code = "body_timeout"


class HeadersTooLarge(BadRequest):
    """The request line and the headers together are larger than this service takes."""

    code = "headers_too_large"


class UnsupportedParameter(BadRequest):
    """A parameter is not supported."""

    code = "unsupported_parameter"


class PromptTooLong(BadRequest):
    """The prompt does not fit into the context of the model."""

    code = "context_length_exceeded"


class IdempotencyConflict(ServiceError):
    """Another job was submitted with this Idempotency-Key and another body."""

    code = "idempotency_conflict"


class Unauthorized(ServiceError):
    """An API key is needed: `Authorization: Bearer <key>` or `X-API-Key: <key>`."""

    code = "unauthorized"


class Forbidden(ServiceError):
    """This key may not do that."""

    code = "forbidden"


class TooManyRequests(ServiceError):
    """Too much at once; come again after the time in Retry-After."""

    code = "too_many_requests"


class QueueFull(TooManyRequests):
    """Too much waits already."""

    code = "queue_full"


class TooManyJobs(TooManyRequests):
    """Too many jobs of this key wait already."""

    code = "too_many_jobs"


class RateLimited(TooManyRequests):
    """Too many requests of this key in a minute."""

    code = "rate_limited"


class TooManyBatches(TooManyRequests):
    """Too many batches have not ended yet."""

    code = "too_many_batches"


class FileNotStored(ServiceError):
    """There is no file with this id; it may have expired."""

    code = "file_not_found"


class FileInUse(ServiceError):
    """A batch that has not ended reads this file."""

    code = "file_in_use"


class StorageFull(ServiceError):
    """There is no room for more files; delete some, or wait until some expire."""

    code = "storage_full"


class BatchNotFound(ServiceError):
    """There is no batch with this id; it may have expired."""

    code = "batch_not_found"


class BatchEnded(ServiceError):
    """The batch is past the point where it could be cancelled."""

    code = "batch_ended"


class JobNotFound(ServiceError):
    """There is no job with this id; it may have expired."""

    code = "job_not_found"


class JobCancelled(ServiceError):
    """The job was cancelled before it was done."""

    code = "job_cancelled"


class JobFailed(ServiceError):
    """The job failed; the service has tried it as often as it does."""

    code = "job_failed"


class ModelNotFound(ServiceError):
    """No worker serves this model; GET /v1/models lists those that are served."""

    code = "model_not_found"


class RouteNotFound(ServiceError):
    """There is nothing at this path; GET / lists the routes."""

    code = "not_found"


class MethodNotAllowed(ServiceError):
    """This path does not take that method."""

    code = "method_not_allowed"


class Unavailable(ServiceError):
    """The service cannot answer now; try again."""

    code = "unavailable"


class RedisUnavailable(Unavailable):
    """Redis does not answer; nothing was accepted. Try again."""

    code = "redis_unavailable"


class RedisFull(Unavailable):
    """Redis is nearly out of memory; nothing was accepted. Results that expire free some."""

    code = "redis_full"


class NoWorkerReady(Unavailable):
    """No worker is ready."""

    code = "no_worker_ready"


class ShuttingDown(Unavailable):
    """This gateway is stopping and accepts no more jobs; try again in a moment."""

    code = "shutting_down"


class StorageUnusable(Unavailable):
    """The folder of the files cannot be used; the logs say more."""

    code = "storage_unusable"


class Overloaded(Unavailable):
    """The service has as much to do as it can hold; try again."""

    code = "overloaded"


class GenerationTimedOut(ServiceError):
    """The deadline passed before the job was done; the text so far is kept."""

    code = "timeout"


class ShapeFailed(ServiceError):
    """The answer could not be held to its schema or grammar."""

    code = "shape_failed"


class NoChatTemplate(BadRequest):
    """The model has no chat template; send `prompt` with `"raw": true`."""

    code = "no_chat_template"


class UnknownModel(ServiceError):
    """There is no such model; `mini-vllm model list` shows what there is."""

    code = "unknown_model"


class ModelUnusable(ServiceError):
    """The model file cannot be loaded."""

    code = "model_unusable"


class SetupError(ServiceError):
    """The machine or the set-up does not allow this; `mini-vllm doctor` says more."""

    code = "setup_error"


class InternalError(ServiceError):
    """Something failed inside the service; the logs say more."""

    code = "internal_error"
