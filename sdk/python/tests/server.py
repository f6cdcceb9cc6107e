"""A server that answers as it is told, over real sockets, and remembers what was sent."""

from __future__ import annotations

import http.server
import json
import threading
import time
from typing import Any, NamedTuple, Union

from paidonce import MemoryStore, Paidonce

CHARGE: "dict[str, object]" = {"id": "ch_1", "object": "charge"}
PARAMS: Any = {"amount": 2000, "currency": "usd", "source": "tok_visa"}


class Sent(NamedTuple):
    method: str
    path: str
    key: Union[str, None]
    body: bytes


class Reply(NamedTuple):
    """`body` None is what Paidonce would say; `cut` ends the answer so many bytes early; `drip` is how many seconds each byte takes."""

    status: int
    headers: "dict[str, str]" = {}
    body: Union[bytes, None] = None
    cut: int = 0
    drip: float = 0


LOST = Reply(0)
"""The connection is closed without an answer."""


def error(kind: str, code: str = "c", advice: str = "stop", **more: str) -> bytes:
    return json.dumps({"error": {"type": kind, "code": code, "message": "m", "advice": advice, **more}}).encode()


def _made(method: str, path: str) -> "dict[str, object]":
    folder, *rest = path.split("?")[0].split("/v1/")[1].split("/")
    if method == "GET" and not rest:
        return {"object": "list", "url": "", "has_more": False, "data": []}
    if folder == "charges":
        return CHARGE
    return {"object": "event_resend" if rest[1:] == ["resend"] else {"idempotency_keys": "idempotency_key"}.get(folder, folder[:-1])}


class Server(http.server.ThreadingHTTPServer):
    """Answers in turn, the last for ever: a number is a status."""

    daemon_threads = True

    def __init__(self, *replies: Union[int, Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = [Reply(r) if isinstance(r, int) else r for r in replies]
        self.sent: "list[Sent]" = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def client(self, **more: Any) -> Paidonce:
        more = {"store": MemoryStore(), "deadline": 20.0, **more}
        return Paidonce(self.url, "sk_x", **more)

    def handle_error(self, *_: object) -> None:
        """Clients hang up, as they are meant to."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        with self.server.lock:
            self.server.sent.append(Sent(self.command, self.path, self.headers["Idempotency-Key"], body))
            reply = self.server.replies[0] if len(self.server.replies) == 1 else self.server.replies.pop(0)
        if not reply.status:
            self.close_connection = True
            return
        said = reply.body
        if said is None:
            said = json.dumps(_made(self.command, self.path)).encode() if reply.status < 300 else error("api_error", advice="retry_same_key")
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(said)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        said = said[: len(said) - reply.cut]
        for i in range(0, len(said), 1 if reply.drip else len(said)):
            self.wfile.write(said[i : i + 1] if reply.drip else said)
            time.sleep(reply.drip)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        pass
