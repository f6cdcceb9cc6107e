"""The layer by itself: what is sent, kept and raised."""

from __future__ import annotations

import pickle
import threading
import time
import unittest
from email.message import Message
from typing import Any
from unittest import mock

import paidonce
from paidonce.retry import pause_after, retry_after

from .server import CHARGE, LOST, PARAMS, Reply, Server, error

REFUSED = Reply(400, body=error("invalid_request_error", "parameter_invalid", "fix_and_use_new_key"))
DECLINED = Reply(402, body=error("card_error", "card_declined", "fix_and_use_new_key", decline_code="insufficient_funds"))


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
        for reply in (408, 409, 425, 429, 500, 502, 503, 504, LOST, Reply(201, cut=3), Reply(200, body=b"<html>"), Reply(201, body=b'{"id":"ch_2"}  ', cut=1)):
            server = self.serve(reply, reply, 201)
            made = server.client().charges.create("op", PARAMS)
            self.assertEqual(made.data["id"], "ch_1")
            self.assertEqual(len(server.sent), 3, reply)
            self.assertEqual(len(set(server.sent)), 1, reply)
            self.assertEqual(server.sent[0].body, b'{"amount":2000,"currency":"usd","source":"tok_visa"}')
            self.assertTrue(server.sent[0].key)

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


