"""Certificates for the loopback, as files, for tests."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as files."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    cert_path: Path
    key_path: Path

    def replace(self, other: Certificate) -> None:
        """Writes another certificate into this one's files, as a rotation does."""
        self.cert_path.write_bytes(other.cert_path.read_bytes())
        self.key_path.write_bytes(other.key_path.read_bytes())


def certificate(
    folder: Path,
    name: str,
    issuer: Certificate | None = None,
    *,
    expired: bool = False,
    common_name: str | None = None,
) -> Certificate:
    """A certificate for the loopback, signed by ``issuer`` or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name or name)])
    now = datetime.datetime.now(datetime.UTC)
    end = now - datetime.timedelta(minutes=1) if expired else now + datetime.timedelta(hours=1)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(issuer.key if issuer else key, hashes.SHA256())
    )
    cert_path, key_path = folder / f"{name}.crt", folder / f"{name}.key"
    cert_path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return Certificate(signed, key, cert_path, key_path)
