"""The store's errors as exceptions: a class for each case of `error` in `wit/types.wit`."""

from typing import Any, NoReturn

from wasmtime.component import Variant


class TidepoolError(Exception):
    """Anything that this package raises on purpose."""


class NotOpen(TidepoolError):
    """The store was closed."""


class WrongRole(TidepoolError):
    """The store's role does not include the call."""


class Invalid(TidepoolError, ValueError):
    """The caller's mistake: an argument that can never be right."""


class _Damage(TidepoolError):
    def __init__(self, where: str, offset: int, reason: str) -> None:
        super().__init__(f"{where}, byte {offset}: {reason}")
        self.where = where
        self.offset = offset
        self.reason = reason


class Malformed(_Damage):
    """A request body that does not decode."""


class Corrupt(_Damage):
    """Stored data that does not decode."""


class LimitExceeded(TidepoolError):
    """A stated limit was reached."""

    def __init__(self, what: str, maximum: int, text: str | None = None) -> None:
        super().__init__(text or f"{what}: at most {maximum}")
        self.what = what
        self.maximum = maximum


class QueryParseError(Invalid):
    """An expression that is not valid PromQL; the message is Prometheus'."""

    def __init__(self, text: str, start: int, end: int) -> None:
        super().__init__(text)
        #: Where the mistake is, in bytes of the expression as UTF-8; the end is not included.
        self.start = start
        self.end = end


class QueryExecutionError(TidepoolError):
    """An expression that cannot be evaluated over the data."""


class ShortOfMemory(TidepoolError, MemoryError):
    """`Options.memory_bytes_max` is nearly used up; try again after `Store.compact`."""


class Busy(TidepoolError):
    """Reads that are still open need what the call would drop."""


class SeriesDropped(TidepoolError):
    """Series of the head were dropped while they were counted; count again."""


class HeadLost(TidepoolError):
    """The head of another instance does not answer. Stores of this package own their head."""


class StorageError(TidepoolError, OSError):
    """The files beneath failed."""


class NotFound(StorageError):
    """There is no such block or file."""


class NoSpace(StorageError):
    """No space is left; the call had no effect."""


class ReadOnly(StorageError):
    """What would be written was opened for reading only."""


class Locked(StorageError):
    """Another process works in the directory."""


class Crashed(TidepoolError):
    """The engine stopped at a bug of its own. Acknowledged rows are in the log: reopen it."""


_STORAGE = {"not-found": NotFound, "no-space": NoSpace, "read-only": ReadOnly, "io": StorageError}


def fail(error: Any) -> NoReturn:
    """Raises what the component gave as an error."""
    if not isinstance(error, Variant):
        raise TidepoolError(f"the component gave an error of an unknown form: {error!r}")
    payload: Any = error.payload
    match error.tag:
        case "not-open":
            raise NotOpen("the store is not open")
        case "wrong-role":
            raise WrongRole(f"the store's role does not include `{payload}`")
        case "invalid":
            raise Invalid(payload)
        case "malformed":
            raise Malformed(payload.where, payload.offset, payload.reason)
        case "corrupt":
            raise Corrupt(payload.where, payload.offset, payload.reason)
        case "limit-exceeded":
            raise LimitExceeded(payload.what, payload.max)
        case "short-of-memory":
            raise ShortOfMemory(f"more than {payload} bytes would be in use")
        case "busy":
            raise Busy("reads that are open need what the call would drop")
        case "series-dropped":
            raise SeriesDropped("series of the head were dropped while they were counted")
        case "head-lost":
            raise HeadLost(" ".join(filter(None, (payload.tag, payload.payload))))
        case "storage":
            fail(payload)
        case "parse":
            raise QueryParseError(payload.text, payload.at.start, payload.at.end)
        case "execution":
            raise QueryExecutionError(payload)
        case "limit":
            raise LimitExceeded(payload.limit.what, payload.limit.max, payload.text)
        case "store":
            fail(payload)
        case "not-found" | "no-space" | "read-only" | "io":
            raise _STORAGE[error.tag](payload)
    raise TidepoolError(f"{error.tag}: {payload!r}")
