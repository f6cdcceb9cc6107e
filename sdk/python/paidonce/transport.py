"""One attempt: a request over a connection of its own, and its answer, within a limit on all of it together."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any, Optional, Protocol, Union
from urllib.parse import urlsplit

_LONGEST_ANSWER = 16 << 20
"""Bytes. A page of 100 charges has a tenth of it, whatever is in their metadata."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Message
    body: bytes


class Transport(Protocol):
    """
    Sends one request once and returns its answer, whatever its status: it follows no redirect (that would carry the API key to another
    place) and repeats nothing. Raises OSError or http.client.HTTPException when there is no answer within `limit` seconds. Is called by
    several threads at once.
    """

    def __call__(self, method: str, url: str, headers: Mapping[str, str], body: Optional[bytes], limit: float, /) -> Response: ...


class HttpTransport:
    """
    Sends over HTTP/1.1 and, for `https`, TLS. No connection is kept: so none can die in our hands while it is idle, and threads and forked
    processes have nothing to share.
    """

    def __init__(self, context: Optional[ssl.SSLContext] = None) -> None:
        """The context says whose certificates are believed; by default those that the system believes."""
        self._context = context

    def __call__(self, method: str, url: str, headers: Mapping[str, str], body: Optional[bytes], limit: float) -> Response:
        end = time.monotonic() + limit
        parts = urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        sock: Union[socket.socket, ssl.SSLSocket] = _connect(host, port, end)
        try:
            if secure:
                self._context = self._context or ssl.create_default_context()
                sock.settimeout(_left(end))
                sock = self._context.wrap_socket(sock, server_hostname=host)
            connection = http.client.HTTPConnection(host, port)
            connection.sock = sock
            sock.settimeout(_left(end))
            connection.request(method, url[len(f"{parts.scheme}://{parts.netloc}") :], body, {**headers, "Host": parts.netloc, "Connection": "close"})
            return _receive(method, sock, end)
        finally:
            sock.close()


def _connect(host: str, port: int, end: float) -> socket.socket:
    """Tries each address of the host; none may use up the time of those after it."""
    failure: OSError = OSError(f"{host} has no address")
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for i, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(end) / (len(addresses) - i))
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure


def _receive(method: str, sock: socket.socket, end: float) -> Response:
    answer = http.client.HTTPResponse(sock, method=method)
    try:
        answer.fp = io.BufferedReader(_TimedReader(answer.fp.detach(), sock, end))
        answer.begin()
        body = answer.read(_LONGEST_ANSWER + 1)
        if len(body) > _LONGEST_ANSWER:
            raise http.client.HTTPException("the answer does not end")
        if answer.length:
            raise http.client.IncompleteRead(body, answer.length)
        return Response(answer.status, answer.headers, body)
    finally:
        answer.close()


class _TimedReader(io.RawIOBase):
    """Gives each read only what is left of the attempt: a socket's own limit begins anew with every byte."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, end: float) -> None:
        self._raw, self._sock, self._end = raw, sock, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._sock.settimeout(_left(self._end))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the attempt took too long")
    return left
