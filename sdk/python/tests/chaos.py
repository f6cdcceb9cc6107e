"""Charges often, while the server is killed and the provider drops answers; e2e/sdk_python_test.go runs it and counts the charges."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

from paidonce import FileStore, Paidonce

paidonce = Paidonce(os.environ["PAIDONCE_URL"], os.environ["PAIDONCE_API_KEY"], FileStore(tempfile.mkdtemp()), deadline=300.0)


def pay(number: int) -> str:
    return paidonce.charges.create(f"chaos-{number}", {"amount": 100 + number, "currency": "usd", "source": "tok_visa"}).data["id"]


with ThreadPoolExecutor(8) as threads:
    ids = set()
    for paid in as_completed([threads.submit(pay, number) for number in range(int(os.environ["CHARGES"]))]):
        ids.add(paid.result())
        print("paid", len(ids), flush=True)
print("unfinished", len(paidonce.operations.unfinished()))
print("charges", len(ids), flush=True)
