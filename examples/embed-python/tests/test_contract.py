"""The storage keeps the contract here: the checks of `tests/contract`, run by wasmtime's Python.

`cargo build-standalone --contract` composes them with the storage that the package has.
"""

import os
from pathlib import Path

import wasmtime
from wasmtime.component import Component, Linker

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COMPONENT = TARGET / "wasm32-wasip2" / "component-small" / "tidepool-contract-standalone.wasm"


def broken_promises(life: str, directory: Path) -> list[str]:
    engine = wasmtime.Engine()
    linker = Linker(engine)
    linker.add_wasip2()
    wasi = wasmtime.WasiConfig()
    wasi.inherit_stderr()
    wasi.preopen_dir(str(directory), "/data")
    store = wasmtime.Store(engine)
    store.set_wasi(wasi)
    instance = linker.instantiate(store, Component.from_file(engine, str(COMPONENT)))
    checks = instance.get_export_index(store, "tidepool:contract/checks@0.2.0")
    assert checks is not None
    index = instance.get_export_index(store, life, checks)
    assert index is not None
    check = instance.get_func(store, index)
    assert check is not None
    broken: list[str] = check(store)
    return broken


def test_no_promise_is_broken(tmp_path: Path) -> None:
    assert COMPONENT.exists(), f"`cargo build-standalone --contract` makes {COMPONENT}"
    assert broken_promises("write", tmp_path) == []
    assert broken_promises("read-back", tmp_path) == []
