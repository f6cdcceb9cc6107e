"""What becomes of an operation: what is kept of it, sent, given again, and freed."""

from __future__ import annotations

import json
import threading
from email.message import Message
from typing import Any, Callable

import paidonce

from .server import CHARGE, LOST, PARAMS, Reply, error
from .test_unit import NOT_OURS, Unit

REFUSED = Reply(400, body=error("invalid_request_error", "parameter_invalid", "fix_and_use_new_key"))
STORED = REFUSED._replace(headers={"Idempotent-Replayed": "true"})
MISSING = Reply(404, body=error("invalid_request_error", "resource_missing", "stop"))
DECLINED = Reply(402, body=error("card_error", "card_declined", "fix_and_use_new_key", decline_code="insufficient_funds"))


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

    def key_kept(self, *replies: Any) -> bool:
        """Has a charge refused by the replies, and tells whether a later call goes on under the same key."""
        server = self.serve(*replies, 201)
        client = server.client()
        with self.assertRaises(paidonce.ApiError) as raised:
            client.charges.create("op", PARAMS)
        self.assertEqual(raised.exception.status, replies[-1].status)
        kept = len(client.operations.unfinished()) == 1
        client.charges.create("op", PARAMS if kept else {**PARAMS, "amount": 1})
        self.assertEqual(server.sent[0].key == server.sent[-1].key, kept)
        return kept

    def test_an_operation_that_got_but_pages_goes_on_under_its_key(self) -> None:
        keys: "list[str]" = []

        def transport(_method: str, _url: str, headers: Any, _body: Any, _limit: float) -> paidonce.Response:
            keys.append(headers["Idempotency-Key"])
            return paidonce.Response(200, Message(), b"<html>")

        server = self.serve(Reply(200, body=b"<html>"), 201)
        store = paidonce.MemoryStore()
        with self.assertRaises(paidonce.DeadlineError) as raised:
            server.client(store=store, deadline=0.01, transport=transport).charges.create("op", PARAMS)
        self.assertIsInstance(raised.exception.__cause__, paidonce.ApiConnectionError)
        self.assertIn("not from Paidonce", str(raised.exception))
        self.assertEqual(server.client(store=store).operations.resume("op").status, 201)
        self.assertEqual([sent.key for sent in server.sent], keys * 2)

    def test_an_answer_that_is_not_from_paidonce_is_neither_a_decline_nor_a_refusal(self) -> None:
        for status in (307, 400, 401, 402, 403, 404, 405, 413, 415, 422):
            for page in NOT_OURS:
                self.assertTrue(self.key_kept(Reply(status, body=page)), (status, page))
        self.assertTrue(self.key_kept(Reply(402, body=error("api_error"))))

    def test_a_refusal_of_the_only_attempt_frees_the_name_when_the_request_is_at_fault(self) -> None:
        too_large, unsupported = (Reply(status, body=error("invalid_request_error", advice="fix_and_use_new_key")) for status in (413, 415))
        for reply in (REFUSED, too_large, unsupported, MISSING):
            self.assertFalse(self.key_kept(reply), reply)
        for status, kind, code, advice in (
            (401, "authentication_error", "api_key_invalid", "stop"),
            (403, "authentication_error", "c", "stop"),
            (404, "invalid_request_error", "route_unknown", "stop"),
            (405, "invalid_request_error", "method_not_allowed", "stop"),
            (422, "idempotency_error", "idempotency_key_reused", "fix_and_use_new_key"),
            (500, "api_error", "operation_parked", "stop"),
        ):
            self.assertTrue(self.key_kept(Reply(status, body=error(kind, code, advice))), status)
        calls: "list[Callable[[paidonce.Paidonce, str], Any]]" = [
            lambda c, charge: c.charges.capture("op", charge),
            lambda c, charge: c.refunds.create("op", {"charge": charge}),
        ]
        for call in calls:
            server = self.serve(MISSING, 200)
            client = server.client()
            with self.assertRaises(paidonce.InvalidRequestError):
                call(client, "ch_wrong")
            call(client, "ch_right")
            self.assertNotEqual(server.sent[0].key, server.sent[1].key)

    def test_a_refusal_after_an_attempt_without_an_answer_keeps_the_key_unless_it_is_stored(self) -> None:
        for before in (LOST, Reply(503), Reply(409), Reply(201, cut=1), Reply(200, body=b"<html>")):
            for reply in (REFUSED, MISSING):
                self.assertTrue(self.key_kept(before, reply), before)
            self.assertFalse(self.key_kept(before, STORED), before)

    def test_a_refusal_of_a_resumed_operation_keeps_the_key_unless_it_is_stored(self) -> None:
        store = paidonce.MemoryStore()
        paidonce.begin_charge(store, "op", PARAMS)
        server = self.serve(REFUSED, REFUSED, STORED)
        client = server.client(store=store)
        with self.assertRaises(paidonce.InvalidRequestError):
            client.charges.create("op", PARAMS)
        with self.assertRaises(paidonce.InvalidRequestError):
            client.operations.resume("op")
        self.assertEqual(store.unfinished()[0].key, server.sent[1].key)
        self.assertEqual(server.sent[0], server.sent[1])
        with self.assertRaises(paidonce.InvalidRequestError):
            client.operations.resume("op")
        self.assertEqual(store.unfinished(), [])

    def test_the_key_is_kept_before_the_first_attempt(self) -> None:
        store = paidonce.MemoryStore()

        def transport(_method: str, _url: str, headers: Any, body: Any, _limit: float) -> paidonce.Response:
            kept = store.find("op")
            assert kept is not None
            self.assertEqual((kept.key, kept.body.encode()), (headers["Idempotency-Key"], body))
            return paidonce.Response(201, Message(), json.dumps(CHARGE).encode())

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
