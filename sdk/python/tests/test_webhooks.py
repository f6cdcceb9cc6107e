from __future__ import annotations

import unittest
from typing import Any

from paidonce import SignatureError, verify_webhook

# The example of the Standard Webhooks specification, so that the signature is not only what we think it is.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
NOW = 1614265330


class Webhooks(unittest.TestCase):
    def test_a_delivery_that_is_signed(self) -> None:
        cases: "dict[str, dict[str, Any]]" = {
            "as it is": {},
            "text": {"body": BODY.decode()},
            "five minutes late": {"now": NOW + 300},
            "five minutes early": {"now": NOW - 300},
            "names in other letter case": {"headers": {name.title(): value for name, value in HEADERS.items()}},
            "several secrets": {"secrets": ["whsec_b3RoZXI=", SECRET]},
            "without the prefix": {"secrets": SECRET[len("whsec_") :]},
            "several signatures": {"headers": {**HEADERS, "webhook-signature": "v1,AAAA v1a,x ü " + HEADERS["webhook-signature"]}},
        }
        for what, change in cases.items():
            event: Any = verify_webhook(**{"body": BODY, "headers": HEADERS, "secrets": SECRET, "now": NOW, **change})
            self.assertEqual(event["test"], 2432232314, what)

    def test_one_that_is_not(self) -> None:
        cases: "dict[str, dict[str, Any]]" = {
            "another body": {"body": BODY.replace(b"2", b"3")},
            "another id": {"headers": {**HEADERS, "webhook-id": "msg_2"}},
            "another time": {"headers": {**HEADERS, "webhook-timestamp": "1614265331"}},
            "no time": {"headers": {**HEADERS, "webhook-timestamp": "soon"}},
            "a time that Python alone reads": {"headers": {**HEADERS, "webhook-timestamp": "1_614_265_330"}},
            "a very long time": {"headers": {**HEADERS, "webhook-timestamp": "1" * 100_000}},
            "another secret": {"secrets": "whsec_b3RoZXI="},
            "no headers": {"headers": {}},
            "no signature": {"headers": {**HEADERS, "webhook-signature": ""}},
            "old": {"now": NOW + 301},
            "future": {"now": NOW - 301},
            "another version": {"headers": {**HEADERS, "webhook-signature": HEADERS["webhook-signature"].replace("v1", "v2")}},
        }
        for what, change in cases.items():
            with self.assertRaises(SignatureError, msg=what):
                verify_webhook(**{"body": BODY, "headers": HEADERS, "secrets": SECRET, "now": NOW, **change})

    def test_a_secret_that_is_none(self) -> None:
        # With an empty key anybody can sign. It is refused at once, so that it is found with the first delivery: whatever that is, and whatever
        # other secrets there are.
        for none in ("", " ", "\n", "whsec_", "whsec_ ", "whsec_*", "whsec_ü", "whsec_b3RoZXI", f"{SECRET} {SECRET}"):
            for secrets in (none, [none], [SECRET, none], [none, SECRET]):
                for headers in (HEADERS, {}):
                    with self.assertRaises(ValueError, msg=secrets):
                        verify_webhook(BODY, headers, secrets, now=NOW)
        with self.assertRaises(ValueError):
            verify_webhook(BODY, HEADERS, [], now=NOW)
