"""A store in a folder."""

from __future__ import annotations

import hashlib
import os
import uuid
from typing import Optional, Union

from .errors import PaidonceError
from .store import Operation, decode, encode


class FileStore:
    """
    Keeps each operation in a file of its own, in one folder that several processes of one machine may share; those of Paidonce's libraries
    for other languages, too. The folder has to be on a file system that has hard links.
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]"]) -> None:
        self.folder = os.path.abspath(folder)
        _make(self.folder)

    def begin(self, operation: Operation) -> Operation:
        written = self._write(operation)
        try:
            while True:
                kept: Optional[Operation] = operation
                try:
                    os.link(written, self._file(operation.name))  # is made by one process only, and never shows half a file
                except FileExistsError:
                    kept = self.find(operation.name)
                if kept is not None:
                    # Also when another process made the link: perhaps it has not come to this yet, and we are about to send.
                    _sync(self.folder)
                    return kept
        finally:
            os.unlink(written)

    def find(self, name: str) -> Optional[Operation]:
        return _read(self._file(name))

    def finish(self, operation: Operation) -> None:
        os.replace(self._write(operation), self._file(operation.name))
        _sync(self.folder)

    def forget(self, name: str) -> None:
        try:
            os.unlink(self._file(name))
        except FileNotFoundError:
            pass

    def unfinished(self) -> list[Operation]:
        kept = (_read(os.path.join(self.folder, name)) for name in sorted(os.listdir(self.folder)) if name.endswith(".json"))
        return [operation for operation in kept if operation is not None and operation.answer is None]

    def _file(self, name: str) -> str:
        """A name may hold what a file's may not, so the file is named after its hash."""
        return os.path.join(self.folder, hashlib.sha256(name.encode()).hexdigest() + ".json")

    def _write(self, operation: Operation) -> str:
        """Writes the operation to a file of another name, and to the disk."""
        name = os.path.join(self.folder, f"{uuid.uuid4()}.new")
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(encode(operation))
            file.flush()
            os.fsync(file.fileno())
        return name


def _read(file: str) -> Optional[Operation]:
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except FileNotFoundError:
        return None
    try:
        return decode(text)
    except PaidonceError as cause:
        raise PaidonceError(f"{file} is not an operation.") from cause


def _make(folder: str) -> None:
    """Makes a folder with those above it, and brings their names to the disk: else a power cut may take the folder away."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make(above)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    _sync(above)


def _sync(folder: str) -> None:
    """Brings a folder itself to the disk: else a power cut may take a file's name away. Windows does so by itself, and has no such call."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
