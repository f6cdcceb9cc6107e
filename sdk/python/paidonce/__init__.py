"""A client of a Paidonce installation: one idempotency key moves money at most once."""

from .client import Paidonce
from .errors import (
    ApiConnectionError,
    ApiError,
    AuthenticationError,
    CardError,
    DeadlineError,
    IdempotencyError,
    InvalidRequestError,
    OperationMismatchError,
    PaidonceError,
    RateLimitError,
    SignatureError,
    StaleOperationError,
    UnknownOperationError,
)
from .file_store import FileStore
from .operations import Result, begin_charge, new_operation
from .sql_store import SQL_SCHEMA, SQLStore
from .store import Answer, MemoryStore, Operation, OperationStore
from .transport import HttpTransport, Response, Transport
from .webhooks import verify_webhook

__all__ = [
    "SQL_SCHEMA",
    "Answer",
    "ApiConnectionError",
    "ApiError",
    "AuthenticationError",
    "CardError",
    "DeadlineError",
    "FileStore",
    "HttpTransport",
    "IdempotencyError",
    "InvalidRequestError",
    "MemoryStore",
    "Operation",
    "OperationMismatchError",
    "OperationStore",
    "Paidonce",
    "PaidonceError",
    "RateLimitError",
    "Response",
    "Result",
    "SQLStore",
    "SignatureError",
    "StaleOperationError",
    "Transport",
    "UnknownOperationError",
    "begin_charge",
    "new_operation",
    "verify_webhook",
]
