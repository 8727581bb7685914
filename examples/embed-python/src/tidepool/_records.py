"""Records of the component: their fields have dashes where Python's names have underscores."""

from typing import Any

from wasmtime.component import Record


def record(**fields: Any) -> Record:
    """A record with these fields."""
    made = Record()
    made.__dict__.update({name.replace("_", "-"): value for name, value in fields.items()})
    return made


def field(of: Any, name: str) -> Any:
    """A field of a record."""
    return getattr(of, name.replace("_", "-"))
