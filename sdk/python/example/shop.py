"""A shop that charges, refunds and lists, and goes on where it was when it is started again."""

from __future__ import annotations

import os
from typing import Optional

from paidonce import CardError, DeadlineError, FileStore, Paidonce, PaidonceError
from paidonce.schemas import Charge

paidonce = Paidonce(
    os.environ["PAIDONCE_URL"],
    os.environ["PAIDONCE_API_KEY"],
    store=FileStore(os.environ.get("PAYMENTS", ".payments")),
)


def pay(order: str, source: str) -> Optional[Charge]:
    try:
        result = paidonce.charges.create(order, {"amount": 2000, "currency": "usd", "source": source, "metadata": {"order": order}})
    except CardError as declined:
        print(order, "declined:", declined.decline_code)
    except DeadlineError:
        print(order, "no answer yet; it goes on at the next start")
    else:
        print(order, result.data["id"], result.data["status"], "(known already)" if result.replayed else "")
        return result.data
    return None


# First of all, what an earlier run left without an answer.
for operation in paidonce.operations.unfinished():
    try:
        resumed = paidonce.operations.resume(operation.name)
    except PaidonceError as error:  # declined, say, or still unknown; the others are not to wait for it
        print(operation.name, error)
    else:
        print("resumed", operation.name, resumed.data["id"])

charge = pay("order-1", "tok_visa")
pay("order-1", "tok_visa")
pay("order-2", "tok_chargeDeclinedInsufficientFunds")

if charge:
    refund = paidonce.refunds.create("order-1/refund", {"charge": charge["id"], "amount": 500})
    print("refunded", refund.data["amount"], "request", refund.request_id)

for listed in paidonce.charges.all({"limit": 10}):
    print(listed["id"], listed["amount"], listed["status"])
