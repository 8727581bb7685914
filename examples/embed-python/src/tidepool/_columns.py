"""Columns of numbers, and the base64 in which they cross the boundary.

wasmtime's Python converts lists one element at a time, lists of bytes as well, but a string at
once. So a column goes as the base64 of its little-endian numbers.
"""

import sys
from array import array
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import TypeAlias

#: A column: a list or any other iterable, or, much faster, an array or another buffer of 64-bit
#: numbers, such as numpy's.
IntColumn: TypeAlias = Iterable[int]
FloatColumn: TypeAlias = Iterable[float]

#: Codes by which buffers of the same numbers may call themselves.
_CODES = {"Q": "QLN", "q": "qln", "d": "d"}


def pack(column: IntColumn | FloatColumn, code: str) -> str:
    """A column as the component takes it; `code` is that of `array`."""
    try:
        view = memoryview(column)  # type: ignore[arg-type]
    except TypeError:
        view = memoryview(array(code, column))
    if view.itemsize != 8 or view.format.lstrip("<=@") not in _CODES[code] or view.ndim != 1:
        view = memoryview(array(code, view.tolist()))
    packed = view.tobytes()
    if sys.byteorder == "big":
        packed = _swapped(code, packed).tobytes()
    return b2a_base64(packed, newline=False).decode("ascii")


def unpack(column: str, code: str) -> "array[int] | array[float]":
    """A column as the component returns it."""
    packed = a2b_base64(column)
    if sys.byteorder == "big":
        return _swapped(code, packed)
    numbers: "array[int] | array[float]" = array(code)
    numbers.frombytes(packed)
    return numbers


def _swapped(code: str, packed: bytes) -> "array[int] | array[float]":
    numbers: "array[int] | array[float]" = array(code)
    numbers.frombytes(packed)
    numbers.byteswap()
    return numbers
