"""The layer by itself: what is sent, kept and raised."""

from __future__ import annotations

import json
import pickle
import time
import unittest
from email.message import Message
from typing import Any, Callable
from unittest import mock

import paidonce
from paidonce.retry import pause_after, retry_after

from .server import CHARGE, LOST, PARAMS, Reply, Server, error

NOT_OURS = [b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"error":"x"}', b'{"error":null}', b'{"error":{"code":400,"message":"x"}}', b'{"message":"x"}']
"""Answers that are not from Paidonce."""
PAGES = [*NOT_OURS, b'{"id":"ch_', b"{}", b'{"status":"ok"}', b'{"id":"re_1","object":"refund"}', b'[{"object":"charge"}]', b'"charge"']
"""Nor are these what who makes a charge gets."""


class Unit(unittest.TestCase):
    def setUp(self) -> None:
        self.pauses: list[float] = []
        patch = mock.patch("paidonce.retry.time", mock.Mock(wraps=time, sleep=self.pauses.append))
        patch.start()
        self.addCleanup(patch.stop)

    def serve(self, *replies: Any) -> Server:
        server = Server(*replies)
        self.addCleanup(server.__exit__)
        return server


class Retries(Unit):
    def test_each_attempt_sends_the_same_key_and_the_same_bytes(self) -> None:
        for reply in (408, 409, 425, 429, 500, 502, 503, 504, LOST, Reply(201, cut=3), Reply(201, body=json.dumps(CHARGE).encode() + b"  ", cut=1)):
            server = self.serve(reply, reply, 201)
            made = server.client().charges.create("op", PARAMS)
            self.assertEqual(made.data["id"], "ch_1")
            self.assertEqual(len(server.sent), 3, reply)
            self.assertEqual(len(set(server.sent)), 1, reply)
            self.assertEqual(server.sent[0].body, b'{"amount":2000,"currency":"usd","source":"tok_visa"}')
            self.assertTrue(server.sent[0].key)

    def test_a_success_that_is_not_what_was_asked_for_is_no_answer(self) -> None:
        for page in PAGES:
            server = self.serve(Reply(200, body=page), 201)
            made = server.client().charges.create("op", PARAMS)
            self.assertEqual((made.data["id"], made.status, len(set(server.sent)), len(server.sent)), ("ch_1", 201, 1, 2), page)
            self.assertEqual(self.serve(Reply(200, body=page), 200).client().charges.retrieve("ch_1").data["id"], "ch_1", page)

    def test_a_call_that_moves_no_money_has_a_key_for_its_own_attempts(self) -> None:
        calls: "list[Callable[[paidonce.Paidonce], Any]]" = [
            lambda c: c.events.resend("evt_1", {"webhook_endpoint": "hook"}),
            lambda c: c.webhook_endpoints.rotate_secret("hook"),
            lambda c: c.webhook_endpoints.put("hook", {"url": "https://x/"}),
            lambda c: c.webhook_endpoints.delete("hook"),
        ]
        for call in calls:
            server = self.serve(LOST, 503, 200)
            call(server.client())
            call(server.client())
            self.assertEqual(len(set(server.sent[:3])), 1)
            keys = {sent.key for sent in server.sent}
            self.assertEqual(keys == {None}, server.sent[0].method != "POST")
            self.assertEqual(len(keys), 2 if server.sent[0].method == "POST" else 1, "another call is another resend, and another secret")

    def test_nothing_else_is_retried(self) -> None:
        for status in (301, 307, 400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 451):
            server = self.serve(Reply(status, {"Location": "/elsewhere"}))
            with self.assertRaises(paidonce.ApiError) as raised:
                server.client().charges.create("op", PARAMS)
            self.assertEqual(raised.exception.status, status)
            self.assertEqual(len(server.sent), 1)

    def test_a_5xx_that_says_stop_is_final(self) -> None:
        server = self.serve(Reply(500, body=error("api_error", "operation_parked")))
        with self.assertRaises(paidonce.ApiError) as raised:
            server.client().charges.create("op", PARAMS)
        self.assertEqual((raised.exception.code, len(server.sent)), ("operation_parked", 1))

    def test_retry_after_is_the_least_that_is_waited(self) -> None:
        self.serve(Reply(503, {"Retry-After": "7"}), 201).client().charges.create("op", PARAMS)
        self.assertGreaterEqual(self.pauses[0], 7)
        for value, pause in {"7": 7, "Thu, 01 Jan 1970 00:00:10 GMT": 6, "Thu, 01 Jan 1970 00:00:01 GMT": 0, "soon": 0, "-1": 0, "": 0}.items():
            headers = Message()
            headers["Retry-After"] = value
            self.assertEqual(retry_after(headers, now=4), pause, value)
        self.assertEqual(retry_after(Message()), 0)

    def test_pauses_grow_to_a_bound_and_are_random(self) -> None:
        self.assertNotEqual(pause_after(3, 0, 0), pause_after(3, 0, 0.5))
        self.assertNotEqual(pause_after(3, 0), pause_after(3, 0))
        self.assertLess(pause_after(0, 0, 1), pause_after(1, 0, 1))
        self.assertEqual(pause_after(10_000, 0, 1), 10)

    def test_more_than_the_deadline_is_not_waited(self) -> None:
        server = self.serve(Reply(503, {"Retry-After": "3600"}))
        with self.assertRaises(paidonce.DeadlineError):
            server.client().charges.create("op", PARAMS)
        self.assertEqual((self.pauses, len(server.sent)), ([], 1))

    def test_an_answer_that_does_not_end_is_none(self) -> None:
        server = self.serve(Reply(201, body=b'{"id":"ch_2"}' + b" " * 100), 201)
        with mock.patch("paidonce.transport._LONGEST_ANSWER", 50):
            self.assertEqual(server.client().charges.create("op", PARAMS).data["id"], "ch_1")
        self.assertEqual(len(server.sent), 2)

    def test_reads_are_retried(self) -> None:
        server = self.serve(LOST, 503, 200)
        self.assertEqual(server.client().charges.retrieve("ch_1").data["id"], "ch_1")
        self.assertEqual(len(server.sent), 3)


