from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
from dataclasses import replace
from typing import Any, Callable

from paidonce import SQL_SCHEMA, Answer, FileStore, MemoryStore, Operation, OperationStore, PaidonceError, SQLStore, begin_charge

from .server import PARAMS

NAME = 'a/b "c" \'; ü'
BEGIN = """
import sys
from tests.test_stores import file_store, sql_store, operation
store = {"file": file_store, "sql": sql_store}[sys.argv[1]](sys.argv[2])
sys.stdin.read(1)
print(store.begin(operation(sys.argv[3])).key)
"""


def operation(key: str = "k", name: str = NAME) -> Operation:
    return Operation(name, key, "/v1/charges", '{"description":"ü"}', 7)


def file_store(folder: str) -> FileStore:
    return FileStore(os.path.join(folder, "a", "b"))


def sql_store(folder: str) -> SQLStore:
    file = os.path.join(folder, "operations.db")
    connection = sqlite3.connect(file)
    connection.executescript(SQL_SCHEMA)
    connection.close()
    return SQLStore(lambda: sqlite3.connect(file))


class Stores(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_contract(self) -> None:
        for store in (MemoryStore(), file_store(self.folder), sql_store(self.folder)):
            with self.subTest(type(store).__name__):
                self.hold(store)

    def hold(self, store: OperationStore) -> None:
        self.assertIsNone(store.find(NAME))
        self.assertEqual(store.unfinished(), [])
        keys: "list[str]" = []
        threads = [threading.Thread(target=lambda i=i: keys.append(store.begin(operation(str(i))).key)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(keys), len(set(keys))), (20, 1))
        kept = operation(keys[0])
        self.assertEqual(store.find(NAME), kept)
        store.begin(operation(name="second"))
        self.assertEqual({o.name for o in store.unfinished()}, {NAME, "second"})
        done = replace(kept, answer=Answer(201, "req_1", '{"id":"ü"}'))
        store.finish(done)
        self.assertEqual(store.find(NAME), done)
        self.assertEqual(store.begin(operation("later")), done)
        self.assertEqual([o.name for o in store.unfinished()], ["second"])
        store.forget(NAME)
        store.forget(NAME)
        self.assertIsNone(store.find(NAME))
        self.assertEqual(store.begin(operation("new")).key, "new")

    def test_among_processes_the_first_wins(self) -> None:
        kinds: "dict[str, Callable[[str], OperationStore]]" = {"file": file_store, "sql": sql_store}
        for kind, open_store in kinds.items():
            children = [
                subprocess.Popen([sys.executable, "-c", BEGIN, kind, self.folder, str(i)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for i in range(6)
            ]
            for child in children:
                assert child.stdin
                child.stdin.write("x")
                child.stdin.flush()
            keys = {child.communicate()[0].strip() for child in children}
            self.assertEqual(len(keys), 1, kind)
            kept = open_store(self.folder).find(NAME)
            assert kept is not None
            self.assertEqual({kept.key}, keys)

    def test_files_are_on_the_disk_before_begin_returns(self) -> None:
        synced: "list[str]" = []
        fsync = os.fsync

        def watched(descriptor: int) -> None:
            synced.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
            fsync(descriptor)

        if not os.path.isdir("/proc/self/fd"):
            self.skipTest("needs /proc")
        os.fsync = watched
        try:
            store = file_store(self.folder)
            self.assertEqual(synced, ["folder", "folder"], "those above the folders that were made")
            synced.clear()
            store.begin(operation())
            self.assertEqual(synced, ["file", "folder"])
            store.begin(operation("later"))
            self.assertEqual(synced, ["file", "folder"] * 2, "whoever else has begun it")
            store.finish(replace(operation(), answer=Answer(201, "r", "{}")))
            self.assertEqual(synced, ["file", "folder"] * 3)
        finally:
            os.fsync = fsync
        (name,) = os.listdir(store.folder)
        modes = [os.stat(os.path.join(store.folder, of)).st_mode & 0o777 for of in ("", name)]
        self.assertEqual(modes, [0o700, 0o600], "nobody else may read what is sent")

    def test_what_is_not_an_operation(self) -> None:
        store = file_store(self.folder)
        for text in ("", "{", "[]", '{"name":"x"}', '{"answer":7}'):
            with open(os.path.join(store.folder, "x.json"), "w") as file:
                file.write(text)
            with self.assertRaisesRegex(PaidonceError, "x.json is not an operation"):
                store.unfinished()

    def test_a_transaction_that_makes_an_order(self) -> None:
        store = sql_store(self.folder)
        ends: "list[Callable[[sqlite3.Connection], Any]]" = [sqlite3.Connection.rollback, sqlite3.Connection.commit]
        for count, end in enumerate(ends):
            connection = sqlite3.connect(os.path.join(self.folder, "operations.db"))
            begin_charge(SQLStore.within(connection), "order", PARAMS)
            end(connection)
            connection.close()
            self.assertEqual(len(store.unfinished()), count)

    def test_files_of_the_other_libraries(self) -> None:
        store = file_store(self.folder)
        store.begin(operation())
        written = os.path.join(store.folder, os.listdir(store.folder)[0])
        with open(written, "w", encoding="utf-8") as file:
            file.write('{"name":"n","key":"k","method":"POST","path":"/v1/charges","body":"{}","begun":7,"answer":{"status":201,"requestId":"req_1","body":"{}"}}')
        self.assertEqual(store.find(NAME), Operation("n", "k", "/v1/charges", "{}", 7, Answer(201, "req_1", "{}")))
