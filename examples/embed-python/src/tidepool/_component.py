"""The standalone component in wasmtime: loads it, gives it one directory, calls its functions."""

from importlib import resources
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import wasmtime
from wasmtime.component import Component, Func, Linker, ResourceAny, Variant

from . import _errors

COMPONENT_FILE = "tidepool-standalone.wasm"
VERSION = "0.2.0"


class Instance:
    """One instance of the component, which is one store."""

    def __init__(self, directory: Path, component: "str | PathLike[str] | None") -> None:
        config = wasmtime.Config()
        # Compiling takes seconds; the runtime keeps what it compiled in the user's cache.
        config.cache = True
        engine = wasmtime.Engine(config)
        linker = Linker(engine)
        linker.add_wasip2()
        wasi = wasmtime.WasiConfig()
        wasi.inherit_stderr()
        wasi.preopen_dir(fspath(directory), "/data")
        self._store = wasmtime.Store(engine)
        self._store.set_wasi(wasi)
        loaded = Component.from_file(engine, fspath(component or _packaged()))
        self._instance = linker.instantiate(self._store, loaded)
        self._functions: dict[str, Func] = {}

    def call(self, interface: str, function: str, *arguments: Any) -> Any:
        """Calls a function such as `store`, `open`; raises an error that it returns."""
        try:
            result = self._function(interface, function)(self._store, *arguments)
        except wasmtime.Trap as trap:
            raise _errors.Crashed(f"`{function}` crashed: {trap}") from trap
        except wasmtime.WasmtimeError as error:
            raise _errors.Crashed(f"`{function}` failed: {error}") from error
        if not isinstance(result, Variant):
            return result
        match result.tag:
            case "ok":
                return result.payload
            case "err":
                _errors.fail(result.payload)
        _errors.fail(result)

    def drop(self, resource: ResourceAny) -> None:
        """Ends something that a call has opened."""
        resource.drop(self._store)

    def _function(self, interface: str, function: str) -> Func:
        name = f"{interface}#{function}"
        found = self._functions.get(name)
        if found is None:
            package = "standalone" if interface in ("packed", "directory") else "tsdb"
            full = f"tidepool:{package}/{interface}@{VERSION}"
            outer = self._instance.get_export_index(self._store, full)
            if outer is not None:
                index = self._instance.get_export_index(self._store, function, outer)
                if index is not None:
                    found = self._instance.get_func(self._store, index)
            if found is None and interface == "query":
                component = "tidepool-standalone-promql.wasm"
                raise _errors.TidepoolError(f"the component has no PromQL; {component} has it")
            if found is None:
                raise _errors.TidepoolError(f"the component has no function {name}")
            self._functions[name] = found
        return found


def _packaged() -> Path:
    path = Path(str(resources.files(__package__).joinpath(COMPONENT_FILE)))
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: copy the component there before installing")
    return path
