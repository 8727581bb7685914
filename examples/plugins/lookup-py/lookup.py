"""What the plugin does, without what surrounds it: labels from a table."""

import csv
import io
import re

LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Table:
    """Labels by the value of one label."""

    def __init__(self, text: str) -> None:
        """Reads lines of comma-separated values. The first one names the labels: the one that is
        looked up, then those that are given. Raises ValueError with the line that is wrong."""
        lines = csv.reader(io.StringIO(text), skipinitialspace=True)
        rows = [(lines.line_num, row) for row in lines if row]
        if not rows:
            raise ValueError("expected a table: a line of label names, then lines of values")
        _, names = rows[0]
        for name in names:
            if not LABEL.fullmatch(name):
                raise ValueError(f"line 1: {name!r} is not a label name")
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError("line 1: expected at least two different label names")
        self.key, *self.names = names
        self.rows: dict[str, list[str]] = {}
        for number, row in rows[1:]:
            if len(row) != len(names):
                raise ValueError(f"line {number}: expected {len(names)} values, not {len(row)}")
            self.rows[row[0]] = row[1:]

    def missing(self, labels: dict[str, str]) -> dict[str, str]:
        """The labels that a series gets: those of its row that it does not have."""
        row = self.rows.get(labels.get(self.key, ""), [])
        return {n: v for n, v in zip(self.names, row) if v and not labels.get(n)}


def symbols_of(text: str, ends: list[int]) -> list[str]:
    """The strings of a batch. Ends count bytes of UTF-8, not letters."""
    data = text.encode()
    return [data[start:end].decode() for start, end in zip([0, *ends], ends)]


class Changes:
    """Labels that series get, as an edit's columns."""

    def __init__(self, table: Table, symbols: list[str], label_refs: list[int], series_ends: list[int]):
        self.relabeled: list[int] = []
        self.label_refs: list[int] = []
        self.series_ends: list[int] = []
        self.symbols = bytearray()
        self.symbol_ends: list[int] = []
        self._numbers: dict[str, int] = {}
        # New symbols count on behind those of the batch.
        self._first = len(symbols)
        for series, (start, end) in enumerate(zip([0, *series_ends], series_ends)):
            refs = label_refs[start:end]
            labels = {symbols[n]: symbols[v] for n, v in zip(refs[::2], refs[1::2])}
            missing = table.missing(labels)
            if not missing:
                continue
            # An empty label is none, and must not be there beside the new one.
            kept = [(n, v) for n, v in zip(refs[::2], refs[1::2]) if symbols[n] not in missing]
            new = [(self._symbol(n), self._symbol(v)) for n, v in missing.items()]
            self.relabeled.append(series)
            self.label_refs.extend(ref for pair in kept + new for ref in pair)
            self.series_ends.append(len(self.label_refs))

    def _symbol(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = self._first + len(self.symbol_ends)
            self.symbols += text.encode()
            self.symbol_ends.append(len(self.symbols))
        return self._numbers[text]
