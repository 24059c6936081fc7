"""Unmodified programs through the TCP relay at 1 % loss: each completes without an error."""

from __future__ import annotations

import asyncio
import http.server
import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import requirements
from tests.waiting import PATIENCE_S, wait_until

import longfat

PATH = {"rate": "200Mbit/s", "delay": "2ms", "loss": "1%"}
_FOLDERS = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"))
Launch = Callable[..., "subprocess.Popen[str]"]


def program(name: str, *folders: Path) -> str:
    """Returns the path of a program, or skips the test."""
    places = os.pathsep.join([*map(str, folders), _FOLDERS])
    found = shutil.which(name, path=places)
    return found or requirements.skip("programs", f"{name} is not installed")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def run(*arguments: object) -> str:
    done = subprocess.run(
        [str(argument) for argument in arguments], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Starts servers that stop after the test."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: object, user: str | None = None) -> subprocess.Popen[str]:
        command = [str(argument) for argument in arguments]
        running.append(
            subprocess.Popen(
                command, text=True, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        return running[-1]

    yield start
    for process in running:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def website(tmp_path: Path) -> Iterator[str]:
    """A web server whose folder has the file `data`; the address."""
    (tmp_path / "data").write_bytes(os.urandom(2_000_000))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_curl_downloads(website: str, tmp_path: Path) -> None:
    curl = program("curl")
    with longfat.relay(PATH, website, tcp=True) as relay:
        for number in range(3):
            run(curl, "-sSf", "--noproxy", "*", "-o", tmp_path / str(number), f"http://{relay.address}/data")
            assert (tmp_path / str(number)).read_bytes() == (tmp_path / "data").read_bytes()
        wait_until(lambda: relay.report["completed"] == 3)
        assert relay.report["reset"] == 0


@pytest.mark.parametrize("mode", ["socks", "http_connect"])
def test_curl_uses_the_relay_as_proxy(mode: str, website: str, tmp_path: Path) -> None:
    curl = program("curl")
    port = website.rpartition(":")[2]
    at = "127.0.0.1:0"
    with longfat.relay(PATH, socks=at) if mode == "socks" else longfat.relay(PATH, http_connect=at) as relay:
        proxy = {
            "socks": ["--socks5-hostname", relay.address],
            "http_connect": ["--proxytunnel", "--proxy", f"http://{relay.address}"],
        }[mode]
        for host in ("127.0.0.1", "localhost"):
            run(curl, "-sSf", "--noproxy", "", *proxy, "-o", tmp_path / "copy", f"http://{host}:{port}/data")
            assert (tmp_path / "copy").read_bytes() == (tmp_path / "data").read_bytes()
        refused = subprocess.run(
            [curl, "-sS", "--noproxy", "", *proxy, f"http://127.0.0.1:{free_port()}/"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert refused.returncode != 0
        assert ("502" if mode == "http_connect" else "connect") in refused.stderr.lower()
        assert relay.report["unreachable"] == 1


@pytest.mark.slow
def test_pgbench_completes(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> None:
    pgbench = program("pgbench")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb, postgres = program("initdb", *folders), program("postgres", *folders)
    # PostgreSQL refuses to run as root.
    user = None
    data = tmp_path_factory.mktemp("postgres", numbered=True) / "data"
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            requirements.skip("programs", "there is no user postgres, and root may not run PostgreSQL")
        data = Path(f"/tmp/longfat-postgres-{os.getpid()}")
        data.mkdir()
        shutil.chown(data, user)
    try:
        made = subprocess.run(
            [initdb, "-D", str(data), "-A", "trust", "-U", "tester", "--no-sync"],
            user=user,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        port = free_port()
        options = ("-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
        launch(postgres, "-D", data, "-p", port, "-k", data, *options, user=user)
        wait_until(lambda: accepts(port))
        with longfat.relay(PATH, f"127.0.0.1:{port}", tcp=True) as relay:
            at = ("-h", "127.0.0.1", "-p", relay.address.rpartition(":")[2], "-U", "tester", "postgres")
            wait_until(
                lambda: (
                    subprocess.run([pgbench, "-i", "-q", *at], capture_output=True, check=False).returncode
                    == 0
                )
            )
            text = run(pgbench, "-c", 4, "-t", 25, "--no-vacuum", *at)
            assert "number of transactions actually processed: 100/100" in text
            assert "number of failed transactions: 0" in text
            assert relay.report["forward"]["lost"] > 0
    finally:
        if user is not None:
            shutil.rmtree(data, ignore_errors=True)


def test_redis_benchmark_completes(launch: Launch) -> None:
    server, benchmark = program("redis-server"), program("redis-benchmark")
    port = free_port()
    launch(server, "--port", port, "--bind", "127.0.0.1", "--save", "")
    wait_until(lambda: accepts(port))
    with longfat.relay(PATH, f"127.0.0.1:{port}", tcp=True) as relay:
        at = ("-h", "127.0.0.1", "-p", relay.address.rpartition(":")[2])
        text = run(benchmark, *at, "-c", 20, "-n", 1000, "-t", "ping,set,get,lpush", "-q")
        assert text.count("requests per second") >= 4
        assert "rror" not in text
        assert relay.report["forward"]["lost"] > 0


def test_nginx_serves_files(launch: Launch, tmp_path: Path) -> None:
    nginx, curl = program("nginx"), program("curl")
    port = free_port()
    (tmp_path / "data").write_bytes(os.urandom(1_000_000))
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/error;\n"
        f"events {{}}\nhttp {{ access_log off;\n"
        f"client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;\n"
        f"fastcgi_temp_path {tmp_path}/fastcgi; uwsgi_temp_path {tmp_path}/uwsgi;\n"
        f"scgi_temp_path {tmp_path}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port}; root {tmp_path}; }} }}\n"
    )
    launch(nginx, "-c", configuration, "-e", tmp_path / "error")
    wait_until(lambda: accepts(port))
    with longfat.relay(PATH, f"127.0.0.1:{port}", tcp=True) as relay:
        for _ in range(3):
            run(curl, "-sSf", "--noproxy", "*", "-o", tmp_path / "copy", f"http://{relay.address}/data")
            assert (tmp_path / "copy").read_bytes() == (tmp_path / "data").read_bytes()


def test_web_socket_clients_receive_each_message() -> None:
    aiohttp = pytest.importorskip("aiohttp")
    web = pytest.importorskip("aiohttp.web")

    async def answer(request: Any) -> Any:
        connection = web.WebSocketResponse()
        await connection.prepare(request)
        async for message in connection:
            await connection.send_bytes(message.data)
        return connection

    async def exchange() -> None:
        application = web.Application()
        application.router.add_get("/", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        try:
            with longfat.relay(PATH, f"{host}:{port}", tcp=True) as relay:
                async with (
                    aiohttp.ClientSession() as session,
                    session.ws_connect(f"http://{relay.address}/") as connection,
                ):
                    for number in range(100):
                        message = bytes([number]) * (number * 200 + 1)
                        await connection.send_bytes(message)
                        assert await connection.receive_bytes(timeout=PATIENCE_S) == message
                assert relay.report["forward"]["lost"] > 0
                assert relay.report["reset"] == 0
        finally:
            await runner.cleanup()

    asyncio.run(exchange())


@pytest.fixture
def grpc_server() -> Iterator[str]:
    """A gRPC server with a method of each kind, whose messages are bytes; the address."""
    grpc = pytest.importorskip("grpc")

    def size(messages: Iterator[bytes], context: Any) -> bytes:
        return b"%d" % sum(map(len, messages))

    methods = {
        "Echo": grpc.unary_unary_rpc_method_handler(lambda message, context: message),
        "Repeat": grpc.unary_stream_rpc_method_handler(lambda message, context: (message for _ in range(50))),
        "Size": grpc.stream_unary_rpc_method_handler(size),
        "Chat": grpc.stream_stream_rpc_method_handler(lambda messages, context: messages),
    }
    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Messages", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait(PATIENCE_S)


def test_grpc_calls_of_each_kind_complete(grpc_server: str) -> None:
    grpc = pytest.importorskip("grpc")
    messages = [os.urandom(number * 100) for number in range(100)]
    with (
        longfat.relay(PATH, grpc_server, tcp=True) as relay,
        # Without the option, gRPC uses the proxy of the environment.
        grpc.insecure_channel(relay.address, options=[("grpc.enable_http_proxy", 0)]) as channel,
    ):
        echo = channel.unary_unary("/test.Messages/Echo")
        repeat = channel.unary_stream("/test.Messages/Repeat")
        size = channel.stream_unary("/test.Messages/Size")
        chat = channel.stream_stream("/test.Messages/Chat")
        for message in messages:
            assert echo(message, timeout=PATIENCE_S) == message
        concurrent = [echo.future(message, timeout=PATIENCE_S) for message in messages]
        assert [call.result() for call in concurrent] == messages
        assert list(repeat(messages[-1], timeout=PATIENCE_S)) == [messages[-1]] * 50
        assert size(iter(messages), timeout=PATIENCE_S) == b"%d" % sum(map(len, messages))
        assert list(chat(iter(messages), timeout=PATIENCE_S)) == messages
        with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
            channel.unary_unary("/test.Messages/Missing")(b"", timeout=PATIENCE_S)
        assert relay.report["accepted"] == 1
        assert relay.report["forward"]["lost"] > 0
        assert relay.report["reset"] == 0
