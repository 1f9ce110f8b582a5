"""A Redis that answers and refuses: the login is wrong, or its user lacks a right. Pure."""

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

_SETTINGS = "MINI_VLLM_REDIS_URL and MINI_VLLM_REDIS_PASSWORD"


def login_problem(error: Exception) -> str | None:
    """What is wrong with the login and which settings hold it, without a secret; ``None`` if the
    login is not what Redis refuses. It may be mended in Redis, while we run."""
    refusal = _refused_login(error)
    if refusal is None:
        return None
    reason = str(refusal).strip().rstrip(".")
    if reason.startswith("HELLO must be called"):
        reason = "it asks for a password, and none is set"
    return f"{reason}; check {_SETTINGS}"


def rights_problem(error: Exception) -> str | None:
    """What the user of this login may not do; ``None`` if that is not what Redis refuses."""
    is_denied = isinstance(error, NoPermissionError) or (
        isinstance(error, ResponseError) and str(error).startswith("ACL failure in script")
    )
    if not is_denied:
        return None
    return (
        f"{str(error).strip().rstrip('.')}; deploy/redis/users.acl has the rights that are needed"
    )


def _refused_login(error: BaseException | None) -> BaseException | None:
    """The asyncio client of redis-py raises a plain ``ConnectionError`` from it."""
    if error is None or isinstance(error, AuthenticationError | AuthorizationError):
        return error
    if not isinstance(error, RedisConnectionError):
        return None
    return _refused_login(error.__cause__ or error.__context__)