class Deadlines(unittest.TestCase):
    def test_the_operation_is_kept_under_its_key(self) -> None:
        with Server(Reply(503, {"Retry-After": "3600"})) as server:
            client = server.client()
            with self.assertRaises(paidonce.DeadlineError) as raised:
                client.charges.create("op", PARAMS)
            cause = raised.exception.__cause__
            assert isinstance(cause, paidonce.ApiError)
            self.assertEqual(cause.status, 503)
            self.assertEqual([o.key for o in client.operations.unfinished()], [server.sent[0].key])

    def test_nobody_listens(self) -> None:
        with Server(503) as server:
            client = server.client(deadline=0.3)
        with self.assertRaises(paidonce.DeadlineError) as raised:
            client.charges.create("op", PARAMS)
        self.assertIsInstance(raised.exception.__cause__, paidonce.ApiConnectionError)

    def test_an_answer_that_drips_does_not_prolong_the_attempt(self) -> None:
        # Each byte comes in time, the whole would take three quarters of a minute; without the limit it arrives and nothing is raised.
        with Server(Reply(201, body=b'{"id":"ch_1"}' + b" " * 300, drip=0.15)) as server:
            with self.assertRaises(paidonce.DeadlineError):
                server.client(deadline=1.0, attempt_timeout=0.4).charges.create("op", PARAMS)

    def test_an_operation_that_is_too_old_is_not_sent(self) -> None:
        with Server(201) as server:
            store = paidonce.MemoryStore()
            store.begin(paidonce.Operation("op", "key", "/v1/charges", "{}", int((time.time() - 23 * 3600 - 1) * 1000)))
            store.begin(paidonce.Operation("young", "key", "/v1/charges", "{}", int((time.time() - 22 * 3600) * 1000)))
            with self.assertRaises(paidonce.StaleOperationError):
                server.client(store=store).operations.resume("op")
            self.assertEqual(server.sent, [])
            server.client(store=store).operations.resume("young")


