"""A delivery that arrived at a receiver; e2e/sdk_webhook_test.go runs it."""

import json
import os

from paidonce import SignatureError, verify_webhook

with open(os.environ["DELIVERY"], encoding="utf-8") as file:
    delivery = json.load(file)
event = verify_webhook(delivery["body"].encode(), delivery["headers"], delivery["secret"])
try:
    verify_webhook(delivery["body"] + " ", delivery["headers"], delivery["secret"])
except SignatureError:
    print(event["type"], event["data"]["object"]["amount"])
