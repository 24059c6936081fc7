"""A certificate authority and certificates for tests of encrypted clusters."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path


def write_certificates(folder: Path, name: str) -> dict[str, str]:
    """Writes an authority with one certificate for 127.0.0.1; returns Dask's settings as variables."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder.mkdir()
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    authority_key, own_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {name}")])

    def made(subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + datetime.timedelta(days=1))
        )

    root = (
        made(authority, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    own = (
        made(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), own_key.public_key())
        .add_extension(addresses, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(root.public_bytes(pem))
    key = own_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "own.pem").write_bytes(own.public_bytes(pem) + key)
    variables = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(folder / "authority.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        for part in ("CERT", "KEY"):
            variables[f"DASK_DISTRIBUTED__COMM__TLS__{role}__{part}"] = str(folder / "own.pem")
    return variables