class Calls(Unit):
    def test_paths_and_queries(self) -> None:
        server = self.serve(200)
        client = server.client()
        client.charges.list({"limit": 3, "created": {"gte": 1, "lt": 2}, "customer": "cus_ü&"})
        list(client.refunds.all({"charge": "ch_1"}))
        client.idempotency_keys.retrieve("a/b ü?")
        client.events.list({"type": "charge.succeeded"})
        client.events.retrieve("evt_1")
        client.events.resend("evt_1")
        client.events.resend("evt_1", {"webhook_endpoint": "hook"})
        client.webhook_endpoints.put("hook", {"url": "https://shop.example.com", "enabled_events": ["*"]})
        client.webhook_endpoints.list()
        client.webhook_endpoints.retrieve("hook")
        client.webhook_endpoints.rotate_secret("hook")
        client.webhook_endpoints.delete("hook")
        self.assertEqual(
            [f"{sent.method} {sent.path}" for sent in server.sent],
            [
                "GET /v1/charges?limit=3&created%5Bgte%5D=1&created%5Blt%5D=2&customer=cus_%C3%BC%26",
                "GET /v1/refunds?limit=100&charge=ch_1",
                "GET /v1/idempotency_keys/a%2Fb%20%C3%BC%3F",
                "GET /v1/events?type=charge.succeeded",
                "GET /v1/events/evt_1",
                "POST /v1/events/evt_1/resend",
                "POST /v1/events/evt_1/resend",
                "PUT /v1/webhook_endpoints/hook",
                "GET /v1/webhook_endpoints",
                "GET /v1/webhook_endpoints/hook",
                "POST /v1/webhook_endpoints/hook/rotate_secret",
                "DELETE /v1/webhook_endpoints/hook",
            ],
        )
        self.assertEqual([sent.body for sent in server.sent[5:7]], [b"", b'{"webhook_endpoint":"hook"}'])
        self.assertEqual(server.sent[7].body, b'{"enabled_events":["*"],"url":"https://shop.example.com"}')

    def test_pages(self) -> None:
        pages = [(True, ["a", "b"]), (True, ["c"]), (False, [])]
        said = [{"object": "list", "has_more": more, "data": [{"id": name} for name in names]} for more, names in pages]
        server = self.serve(*(Reply(200, body=json.dumps(page).encode()) for page in said))
        self.assertEqual([charge["id"] for charge in server.client().charges.all({"limit": 2})], ["a", "b", "c"])
        self.assertEqual([sent.path[len("/v1/charges?limit=2") :] for sent in server.sent], ["", "&starting_after=b", "&starting_after=c"])

    def test_what_would_ask_for_something_else(self) -> None:
        server = self.serve(200)
        client = server.client()
        calls: "list[Callable[[str], Any]]" = [
            client.charges.retrieve,
            lambda name: client.charges.capture("op", name),
            lambda name: client.charges.cancel("op", name),
            client.refunds.retrieve,
            client.idempotency_keys.retrieve,
            client.events.retrieve,
            client.events.resend,
            lambda name: client.webhook_endpoints.put(name, {"url": "https://x/"}),
            client.webhook_endpoints.retrieve,
            client.webhook_endpoints.delete,
            client.webhook_endpoints.rotate_secret,
        ]
        for call in calls:
            for name in ("", ".", ".."):
                with self.assertRaises(ValueError):
                    call(name)
        self.assertEqual((server.sent, client.operations.unfinished()), ([], []))
        with self.assertRaises(ValueError):
            client.charges.list({"customer": None})  # type: ignore[typeddict-item]
        for url, key in (("127.0.0.1:8080", "k"), ("ftp://host", "k"), ("http://u:p@host", "k"), ("http://h?x", "k"), ("http://h", ""), ("http://h", "k\n"), ("http://h", "ключ")):
            with self.assertRaises(ValueError):
                paidonce.Paidonce(url, key, paidonce.MemoryStore())
        for limits in ({"deadline": 0.0}, {"attempt_timeout": -1.0}, {"deadline": float("nan")}, {"max_age": float("nan")}):
            with self.assertRaises(ValueError):
                paidonce.Paidonce("http://h", "k", paidonce.MemoryStore(), **limits)

    def test_an_installation_below_a_path(self) -> None:
        server = self.serve(201)
        client = paidonce.Paidonce(server.url + "/pay/", "sk_x", paidonce.MemoryStore())
        client.charges.create("op", PARAMS)
        client.charges.retrieve("ch_1")
        self.assertEqual([sent.path for sent in server.sent], ["/pay/v1/charges", "/pay/v1/charges/ch_1"])

    def test_errors(self) -> None:
        kinds = {
            "card_error": paidonce.CardError,
            "idempotency_error": paidonce.IdempotencyError,
            "invalid_request_error": paidonce.InvalidRequestError,
            "authentication_error": paidonce.AuthenticationError,
            "rate_limit_error": paidonce.RateLimitError,
            "api_error": paidonce.ApiError,
            "of_a_later_version": paidonce.ApiError,
        }
        for kind, expected in kinds.items():
            reply = Reply(404, {"Request-Id": "req_1", "Idempotent-Replayed": "true"}, error(kind, param="p", charge="ch_1"))
            with self.assertRaises(paidonce.ApiError) as raised:
                self.serve(reply).client().charges.retrieve("ch_1")
            for e in (raised.exception, pickle.loads(pickle.dumps(raised.exception))):
                self.assertIs(type(e), expected)
                self.assertEqual((e.status, e.type, e.code, e.param, e.charge, e.advice, e.request_id, e.replayed), (404, kind, "c", "p", "ch_1", "stop", "req_1", True))
                self.assertEqual(str(e), "m (404 c req_1)")
                self.assertEqual(repr(e), f"{expected.__name__}('m (404 c req_1)')")
        for page in NOT_OURS:
            with self.assertRaises(paidonce.ApiError) as raised:
                self.serve(Reply(404, body=page)).client().charges.retrieve("ch_1")
            self.assertEqual((str(raised.exception), raised.exception.type), ("The server answered 404. (404)", None))
            self.assertEqual(repr(raised.exception), "ApiError('The server answered 404. (404)')")

    def test_no_secret_is_shown(self) -> None:
        client = paidonce.Paidonce("http://127.0.0.1:1", "sk_secret", paidonce.MemoryStore(), deadline=0.1)
        with self.assertRaises(paidonce.DeadlineError) as raised:
            client.charges.create("op", PARAMS)
        operation = client.operations.unfinished()[0]
        for shown in (repr(client), repr(client.operations), str(raised.exception), repr(raised.exception), repr(raised.exception.__cause__), repr(operation)):
            self.assertNotIn("sk_secret", shown)
            self.assertNotIn("tok_visa", shown)
