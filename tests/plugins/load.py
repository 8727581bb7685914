"""What the measurements of plugins send, and the servers that they send it to."""
import contextlib
import http.client
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
HEADERS = {
    "Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "2.0.0",
}


def wasm(name):
    """A plugin that was built, by the name of its file."""
    for folder in ("examples/plugins", "tests/plugins"):
        path = ROOT / folder / "target/wasm32-wasip2/release" / f"{name}.wasm"
        if path.exists():
            return path
    raise SystemExit(f"{name}.wasm is missing: cargo build --release in examples/plugins and tests/plugins")


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(key, content):
    return bytes([key]) + varint(len(content)) + content


def time_field(time_ms):
    return b"\x10" + varint(time_ms)


def message(shard, time_ms, count):
    """One io.prometheus.write.v2.Request of so many series, with a sample each."""
    numbers, symbols = {"": 0}, [""]

    def symbol(text):
        if text not in numbers:
            numbers[text] = len(symbols)
            symbols.append(text)
        return varint(numbers[text])

    series = []
    for n in range(shard * count, (shard + 1) * count):
        labels = {
            "__name__": f"http_requests_total_{n % 40}", "cluster": "eu-west-1",
            "container": "app", "instance": f"10.0.{n // 250 % 200}.{n % 250}:9100",
            "job": "node", "method": "GET", "namespace": "default",
            "path": f"/api/v1/{n % 97}", "pod": f"app-{n}", "status": "200",
        }
        refs = b"".join(symbol(name) + symbol(value) for name, value in labels.items())
        sample = b"\x09" + struct.pack("<d", n * 1.5) + time_field(time_ms)
        series.append(field(0x2A, field(0x0A, refs) + field(0x12, sample)))
    return b"".join(field(0x22, text.encode()) for text in symbols) + b"".join(series)


def snappy(plain):
    """Snappy's block format, of literals alone."""
    out = [varint(len(plain))]
    for start in range(0, len(plain), 65536):
        piece = plain[start : start + 65536]
        out += [bytes([61 << 2]), struct.pack("<H", len(piece) - 1), piece]
    return b"".join(out)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def connect(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(600):
        try:
            connection.request("GET", "/-/ready")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return connection
        except OSError:
            connection.close()
        time.sleep(0.1)
    raise SystemExit("the server does not come up")


def wait_loaded(connection):
    """Writes wait for transforms that are being loaded."""
    for _ in range(6000):
        connection.request("GET", "/metrics")
        if b"\ntidepool_plugins_loading 0\n" in connection.getresponse().read():
            return
        time.sleep(0.1)
    raise SystemExit("the plugins are not loaded")


def post(connection, plain):
    """Sends a request, which must be stored."""
    connection.request("POST", "/api/v1/write", snappy(plain), HEADERS)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != 204:
        raise SystemExit(f"{answer.status}: {said}")


@contextlib.contextmanager
def server(program, plugin=None, settings=""):
    """A server in a directory of its own, with one plugin or none: the process, a connection to it,
    and the directory of plugins."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        port = free_port()
        config = f"data-dir: {directory}/data\nlisten: 127.0.0.1:{port}\n"
        config += "no-host-metrics: true\nno-own-metrics: true\n"
        plugins = directory / "plugins"
        if plugin:
            plugins.mkdir()
            shutil.copy(wasm(plugin), plugins)
            config += f"plugins-dir: {plugins}\nplugins:\n  - name: {plugin}\n"
            config += "".join(f"    {line}\n" for line in settings.splitlines())
        (directory / "config.yml").write_text(config)
        command = [program, f"--config={directory}/config.yml"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            connection = connect(port)
            if plugin:
                wait_loaded(connection)
            yield process, connection, plugins
        finally:
            process.terminate()
            process.wait()
