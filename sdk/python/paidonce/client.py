"""The client of an installation."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional, cast
from urllib.parse import quote, urlencode

from . import schemas as s
from .operations import Operations, Result, canonical, result_of
from .retry import Exchanger
from .store import OperationStore
from .transport import HttpTransport, Transport

_MAX_AGE = 23 * 3600.0
"""Seconds: below the 24 hours for which a server keeps its keys unless configured otherwise."""
_FULL_PAGE = 100
"""The most that a list returns at once."""


class Paidonce:
    """A client of a Paidonce installation. Safe for concurrent use by threads, and after a fork."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        store: OperationStore,
        *,
        deadline: float = 60.0,
        attempt_timeout: float = 30.0,
        max_age: float = _MAX_AGE,
        transport: Optional[Transport] = None,
    ) -> None:
        """
        `base_url` is such as `http://127.0.0.1:8080`; `store` is where operations are kept. In seconds: how long a call may take with all its
        attempts (`deadline`), how long one attempt may take, and from what age on an unfinished operation is not sent again (`max_age`,
        below the server's retention of keys). Only the look-up of the host's name is not bounded. `transport` sends in another way, such as
        `HttpTransport(context)` with certificates of your own.
        """
        if not max_age > 0:
            raise ValueError("max_age has to be a positive number of seconds")
        exchanger = Exchanger(base_url, api_key, transport or HttpTransport(), deadline, attempt_timeout)
        self.operations = Operations(exchanger, store, max_age)
        self.charges = Charges(exchanger, self.operations)
        self.payment_intents = PaymentIntents(exchanger, self.operations)
        self.refunds = Refunds(exchanger, self.operations)
        self.disputes = Disputes(exchanger)
        self.idempotency_keys = IdempotencyKeys(exchanger)
        self.events = Events(exchanger)
        self.webhook_endpoints = WebhookEndpoints(exchanger)


class Charges:
    """Taking money. Each write takes the name of its operation, your own, first: it is done once for the name."""

    def __init__(self, exchanger: Exchanger, operations: Operations) -> None:
        self._exchanger = exchanger
        self._operations = operations

    def create(self, operation: str, params: s.ChargeParams) -> Result[s.Charge]:
        """Charges once for the operation's name, however often and from wherever it is called."""
        return self._operations.run(operation, "/v1/charges", params)

    def capture(self, operation: str, charge_id: str, params: Optional[s.CaptureParams] = None) -> Result[s.Charge]:
        """Takes the money of a charge that was made with `"capture": False`, all of it or the amount that the parameters name."""
        return self._operations.run(operation, f"/v1/charges/{_segment(charge_id)}/capture", params or {})

    def cancel(self, operation: str, charge_id: str) -> Result[s.Charge]:
        """Lets go of a charge that was made with `"capture": False`, or ends one that waits for its payer."""
        return self._operations.run(operation, f"/v1/charges/{_segment(charge_id)}/cancel", {})

    def retrieve(self, charge_id: str) -> Result[s.Charge]:
        return _call(self._exchanger, "GET", f"/v1/charges/{_segment(charge_id)}", "charge")

    def list(self, query: Optional[s.ListChargesQuery] = None) -> Result[s.ChargeList]:
        """A page of charges, newest first."""
        return _call(self._exchanger, "GET", "/v1/charges", "list", query)

    def all(self, query: Optional[s.ListChargesQuery] = None) -> Iterator[s.Charge]:
        """All charges, newest first, page after page."""
        return _walk(self.list, query)


