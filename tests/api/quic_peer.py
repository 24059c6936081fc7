"""Client and server of aioquic: `python -m tests.api.quic_peer serve PORT` or `ask HOST PORT BYTES`."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PATIENCE_S = 60


def certificate(folder: Path) -> tuple[Path, Path]:
    """Writes a self-signed certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "certificate.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return public, private


class Echo(QuicConnectionProtocol):
    """Returns the bytes of each stream."""

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answers what arrived."""
        if isinstance(event, StreamDataReceived):
            self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
            self.transmit()


@asynccontextmanager
async def listening(host: str, port: int) -> AsyncIterator[int]:
    """Runs a server; yields its port."""
    settings = QuicConfiguration(is_client=False, alpn_protocols=["echo"])
    with tempfile.TemporaryDirectory() as folder:
        settings.load_cert_chain(*certificate(Path(folder)))
    server = await serve(host, port, configuration=settings, create_protocol=Echo)
    transport = server._transport
    assert transport is not None
    try:
        yield int(transport.get_extra_info("sockname")[1])
    finally:
        server.close()
        # The transport closes its socket in the next turn of the loop.
        await asyncio.sleep(0)


async def ask(host: str, port: int, content: bytes) -> bytes:
    """Sends bytes on a stream, and returns the answer."""
    settings = QuicConfiguration(alpn_protocols=["echo"], verify_mode=ssl.CERT_NONE)
    async with asyncio.timeout(PATIENCE_S), connect(host, port, configuration=settings) as client:
        reader, writer = await client.create_stream()
        writer.write(content)
        writer.write_eof()
        return await reader.read()


async def _serve(port: int) -> None:
    async with listening("0.0.0.0", port):  # in a namespace with two hosts
        await asyncio.Event().wait()


def main(role: str, *arguments: str) -> None:
    """Runs a server, or a client that compares the answer."""
    if role == "serve":
        asyncio.run(_serve(int(arguments[0])))
    host, port, size = arguments
    content = bytes(number % 251 for number in range(int(size)))
    print("equal" if asyncio.run(ask(host, int(port), content)) == content else "different")


if __name__ == "__main__":
    main(*sys.argv[1:])
