"""Checks what Paidonce delivers, as Standard Webhooks says."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Optional, Union

from .errors import SignatureError
from .schemas import Event


def verify_webhook(
    body: Union[bytes, str],
    headers: Mapping[str, str],
    secrets: Union[str, Sequence[str]],
    *,
    tolerance: float = 300.0,
    now: Optional[float] = None,
) -> Event:
    """
    Checks a delivery and returns its event. The body has to be the bytes as they came, before any parser; header names may be in any letter
    case. The secrets are the endpoint's (`whsec_…`), several while one is replaced.

    `tolerance` is how many seconds the delivery may be old, or of the future; `now` is for tests. Raises SignatureError when the delivery is
    not to be believed, and ValueError, whatever the delivery is, when a secret is none or there is none: an empty one would let everybody sign.
    """
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("a delivery cannot be checked without a secret")
    given = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp, signatures = (given.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not message_id or not re.fullmatch("[0-9]{1,12}", timestamp):
        raise SignatureError("A header of the delivery is missing.")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise SignatureError("The delivery is too old, or of the future.")
    content = body.encode() if isinstance(body, str) else bytes(body)
    signed = f"{message_id}.{timestamp}.".encode() + content
    for key in keys:
        expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        # The header has one signature of each secret that is in use.
        if any(hmac.compare_digest(expected, one.encode()) for one in signatures.split(" ")):
            event: Event = json.loads(content)
            return event
    raise SignatureError("No signature of the delivery matches.")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret[len("whsec_") :] if secret.startswith("whsec_") else secret, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("a webhook secret is whsec_ and base64")
    return key
