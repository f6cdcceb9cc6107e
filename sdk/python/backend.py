"""
Makes the wheel when pip installs this folder. The package is a handful of files without dependencies, so this is all there is to it; a build
backend from a registry would be the only thing that an installation has to fetch, and Pythons of today come with none.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any, Optional

_HERE = Path(__file__).parent
_VERSION = "1.0.0"
_INFO = f"paidonce-{_VERSION}.dist-info"

_METADATA = f"""\
Metadata-Version: 2.1
Name: paidonce
Version: {_VERSION}
Summary: Client of the Paidonce payments API: one idempotency key moves money at most once
License: MIT
Keywords: payments,idempotency,api
Classifier: Intended Audience :: Developers
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: OS Independent
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""

_WHEEL = """\
Wheel-Version: 1.0
Generator: paidonce
Root-Is-Purelib: true
Tag: py3-none-any
"""


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    """The hook of PEP 517 that pip calls: writes the wheel, and returns its name."""
    files = {
        path.relative_to(_HERE).as_posix(): path.read_bytes()
        for path in sorted((_HERE / "paidonce").rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    files[f"{_INFO}/LICENSE"] = (_HERE / "LICENSE").read_bytes()
    files[f"{_INFO}/METADATA"] = _METADATA.encode() + (_HERE / "README.md").read_bytes()
    files[f"{_INFO}/WHEEL"] = _WHEEL.encode()
    record = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[f"{_INFO}/RECORD"] = "".join([*record, f"{_INFO}/RECORD,,\n"]).encode()
    wheel = f"paidonce-{_VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)  # without the time of the file: the same source is the same wheel
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return wheel


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
