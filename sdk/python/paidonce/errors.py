"""Everything that this library raises, besides ValueError for what cannot be sent or checked at all."""

from __future__ import annotations

import json
from email.message import Message
from typing import Any, Optional, cast


class PaidonceError(Exception):
    """Everything below is one."""


class ApiConnectionError(PaidonceError):
    """No answer came: the connection failed, took too long, or what came is not from Paidonce. The request may have been carried out."""


class ApiError(PaidonceError):
    """An answer that is an error. The subclasses tell the kinds apart."""

    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        super().__init__(status, headers, body)  # all of them, so that the error can be pickled
        details = _details(body)
        self.status = status
        self.headers = headers
        """Of the answer; names in any letter case."""
        self.type: Optional[str] = details.get("type")
        """Such as `card_error`; None when the answer is not from Paidonce itself but from a proxy, say."""
        self.code: Optional[str] = details.get("code")
        self.message: str = details.get("message", f"The server answered {status}.")
        self.param: Optional[str] = details.get("param")
        self.decline_code: Optional[str] = details.get("decline_code")
        self.charge: Optional[str] = details.get("charge")
        """The id of the charge that the request stands for."""
        self.advice: Optional[str] = details.get("advice")
        """What a program should do: `retry_same_key`, `fix_and_use_new_key` or `stop`; `docs/errors.md` of Paidonce explains it."""
        self.request_id: Optional[str] = headers["Request-Id"]
        """Of this exchange; `error.request_id` of a replayed answer is that of the first."""
        self.replayed: bool = headers["Idempotent-Replayed"] == "true"
        """Whether the answer was stored by an earlier request with the same key."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"  # not all that pickle needs: an answer's headers and body are no matter of logs

    def __str__(self) -> str:
        return f"{self.message} ({' '.join(str(part) for part in (self.status, self.code, self.request_id) if part)})"


class CardError(ApiError):
    """The payment was declined: an answer, and final."""


class IdempotencyError(ApiError):
    """The key is in use (409), or stands for another request (422)."""


class InvalidRequestError(ApiError):
    """The request is wrong, or what it asks for is not there or not possible."""


class AuthenticationError(ApiError):
    """There is no such API key."""


class RateLimitError(ApiError):
    """Too many requests."""


class DeadlineError(PaidonceError):
    """
    Time is up and the outcome is not known. The operation is kept: call again, or `resume` it, under the same name. `__cause__` is the last
    error.
    """


class OperationMismatchError(PaidonceError):
    """The operation was begun with another request. Nothing was sent."""


class StaleOperationError(PaidonceError):
    """
    The operation was begun so long ago that the server may have forgotten its key, and would take it for a new one. Nothing was sent: look
    for the charge (by its metadata, say), then `forget` the operation or leave it.
    """


class UnknownOperationError(PaidonceError):
    """Nothing was begun under the name, or it was forgotten."""


class SignatureError(PaidonceError):
    """The delivery is not from Paidonce, was changed, or is too old. Answer 400 and believe nothing of it."""


_KINDS = {
    "card_error": CardError,
    "idempotency_error": IdempotencyError,
    "invalid_request_error": InvalidRequestError,
    "authentication_error": AuthenticationError,
    "rate_limit_error": RateLimitError,
}


def error_of(status: int, headers: Message, body: bytes) -> ApiError:
    """Makes an error of an answer; of one that is not ours (a proxy's page, say) as well, but without any details."""
    return _KINDS.get(str(_details(body).get("type")), ApiError)(status, headers, body)


def _details(body: bytes) -> dict[str, Any]:
    details = (object_of(body) or {}).get("error")
    if not isinstance(details, dict) or not isinstance(cast("dict[str, Any]", details).get("type"), str):
        return {}  # not from Paidonce itself: the status says enough
    return cast("dict[str, Any]", details)


def object_of(body: bytes) -> Optional[dict[str, Any]]:
    """Returns the JSON object that a body is, or None."""
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
