"""Against a real server with the simulated provider; e2e/sdk_python_test.go starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from dataclasses import replace
from typing import Any

import paidonce

URL, API_KEY, SIM = (os.environ.get(name, "") for name in ("PAIDONCE_URL", "PAIDONCE_API_KEY", "SIM_URL"))
FOLDER = tempfile.mkdtemp(prefix="paidonce-")
STORE = paidonce.FileStore(FOLDER)


def client(**more: Any) -> paidonce.Paidonce:
    more = {"store": STORE, "api_key": API_KEY, **more}
    return paidonce.Paidonce(URL, **more)


def params(**more: Any) -> Any:
    return {"amount": 2000, "currency": "usd", "source": "tok_visa", "metadata": {"order": "6735"}, **more}


def switch(path: str, body: Any = None) -> Any:
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{SIM}/_sim/{path}", sent, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def strike(**fault: Any) -> None:
    switch("faults", {"match": {"method": "POST", "path": "/v1/charges"}, "count": 1, "fault": fault})


@unittest.skipUnless(URL, "PAIDONCE_URL is not set")
class Live(unittest.TestCase):
    def test_create_and_create_again(self) -> None:
        made = client().charges.create("order-1", params())
        self.assertEqual((made.status, made.data["status"], made.replayed), (201, "succeeded", False))
        self.assertRegex(made.request_id or "", "^req_")
        self.assertEqual(made.headers["location"], f"/v1/charges/{made.data['id']}")
        self.assertEqual(client().charges.create("order-1", params()).data, made.data)
        # Another program that knows only the key gets the server's replay.
        kept = STORE.find("order-1")
        assert kept is not None
        elsewhere = paidonce.MemoryStore()
        elsewhere.begin(replace(kept, answer=None))
        replay = client(store=elsewhere).charges.create("order-1", params())
        self.assertEqual((replay.data, replay.replayed), (made.data, True))
        self.assertEqual((replay.headers["Idempotent-Replayed"], replay.headers["Original-Request"]), ("true", made.request_id))
        self.assertEqual(client().idempotency_keys.retrieve(kept.key).data["resource"], made.data["id"])

    def test_a_key_that_stands_for_another_request(self) -> None:
        client().charges.create("order-2", params())
        kept = STORE.find("order-2")
        assert kept is not None
        stolen = paidonce.MemoryStore()
        stolen.begin(replace(kept, body=json.dumps(params(amount=1)), answer=None))
        with self.assertRaises(paidonce.IdempotencyError) as raised:
            client(store=stolen).operations.resume("order-2")
        self.assertEqual((raised.exception.status, raised.exception.code), (422, "idempotency_key_reused"))

    def test_a_decline_is_final(self) -> None:
        for replayed in (False, True):
            with self.assertRaises(paidonce.CardError) as raised:
                client().charges.create("order-3", params(source="tok_chargeDeclinedInsufficientFunds"))
            e = raised.exception
            self.assertEqual((e.status, e.decline_code, e.advice, e.replayed), (402, "insufficient_funds", "fix_and_use_new_key", replayed))

    def test_in_use_then_its_answer(self) -> None:
        strike(type="delay", delay_ms=1500)
        before = switch("stats")
        made: list[paidonce.Result[Any]] = []
        first = threading.Thread(target=lambda: made.append(client().charges.create("order-4", params())))
        first.start()
        while switch("stats")["charge_requests"] == before["charge_requests"]:
            time.sleep(0.01)
        statuses: list[int] = []
        send = paidonce.HttpTransport()

        def watched(*request: Any) -> paidonce.Response:
            answer = send(*request)
            statuses.append(answer.status)
            return answer

        second = client(transport=watched).charges.create("order-4", params())
        first.join()
        self.assertEqual((statuses[0], statuses[-1], second.replayed), (409, 201, True))
        self.assertEqual(second.data, made[0].data)
        self.assertEqual(switch("stats")["charges"], before["charges"] + 1)

    def test_lost_answers(self) -> None:
        for kind in ("drop_after", "drop_before", "garbage"):
            before = switch("stats")["charges"]
            strike(type=kind)
            self.assertEqual(client().charges.create(f"order-5-{kind}", params()).data["status"], "succeeded")
            self.assertEqual(switch("stats")["charges"], before + 1)

    def test_capture_refund_lists(self) -> None:
        held = client().charges.create("order-6", params(capture=False, amount=900)).data
        self.assertEqual(client().charges.capture("order-6/capture", held["id"], {"amount": 800}).data["amount_captured"], 800)
        refund = client().refunds.create("order-6/refund", {"charge": held["id"], "amount": 300}).data
        self.assertEqual(refund["status"], "succeeded")
        self.assertEqual(client().refunds.retrieve(refund["id"]).data, refund)
        self.assertEqual(client().charges.retrieve(held["id"]).data["amount_refunded"], 300)
        whole = client().charges.create("order-6b", params(capture=False)).data
        self.assertEqual(client().charges.capture("order-6b/capture", whole["id"]).data["amount_captured"], 2000)
        hold = client().charges.create("order-6c", params(capture=False)).data
        gone = client().charges.cancel("order-6c/cancel", hold["id"]).data
        self.assertEqual((gone["captured"], gone["refunded"], gone["amount_refunded"]), (False, True, 2000))
        for i in range(3):
            client().charges.create(f"order-7-{i}", params(amount=100 + i, metadata={"seven": "é"}))
        newest = [charge["amount"] for charge in client().charges.all({"limit": 2, "created": {"gte": 1}}) if "seven" in charge["metadata"]]
        self.assertEqual(newest, [102, 101, 100])
        every = [charge["id"] for charge in client().charges.all({"limit": 2})]
        self.assertGreaterEqual(len(every), 5)
        self.assertEqual(len(set(every)), len(every))
        self.assertTrue(client().charges.list({"limit": 1, "status": "succeeded"}).data["has_more"])
        self.assertEqual([r["id"] for r in client().refunds.list({"charge": held["id"]}).data["data"]], [refund["id"]])
        self.assertEqual([r["id"] for r in client().refunds.all({"charge": held["id"]})], [refund["id"]])

    def test_refusals(self) -> None:
        with self.assertRaises(paidonce.InvalidRequestError) as raised:
            client().charges.retrieve("ch_nothing")
        self.assertEqual((raised.exception.status, raised.exception.code), (404, "resource_missing"))
        with self.assertRaises(paidonce.AuthenticationError):
            client(api_key="sk_wrong").charges.list()
        with self.assertRaises(paidonce.InvalidRequestError) as raised:
            client().charges.create("order-8", params(amount=0))
        self.assertEqual((raised.exception.status, raised.exception.param), (400, "amount"))
        # The name is free for the corrected request.
        held = client().charges.create("order-8", params(capture=False)).data["id"]
        capture, refund = (lambda charge: client().charges.capture("order-8/capture", charge)), (lambda **p: client().refunds.create("order-8/refund", p))
        refusals: list[Any] = []
        for refused in (
            lambda: capture("ch_nothing"),
            lambda: refund(charge="ch_nothing"),
            lambda: refund(charge=held, amount=1),
            lambda: capture(held),
            lambda: refund(charge=held, amount=2001),
            lambda: refund(charge=held),
        ):
            try:
                refusals.append(refused().data["object"])
            except paidonce.InvalidRequestError as e:
                refusals.append((e.status, e.code))
        missing = (404, "resource_missing")
        self.assertEqual(refusals, [missing, missing, (400, "charge_not_captured"), "charge", (400, "amount_too_large"), "refund"])
        # Who asks is at fault, so the same request goes on under its key.
        with self.assertRaises(paidonce.AuthenticationError):
            client(api_key="sk_wrong").charges.create("order-8b", params())
        begun = STORE.find("order-8b")
        client().charges.create("order-8b", params())
        ended = STORE.find("order-8b")
        assert begun and ended
        self.assertEqual(begun.key, ended.key)

    def test_what_moves_no_money_is_done_once_for_each_call_as_well(self) -> None:
        client().webhook_endpoints.put("once", {"url": "http://127.0.0.1:9/"})
        send = paidonce.HttpTransport()
        secrets: list[str] = []

        def losing(*request: Any) -> paidonce.Response:
            answer = send(*request)
            secrets.append(json.loads(answer.body)["secret"])
            if len(secrets) == 1:
                raise OSError("the answer is lost")
            return answer

        rotated = client(transport=losing).webhook_endpoints.rotate_secret("once")
        self.assertEqual((rotated.replayed, secrets), (True, [rotated.data["secret"]] * 2))
        self.assertEqual(client().webhook_endpoints.retrieve("once").data["secret"], rotated.data["secret"])
        self.assertNotEqual(client().webhook_endpoints.rotate_secret("once").data["secret"], rotated.data["secret"])
        client().webhook_endpoints.delete("once")

    def test_events_and_endpoints(self) -> None:
        made = client().charges.create("order-9", params()).data
        events = [e for e in client().events.all({"limit": 2, "type": "charge.succeeded"}) if e["data"]["object"]["id"] == made["id"]]
        self.assertEqual([(e["type"], e["sequence"], e["data"]["object"]) for e in events], [("charge.succeeded", 1, made)])
        self.assertEqual(client().events.retrieve(events[0]["id"]).data, events[0])
        endpoints = client().webhook_endpoints
        put = endpoints.put("hook", {"url": "http://127.0.0.1:9/", "enabled_events": ["charge.refunded"], "description": "Shop"})
        self.assertEqual((put.status, endpoints.put("hook", {"url": "http://127.0.0.1:9/"}).status), (201, 200))
        self.assertEqual(endpoints.retrieve("hook").data["enabled_events"], ["*"])
        self.assertIn("hook", [e["id"] for e in endpoints.list().data["data"]])
        self.assertNotEqual(endpoints.rotate_secret("hook").data["secret"], put.data["secret"])
        self.assertEqual(client().events.resend(events[0]["id"]).data["deliveries"], len(endpoints.list().data["data"]))
        endpoints.put("picky", {"url": "http://127.0.0.1:9/", "enabled_events": ["charge.refunded"]})
        self.assertEqual(client().events.resend(events[0]["id"], {"webhook_endpoint": "picky"}).data["deliveries"], 1)
        self.assertTrue(endpoints.delete("hook").data["deleted"])
        with self.assertRaises(paidonce.InvalidRequestError):
            endpoints.retrieve("hook")

    def test_kill_between_and_within_attempts_then_resume(self) -> None:
        faults: list[dict[str, Any]] = [{"type": "drop_after"}, {"type": "drop_before"}, {"type": "delay", "delay_ms": 300}]
        for fault in faults:
            operation = f"crash-{fault['type']}"
            before = self.killed(operation, fault)
            kept = [o for o in client().operations.unfinished() if o.name == operation]
            self.assertEqual(len(kept), 1, "the key was kept before the first attempt")
            resumed = client().operations.resume(operation)
            self.assertEqual((resumed.status, resumed.data["status"]), (201, "succeeded"))
            self.assertEqual(switch("stats")["charges"], before + 1)
            found = STORE.find(operation)
            assert found is not None
            self.assertEqual(found.key, kept[0].key)

    def killed(self, operation: str, fault: Any) -> int:
        """Runs a program that charges, and kills it at once when the provider has been asked."""
        before = switch("stats")
        strike(**fault)
        child = subprocess.Popen([sys.executable, "-m", "tests.crash", FOLDER, operation])
        while switch("stats")["charge_requests"] == before["charge_requests"]:
            self.assertIsNone(child.poll(), "it ended by itself")
            time.sleep(0.01)
        child.kill()
        child.wait()
        return int(before["charges"])