class PaymentIntents:
    """
    Taking money from payers who may have to do something first. Each write that can move money takes the name of its operation first: it is done
    once for the name.
    """

    def __init__(self, exchanger: Exchanger, operations: Operations) -> None:
        self._exchanger = exchanger
        self._operations = operations

    def create(self, operation: str, params: s.PaymentIntentParams) -> Result[s.PaymentIntent]:
        """Makes a payment intent once for the operation's name; with `"confirm": True` it is confirmed at once."""
        return self._operations.run(operation, "/v1/payment_intents", params)

    def confirm(self, operation: str, intent_id: str, params: Optional[s.PaymentIntentConfirmParams] = None) -> Result[s.PaymentIntent]:
        """Charges what the intent was made for. After a decline, confirm it again under another operation's name."""
        return self._operations.run(operation, f"/v1/payment_intents/{_segment(intent_id)}/confirm", params or {})

    def capture(self, operation: str, intent_id: str, params: Optional[s.PaymentIntentCaptureParams] = None) -> Result[s.PaymentIntent]:
        """Takes the money of an intent that was made with `"capture_method": "manual"`, all of it or the amount that the parameters name."""
        return self._operations.run(operation, f"/v1/payment_intents/{_segment(intent_id)}/capture", params or {})

    def cancel(self, operation: str, intent_id: str, params: Optional[s.PaymentIntentCancelParams] = None) -> Result[s.PaymentIntent]:
        """Ends an intent that nobody has paid, or lets go of what it holds."""
        return self._operations.run(operation, f"/v1/payment_intents/{_segment(intent_id)}/cancel", params or {})

    def update(self, intent_id: str, params: s.PaymentIntentUpdateParams) -> Result[s.PaymentIntent]:
        """Changes what the parameters name of an intent; what was paid, only in words."""
        return _call(self._exchanger, "POST", f"/v1/payment_intents/{_segment(intent_id)}", "payment_intent", params=params)

    def retrieve(self, intent_id: str) -> Result[s.PaymentIntent]:
        return _call(self._exchanger, "GET", f"/v1/payment_intents/{_segment(intent_id)}", "payment_intent")

    def list(self, query: Optional[s.ListPaymentIntentsQuery] = None) -> Result[s.PaymentIntentList]:
        """A page of payment intents, newest first."""
        return _call(self._exchanger, "GET", "/v1/payment_intents", "list", query)

    def all(self, query: Optional[s.ListPaymentIntentsQuery] = None) -> Iterator[s.PaymentIntent]:
        """All payment intents, newest first, page after page."""
        return _walk(self.list, query)


class Refunds:
    """Giving money back."""

    def __init__(self, exchanger: Exchanger, operations: Operations) -> None:
        self._exchanger = exchanger
        self._operations = operations

    def create(self, operation: str, params: s.RefundParams) -> Result[s.Refund]:
        """Gives money back, once for the operation's name."""
        return self._operations.run(operation, "/v1/refunds", params)

    def retrieve(self, refund_id: str) -> Result[s.Refund]:
        return _call(self._exchanger, "GET", f"/v1/refunds/{_segment(refund_id)}", "refund")

    def list(self, query: Optional[s.ListRefundsQuery] = None) -> Result[s.RefundList]:
        """A page of refunds, newest first."""
        return _call(self._exchanger, "GET", "/v1/refunds", "list", query)

    def all(self, query: Optional[s.ListRefundsQuery] = None) -> Iterator[s.Refund]:
        """All refunds, newest first, page after page."""
        return _walk(self.list, query)


class Disputes:
    """What payers dispute with their bank; read only."""

    def __init__(self, exchanger: Exchanger) -> None:
        self._exchanger = exchanger

    def retrieve(self, dispute_id: str) -> Result[s.Dispute]:
        return _call(self._exchanger, "GET", f"/v1/disputes/{_segment(dispute_id)}", "dispute")

    def list(self, query: Optional[s.ListDisputesQuery] = None) -> Result[s.DisputeList]:
        """A page of disputes, newest first."""
        return _call(self._exchanger, "GET", "/v1/disputes", "list", query)

    def all(self, query: Optional[s.ListDisputesQuery] = None) -> Iterator[s.Dispute]:
        """All disputes, newest first, page after page."""
        return _walk(self.list, query)


class IdempotencyKeys:
    def __init__(self, exchanger: Exchanger) -> None:
        self._exchanger = exchanger

    def retrieve(self, key: str) -> Result[s.IdempotencyKey]:
        """What became of a key."""
        return _call(self._exchanger, "GET", f"/v1/idempotency_keys/{_segment(key)}", "idempotency_key")


class Events:
    """What happened."""

    def __init__(self, exchanger: Exchanger) -> None:
        self._exchanger = exchanger

    def retrieve(self, event_id: str) -> Result[s.Event]:
        return _call(self._exchanger, "GET", f"/v1/events/{_segment(event_id)}", "event")

    def list(self, query: Optional[s.ListEventsQuery] = None) -> Result[s.EventList]:
        """A page of events, oldest first unless the query says otherwise."""
        return _call(self._exchanger, "GET", "/v1/events", "list", query)

    def all(self, query: Optional[s.ListEventsQuery] = None) -> Iterator[s.Event]:
        """
        All events there are now, oldest first unless the query says otherwise, page after page. Keep the id of the last one and come back
        later with it as `starting_after`: nothing is missed, and nothing comes twice. An InvalidRequestError with the code `resource_missing`
        says that the event of `starting_after` is no longer kept.
        """
        return _walk(self.list, query)

    def resend(self, event_id: str, params: Optional[s.EventResendParams] = None) -> Result[s.EventResend]:
        """
        Has the event delivered once more, under the same id: to all endpoints that want it, or to the one that the parameters name. Once for each
        call, whatever answers are lost.
        """
        return _call(self._exchanger, "POST", f"/v1/events/{_segment(event_id)}/resend", "event_resend", params=params)


