"""Operations, and where they are kept."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Optional, Protocol

from .errors import PaidonceError


@dataclass(frozen=True)
class Answer:
    """What an operation came to."""

    status: int
    request_id: str
    body: str = field(repr=False)


@dataclass(frozen=True)
class Operation:
    """A logical operation: its key, made once, and the very bytes of its first attempt."""

    name: str
    """Yours, such as `order-1001/charge`."""
    key: str
    path: str
    body: str = field(repr=False)
    begun: int
    """When, in milliseconds since 1970."""
    answer: Optional[Answer] = None
    """None until there is one that is final."""


class OperationStore(Protocol):
    """Where operations are kept. Is called by several threads at once."""

    def begin(self, operation: Operation) -> Operation:
        """
        Keeps the operation unless there is one of its name already, and returns the one that is kept. What it returns must survive a crash
        of the program: the first attempt is sent only after it.
        """
        ...

    def find(self, name: str) -> Optional[Operation]: ...

    def finish(self, operation: Operation) -> None:
        """Replaces the operation of its name."""

    def forget(self, name: str) -> None: ...

    def unfinished(self) -> list[Operation]:
        """Returns all that have no answer yet."""
        ...


class MemoryStore:
    """Keeps operations as long as the program runs: for tests, and for callers who keep the key elsewhere."""

    def __init__(self) -> None:
        self._kept: dict[str, Operation] = {}
        self._lock = threading.Lock()

    def begin(self, operation: Operation) -> Operation:
        with self._lock:
            return self._kept.setdefault(operation.name, operation)

    def find(self, name: str) -> Optional[Operation]:
        with self._lock:
            return self._kept.get(name)

    def finish(self, operation: Operation) -> None:
        with self._lock:
            self._kept[operation.name] = operation

    def forget(self, name: str) -> None:
        with self._lock:
            self._kept.pop(name, None)

    def unfinished(self) -> list[Operation]:
        with self._lock:
            return [operation for operation in self._kept.values() if operation.answer is None]


def encode(operation: Operation) -> str:
    """Writes an operation as JSON, the same as Paidonce's libraries for other languages do."""
    members: dict[str, object] = {
        "name": operation.name,
        "key": operation.key,
        "method": "POST",
        "path": operation.path,
        "body": operation.body,
        "begun": operation.begun,
    }
    if operation.answer is not None:
        members["answer"] = {"status": operation.answer.status, "requestId": operation.answer.request_id, "body": operation.answer.body}
    return json.dumps(members)


def decode(text: str) -> Operation:
    """Reads what `encode` wrote."""
    try:
        members = json.loads(text)
        answer = members.get("answer")
        return Operation(
            members["name"],
            members["key"],
            members["path"],
            members["body"],
            members["begun"],
            Answer(answer["status"], answer["requestId"], answer["body"]) if answer else None,
        )
    except (ValueError, TypeError, LookupError, AttributeError) as cause:
        raise PaidonceError("What the store holds is not an operation.") from cause
