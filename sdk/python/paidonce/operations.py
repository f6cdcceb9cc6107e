"""
The client's half of the contract: a key is made once for each operation and kept before the first attempt, and each attempt sends the bytes
of the first, also after a crash.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.message import Message
from typing import Any, Generic, Optional, TypeVar, Union

from .errors import ApiError, OperationMismatchError, StaleOperationError, UnknownOperationError, error_of
from .retry import Exchange, Exchanger
from .schemas import Charge, ChargeParams, Refund
from .store import Answer, Operation, OperationStore

T = TypeVar("T")


@dataclass(frozen=True)
class Result(Generic[T]):
    """An object and what the answer said besides."""

    data: T
    status: int
    headers: Message
    """Names in any letter case: `result.headers["Original-Request"]`; None for one that is not there."""
    request_id: Optional[str]
    replayed: bool
    """Whether the answer was stored by an earlier request: at the server, or here."""


class Operations:
    """Safe for concurrent use, as far as the store is."""

    def __init__(self, exchanger: Exchanger, store: OperationStore, max_age: float) -> None:
        self._exchanger = exchanger
        self._store = store
        self._max_age = max_age

    def run(self, name: str, path: str, params: Mapping[str, object]) -> Result[Any]:
        """Begins the operation, or goes on with it when it was begun."""
        fresh = new_operation(name, path, params)
        kept = self._store.begin(fresh)
        if (kept.path, kept.body) != (fresh.path, fresh.body):
            raise OperationMismatchError(f"The operation {name} was begun with another request. Nothing was sent.")
        return self._drive(kept, first=kept.key == fresh.key)

    def resume(self, name: str) -> Result[Union[Charge, Refund]]:
        """Goes on with an operation that was begun, without its parameters. Raises UnknownOperationError when it was not."""
        kept = self._store.find(name)
        if kept is None:
            raise UnknownOperationError(f"There is no operation {name}.")
        return self._drive(kept, first=False)

    def unfinished(self) -> list[Operation]:
        """Returns the operations without an answer: resume each of them when your program starts."""
        return self._store.unfinished()

    def forget(self, name: str) -> None:
        """Lets the name be used anew, under a new key. Only for an operation whose outcome you know."""
        self._store.forget(name)

    def _drive(self, operation: Operation, first: bool) -> Result[Any]:
        if operation.answer is not None:
            return _known(operation.answer)
        if time.time() - operation.begun / 1000 > self._max_age:
            raise StaleOperationError(f"The operation {operation.name} was begun too long ago to be sent again. Find out what became of it.")
        wanted = "charge"
        if operation.path == "/v1/refunds":
            wanted = "refund"
        elif operation.path.startswith("/v1/payment_intents"):
            wanted = "payment_intent"
        exchange = self._exchanger.exchange("POST", operation.path, wanted, operation.body.encode(), operation.key)
        error = exchange.error
        if error is None or (error.status == 402 and error.type == "card_error"):
            answer = Answer(exchange.status, exchange.headers["Request-Id"] or "", exchange.body.decode())
            self._store.finish(replace(operation, answer=answer))
        elif _refuses(error) and (error.replayed or (first and not exchange.uncertain)):
            # The corrected request may have the name, under a new key, as nothing was done under this one, nor will be: its only attempt was
            # refused, or the refusal is stored. A refusal after an attempt without an answer proves less, though the server looks at a key that
            # is taken before it refuses a capture or a refund: it says that nothing was begun so far. The lost attempt may still arrive, and pass
            # when the charge has changed by then, or another version of the server reads it. Under the same key that is no harm, beside a new
            # one it would be the second payment.
            self._store.forget(operation.name)
        return result_of(exchange)


def _refuses(error: ApiError) -> bool:
    """
    Reports whether Paidonce itself finds fault with the request, and not with who asks, as by a 401: then the same request is right once that is
    fixed. A 404 is of the second kind, unless it is what the request names that is not there.
    """
    missing = error.status == 404 and error.code == "resource_missing"
    return error.type == "invalid_request_error" and (error.advice == "fix_and_use_new_key" or missing)


def result_of(exchange: Exchange) -> Result[Any]:
    """Raises the error of an exchange that has one."""
    if exchange.error is not None:
        raise exchange.error
    headers = exchange.headers
    return Result(exchange.data, exchange.status, headers, headers["Request-Id"], headers["Idempotent-Replayed"] == "true")


def _known(answer: Answer) -> Result[Any]:
    """An answer that is kept here is given again without asking: the server forgets its keys one day."""
    headers = Message()
    headers["Request-Id"] = answer.request_id
    headers["Idempotent-Replayed"] = "true"
    if answer.status >= 300:
        raise error_of(answer.status, headers, answer.body.encode())
    return Result(json.loads(answer.body), answer.status, headers, answer.request_id, True)


def new_operation(name: str, path: str, params: Mapping[str, object]) -> Operation:
    """
    Makes an operation to be kept by `begin` of a store, such as one within the transaction that makes your order; `resume` sends it later.
    Raises TypeError or ValueError for what JSON does not have.
    """
    if not name:
        raise ValueError("an operation needs a name")
    return Operation(name, str(uuid.uuid4()), path, canonical(params), time.time_ns() // 1_000_000)


def begin_charge(store: OperationStore, name: str, params: ChargeParams) -> None:
    """
    Keeps a charge to be made and sends nothing: with a store within the transaction that makes your order, the order and its payment are
    begun together or not at all. Resume it after the commit. Raises OperationMismatchError when the name was begun with another request.
    """
    fresh = new_operation(name, "/v1/charges", params)
    kept = store.begin(fresh)
    if (kept.path, kept.body) != (fresh.path, fresh.body):
        raise OperationMismatchError(f"The operation {name} was begun with another request.")


def canonical(value: object) -> str:
    """JSON with the members in one order, so that the same parameters are the same bytes however the caller wrote them."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text.encode()  # raises for half a character, now rather than at each attempt
    return text