class WebhookEndpoints:
    """Where events are delivered. You name an endpoint, so putting the same once more changes nothing and no operation is kept."""

    def __init__(self, exchanger: Exchanger) -> None:
        self._exchanger = exchanger

    def put(self, endpoint_id: str, params: s.WebhookEndpointParams) -> Result[s.WebhookEndpoint]:
        """
        Registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be repeated as often
        as you like, so call it whenever your program starts. The answer has the secret that signs.
        """
        return _call(self._exchanger, "PUT", f"/v1/webhook_endpoints/{_segment(endpoint_id)}", "webhook_endpoint", params=params)

    def create(self, params: s.WebhookEndpointCreateParams) -> Result[s.WebhookEndpoint]:
        """Registers an endpoint under a new id. One for each call, whatever answers are lost: a program that registers itself whenever it starts puts."""
        return _call(self._exchanger, "POST", "/v1/webhook_endpoints", "webhook_endpoint", params=params)

    def update(self, endpoint_id: str, params: s.WebhookEndpointUpdateParams) -> Result[s.WebhookEndpointUpdated]:
        """Changes what the parameters name. The answer has no secret."""
        return _call(self._exchanger, "POST", f"/v1/webhook_endpoints/{_segment(endpoint_id)}", "webhook_endpoint", params=params)

    def retrieve(self, endpoint_id: str) -> Result[s.WebhookEndpoint]:
        return _call(self._exchanger, "GET", f"/v1/webhook_endpoints/{_segment(endpoint_id)}", "webhook_endpoint")

    def list(self) -> Result[s.WebhookEndpointList]:
        """All endpoints, 50 at most, the newest first."""
        return _call(self._exchanger, "GET", "/v1/webhook_endpoints", "list")

    def delete(self, endpoint_id: str) -> Result[s.DeletedWebhookEndpoint]:
        """Forgets the endpoint and what is queued for it. A 404 may mean that an earlier attempt of yours did it."""
        return _call(self._exchanger, "DELETE", f"/v1/webhook_endpoints/{_segment(endpoint_id)}", "webhook_endpoint")

    def rotate_secret(self, endpoint_id: str) -> Result[s.WebhookEndpoint]:
        """Makes a new secret; the ones before sign, too, for another 24 hours. One for each call, whatever answers are lost."""
        return _call(self._exchanger, "POST", f"/v1/webhook_endpoints/{_segment(endpoint_id)}/rotate_secret", "webhook_endpoint")


def _call(
    exchanger: Exchanger,
    method: str,
    path: str,
    wanted: str,
    query: Optional[Mapping[str, object]] = None,
    params: Optional[Mapping[str, object]] = None,
) -> Result[Any]:
    """Makes a call for which no operation is kept: it does the same when it is repeated, or it is a POST, and has a key for its own attempts."""
    body = None if params is None else canonical(params).encode()
    key = str(uuid.uuid4()) if method == "POST" else None
    return result_of(exchanger.exchange(method, path + _query(query or {}), wanted, body, key))


def _segment(name: str) -> str:
    """A part of a path. Without one, or with one that an URL does not keep, something else than is meant would be asked for."""
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not an id")
    return quote(name, safe="")


def _query(query: Mapping[str, object]) -> str:
    pairs: dict[str, object] = {}
    for name, value in query.items():
        if value is None:  # sent as a text, it would list something else than is meant
            raise ValueError(f"{name} is None: leave it out instead")
        if isinstance(value, Mapping):
            pairs.update({f"{name}[{inner}]": bound for inner, bound in cast("Mapping[str, object]", value).items()})
        elif isinstance(value, (list, tuple)):
            pairs[f"{name}[]"] = value
        else:
            pairs[name] = value
    return "?" + urlencode(pairs, doseq=True) if pairs else ""


def _walk(page_of: Callable[[Any], Result[Any]], query: Optional[Mapping[str, object]]) -> Iterator[Any]:
    at: dict[str, object] = {"limit": _FULL_PAGE, **(query or {})}
    while True:
        page = page_of(at).data
        yield from page["data"]
        if not page["has_more"] or not page["data"]:
            return
        at["starting_after"] = page["data"][-1]["id"]
