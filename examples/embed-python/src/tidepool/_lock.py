"""The lock of a data directory, as tidepool and Prometheus take it; a component cannot."""

from pathlib import Path

from ._errors import Locked

try:
    import fcntl
except ImportError:  # Windows has no flock, and Prometheus locks otherwise there.
    fcntl = None  # type: ignore[assignment]


class DirectoryLock:
    """Held until `release`, or the end of the process."""

    def __init__(self, directory: Path) -> None:
        path = directory / "lock"
        self._file = path.open("ab")
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise Locked(f"the data directory is in use: {path} is locked") from error

    def release(self) -> None:
        """Lets others in."""
        self._file.close()
