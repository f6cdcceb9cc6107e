"""Sends a request until there is an answer: the same request each time, byte for byte."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Optional, Union
from urllib.parse import urlsplit

from .errors import ApiConnectionError, ApiError, DeadlineError, error_of, object_of
from .transport import Response, Transport

_SHORTEST_PAUSE = 0.2
"""Seconds. Long enough for a server that restarts to be noticed by few attempts, too short for a person to mind."""
_LONGEST_PAUSE = 10.0
"""Seconds. Who waits for a server that is down for long asks six times a minute."""
_RETRIED = (408, 409, 425, 429)


@dataclass(frozen=True)
class Exchange:
    """An answer that is not to be asked for again."""

    status: int
    headers: Message
    body: bytes
    data: Any
    """What was asked for, when the answer is a success."""
    error: Optional[ApiError]
    uncertain: bool
    """Whether an earlier attempt may have been carried out."""


class Exchanger:
    """Knows the installation, the API key and how patient to be. Safe for concurrent use."""

    def __init__(self, base_url: str, api_key: str, transport: Transport, deadline: float, attempt_timeout: float) -> None:
        """Times in seconds."""
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment or parts.port == 0:
            raise ValueError("base_url has to be the URL of an installation, such as http://127.0.0.1:8080")
        if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise ValueError("api_key has to be an API key, without spaces or line breaks")
        if not (deadline > 0 and attempt_timeout > 0):
            raise ValueError("deadline and attempt_timeout have to be positive numbers of seconds")
        self._base = base_url.rstrip("/")
        self._host = parts.netloc
        self._headers = {"Authorization": f"Bearer {api_key}", "Accept": "application/json", "User-Agent": "paidonce-python"}
        self._transport = transport
        self._deadline = deadline
        self._attempt_timeout = attempt_timeout

    def exchange(self, method: str, path: str, wanted: str, body: Optional[bytes] = None, key: Optional[str] = None) -> Exchange:
        """`wanted` is what is asked for, as `object` of a success names it. Raises DeadlineError when there is no answer in time."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        end = time.monotonic() + self._deadline
        attempt = 0
        while True:
            answer = self._attempt(method, path, headers, body, end)
            if isinstance(answer, Response):
                taken = _take(answer, wanted, attempt > 0)
                if isinstance(taken, Exchange):
                    return taken
                failure: Union[ApiError, ApiConnectionError] = taken
            else:
                failure = answer
            asked = retry_after(failure.headers) if isinstance(failure, ApiError) else 0.0
            pause = pause_after(attempt, asked)
            if time.monotonic() + pause >= end:
                raise DeadlineError(f"Time is up: {failure}") from failure
            time.sleep(pause)
            attempt += 1

    def _attempt(
        self, method: str, path: str, headers: Mapping[str, str], body: Optional[bytes], end: float
    ) -> Union[Response, ApiConnectionError]:
        limit = max(0.001, min(self._attempt_timeout, end - time.monotonic()))
        try:
            return self._transport(method, self._base + path, headers, body, limit)
        except (OSError, http.client.HTTPException) as cause:
            failure = ApiConnectionError(f"No answer from {self._host}: {cause or type(cause).__name__}")
            failure.__cause__ = cause
            return failure


def _take(answer: Response, wanted: str, uncertain: bool) -> Union[Exchange, ApiError, ApiConnectionError]:
    """Returns an error when the same request should be sent again."""
    status, headers, body = answer.status, answer.headers, answer.body
    if 200 <= status < 300:
        data = object_of(body)
        if data is None or data.get("object") != wanted:
            # A proxy's page, say, or the beginning of an answer: what became of the request is not known.
            return ApiConnectionError(f"The answer with status {status} is not from Paidonce: it is no {wanted}.")
        return Exchange(status, headers, body, data, None, uncertain)
    error = error_of(status, headers, body)
    if (status >= 500 or status in _RETRIED) and error.advice != "stop":
        return error
    return Exchange(status, headers, body, None, error, uncertain)


def retry_after(headers: Message, now: Optional[float] = None) -> float:
    """Seconds of a `Retry-After`, which is a number of them or a date; 0 when there is none, or none that can be read."""
    value = str(headers["Retry-After"] or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now))
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0


def pause_after(attempt: int, asked: float, chance: Optional[float] = None) -> float:
    """How many seconds to wait before the next attempt: never less than the server asks for, and never in step with other clients."""
    most = min(_LONGEST_PAUSE, _SHORTEST_PAUSE * 2.0 ** min(attempt, 10))
    return asked + most / 2 * (1 + (random.random() if chance is None else chance))