class Operations(Unit):
    def test_another_request_under_the_name_is_not_sent(self) -> None:
        server = self.serve(201)
        client = server.client()
        client.charges.create("op", PARAMS)
        with self.assertRaises(paidonce.OperationMismatchError):
            client.charges.create("op", {**PARAMS, "amount": 1})
        again = client.charges.create("op", {"source": "tok_visa", "currency": "usd", "amount": 2000})
        self.assertTrue(again.replayed)
        self.assertEqual(again.data, CHARGE)
        self.assertEqual(len(server.sent), 1, "an answer that is known is not asked for again")

    def test_the_same_parameters_for_another_charge_are_another_request(self) -> None:
        client = self.serve(200).client()
        client.charges.capture("op", "ch_1")
        with self.assertRaises(paidonce.OperationMismatchError):
            client.charges.capture("op", "ch_2")

    def test_a_decline_is_kept_like_a_success(self) -> None:
        server = self.serve(DECLINED, 201)
        client = server.client()
        for replayed in (False, True):
            with self.assertRaises(paidonce.CardError) as raised:
                client.charges.create("op", PARAMS)
            self.assertEqual((raised.exception.decline_code, raised.exception.replayed), ("insufficient_funds", replayed))
        self.assertEqual(len(server.sent), 1)
        self.assertEqual(client.operations.unfinished(), [])

    def test_a_402_of_a_proxy_is_not_a_decline(self) -> None:
        client = self.serve(Reply(402, body=b"pay your proxy"), 201).client()
        with self.assertRaises(paidonce.ApiError):
            client.charges.create("op", PARAMS)
        self.assertEqual(client.charges.create("op", PARAMS).status, 201)

    def test_a_refusal_frees_the_name_only_when_nothing_can_have_moved(self) -> None:
        server = self.serve(REFUSED, 201)
        client = server.client()
        with self.assertRaises(paidonce.InvalidRequestError):
            client.charges.create("op", PARAMS)
        client.charges.create("op", {**PARAMS, "amount": 1})
        self.assertNotEqual(server.sent[0].key, server.sent[1].key)
        for before in (LOST, 503, Reply(201, cut=1)):
            client = self.serve(before, REFUSED).client()
            with self.assertRaises(paidonce.InvalidRequestError):
                client.charges.create("op", PARAMS)
            self.assertEqual(len(client.operations.unfinished()), 1, before)

    def test_a_refusal_of_a_resumed_operation_keeps_the_key(self) -> None:
        store = paidonce.MemoryStore()
        paidonce.begin_charge(store, "op", PARAMS)
        server = self.serve(REFUSED)
        client = server.client(store=store)
        with self.assertRaises(paidonce.InvalidRequestError):
            client.charges.create("op", PARAMS)
        with self.assertRaises(paidonce.InvalidRequestError):
            client.operations.resume("op")
        self.assertEqual(store.unfinished()[0].key, server.sent[1].key)
        self.assertEqual(server.sent[0], server.sent[1])

    def test_the_key_is_kept_before_the_first_attempt(self) -> None:
        store = paidonce.MemoryStore()

        def transport(_method: str, _url: str, headers: Any, body: Any, _limit: float) -> paidonce.Response:
            kept = store.find("op")
            assert kept is not None
            self.assertEqual((kept.key, kept.body.encode()), (headers["Idempotency-Key"], body))
            return paidonce.Response(201, Message(), b'{"id":"ch_1"}')

        client = paidonce.Paidonce("http://paidonce.test", "sk_x", store, transport=transport)
        self.assertEqual(client.charges.create("op", PARAMS).data["id"], "ch_1")

    def test_nothing_is_sent_when_nothing_can_be_kept(self) -> None:
        class Full(paidonce.MemoryStore):
            def begin(self, operation: paidonce.Operation) -> paidonce.Operation:
                raise OSError("no space left")

        server = self.serve(201)
        with self.assertRaisesRegex(OSError, "no space left"):
            server.client(store=Full()).charges.create("op", PARAMS)
        self.assertEqual(server.sent, [])

    def test_what_json_does_not_have_is_refused_before_it_is_kept(self) -> None:
        client = self.serve(201).client()
        for wrong in (float("nan"), object(), "\ud800", b"2000"):
            with self.assertRaises((TypeError, ValueError)):
                client.charges.create("op", {**PARAMS, "description": wrong})
        with self.assertRaises(ValueError):
            client.charges.create("", PARAMS)
        self.assertEqual(client.operations.unfinished(), [])

    def test_forget_and_unknown(self) -> None:
        server = self.serve(201)
        client = server.client()
        client.charges.create("op", PARAMS)
        client.operations.forget("op")
        client.charges.create("op", PARAMS)
        self.assertNotEqual(server.sent[0].key, server.sent[1].key)
        with self.assertRaises(paidonce.UnknownOperationError):
            client.operations.resume("none")
        with self.assertRaises(paidonce.OperationMismatchError):
            store = paidonce.MemoryStore()
            paidonce.begin_charge(store, "op", PARAMS)
            paidonce.begin_charge(store, "op", {**PARAMS, "amount": 1})

    def test_threads_share_one_key(self) -> None:
        server = self.serve(201)
        client = server.client()
        threads = [threading.Thread(target=client.charges.create, args=("op", PARAMS)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({sent.key for sent in server.sent}), 1)


class Calls(Unit):
    def test_paths_and_queries(self) -> None:
        server = self.serve(Reply(200, body=b'{"object":"list","url":"","has_more":false,"data":[]}'))
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
        pages = [b'{"has_more":true,"data":[{"id":"a"},{"id":"b"}]}', b'{"has_more":true,"data":[{"id":"c"}]}', b'{"has_more":false,"data":[]}']
        server = self.serve(*(Reply(200, body=page) for page in pages))
        self.assertEqual([charge["id"] for charge in server.client().charges.all({"limit": 2})], ["a", "b", "c"])
        self.assertEqual([sent.path[len("/v1/charges?limit=2") :] for sent in server.sent], ["", "&starting_after=b", "&starting_after=c"])

    def test_what_would_ask_for_something_else(self) -> None:
        client = self.serve(200).client()
        with self.assertRaises(ValueError):
            client.charges.retrieve("")
        with self.assertRaises(ValueError):
            client.charges.list({"customer": None})  # type: ignore[typeddict-item]
        for url, key in (("127.0.0.1:8080", "k"), ("ftp://host", "k"), ("http://u:p@host", "k"), ("http://h?x", "k"), ("http://h", ""), ("http://h", "k\n"), ("http://h", "ключ")):
            with self.assertRaises(ValueError):
                paidonce.Paidonce(url, key, paidonce.MemoryStore())
        for limits in ({"deadline": 0.0}, {"attempt_timeout": -1.0}):
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
        for page in (b"<html>", b"[]", b'{"error":"x"}', b"null", b"\xff"):
            with self.assertRaises(paidonce.ApiError) as raised:
                self.serve(Reply(404, body=page)).client().charges.retrieve("ch_1")
            self.assertEqual((str(raised.exception), raised.exception.type), ("The server answered 404. (404)", None))

    def test_no_secret_is_shown(self) -> None:
        client = paidonce.Paidonce("http://127.0.0.1:1", "sk_secret", paidonce.MemoryStore(), deadline=0.1)
        with self.assertRaises(paidonce.DeadlineError) as raised:
            client.charges.create("op", PARAMS)
        operation = client.operations.unfinished()[0]
        for shown in (repr(client), repr(client.operations), str(raised.exception), repr(raised.exception), repr(raised.exception.__cause__), repr(operation)):
            self.assertNotIn("sk_secret", shown)
            self.assertNotIn("tok_visa", shown)
