"""A store in a database."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any, Callable, ContextManager, Optional

from .store import Operation, decode, encode

SQL_SCHEMA = """CREATE TABLE IF NOT EXISTS paidonce_operations (
    name      text PRIMARY KEY,
    operation text NOT NULL,
    finished  boolean NOT NULL DEFAULT false
);
CREATE INDEX IF NOT EXISTS paidonce_operations_unfinished ON paidonce_operations (name) WHERE NOT finished;"""
"""Makes the table of SQLStore, in SQLite (3.24 or newer; `executescript`) and in PostgreSQL (`execute`)."""


class SQLStore:
    """
    Keeps operations in a table of your database, SQLite or PostgreSQL; the library for Go uses the same table. Each call has a connection of
    its own, so threads do not share one.

    What was committed has to survive a power cut. It does unless somebody switched that off: `PRAGMA synchronous` below FULL in SQLite,
    `synchronous_commit` off in PostgreSQL.
    """

    def __init__(self, connect: Callable[[], Any], placeholder: str = "?") -> None:
        """
        `connect` returns a new connection as the Python DB API (PEP 249) has them: `lambda: sqlite3.connect("shop.db")`. `placeholder` is
        how its driver writes a parameter: `?` for sqlite3, `%s` for psycopg.
        """
        self._cursor: Callable[[], ContextManager[Any]] = lambda: _committed(connect())
        self._placeholder = placeholder

    @classmethod
    def within(cls, connection: Any, placeholder: str = "?") -> SQLStore:
        """
        Returns a store within the transaction of a connection: it commits nothing. It is for `begin_charge` and the like, beside the
        statements that make your order; a client that sends needs one that commits.
        """
        store = cls(lambda: connection, placeholder)
        store._cursor = lambda: closing(connection.cursor())
        return store

    def begin(self, operation: Operation) -> Operation:
        while True:
            with self._cursor() as cursor:
                self._execute(
                    cursor,
                    "INSERT INTO paidonce_operations (name, operation) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                    operation.name,
                    encode(operation),
                )
                begun = cursor.rowcount == 1
            first = operation if begun else self.find(operation.name)
            if first is not None:
                return first

    def find(self, name: str) -> Optional[Operation]:
        with self._cursor() as cursor:
            self._execute(cursor, "SELECT operation FROM paidonce_operations WHERE name = ?", name)
            row = cursor.fetchone()
        return decode(row[0]) if row else None

    def finish(self, operation: Operation) -> None:
        with self._cursor() as cursor:
            self._execute(
                cursor,
                "UPDATE paidonce_operations SET operation = ?, finished = ? WHERE name = ?",
                encode(operation),
                operation.answer is not None,
                operation.name,
            )

    def forget(self, name: str) -> None:
        with self._cursor() as cursor:
            self._execute(cursor, "DELETE FROM paidonce_operations WHERE name = ?", name)

    def unfinished(self) -> list[Operation]:
        with self._cursor() as cursor:
            self._execute(cursor, "SELECT operation FROM paidonce_operations WHERE NOT finished ORDER BY name")
            return [decode(text) for (text,) in cursor.fetchall()]

    def _execute(self, cursor: Any, statement: str, *parameters: object) -> None:
        cursor.execute(statement.replace("?", self._placeholder), parameters)


@contextmanager
def _committed(connection: Any) -> Generator[Any, None, None]:
    with closing(connection), closing(connection.cursor()) as cursor:
        yield cursor
        connection.commit()
