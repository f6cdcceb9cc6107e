"""What a type checker refuses. It is never run: a comment below that has nothing to excuse is an error of its own."""

from paidonce import Paidonce


def misuse(paidonce: Paidonce) -> None:
    paidonce.charges.create("op", {"amount": "2000", "currency": "usd"})  # pyright: ignore[reportArgumentType]
    paidonce.charges.create("op", {"currency": "usd", "source": "tok_visa"})  # pyright: ignore[reportArgumentType]
    paidonce.charges.create("op", {"amount": 2000, "currency": "usd", "sauce": "tok_visa"})  # pyright: ignore[reportArgumentType]
    paidonce.charges.create({"amount": 2000, "currency": "usd"})  # pyright: ignore[reportCallIssue]
    paidonce.charges.list({"status": "paid"})  # pyright: ignore[reportArgumentType]
    charge = paidonce.charges.retrieve("ch_1").data
    charge["amont"]  # pyright: ignore[reportGeneralTypeIssues]
    charge["outcome"]["type"]  # pyright: ignore[reportOptionalSubscript]
    charge["next_action"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    print(charge["status"] == "done")  # pyright: ignore[reportUnnecessaryComparison]


def narrowing(paidonce: Paidonce) -> int:
    about = paidonce.events.retrieve("evt_1").data["data"]["object"]
    if about["object"] == "charge":
        return about["amount_refunded"]
    return len(about["reason"] or "") if about["object"] == "refund" else 0
