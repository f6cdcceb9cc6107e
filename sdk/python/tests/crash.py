"""A program that is killed while it charges; test_live.py runs it."""

import os
import sys
import time

from paidonce import FileStore, Paidonce

paidonce = Paidonce(os.environ["PAIDONCE_URL"], os.environ["PAIDONCE_API_KEY"], FileStore(sys.argv[1]))
paidonce.charges.create(sys.argv[2], {"amount": 2000, "currency": "usd", "source": "tok_visa"})
time.sleep(60)
