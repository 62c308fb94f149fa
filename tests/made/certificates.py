"""Certificates of an authority that nobody knows, and of hosts that it vouches for, as PEM files."""

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("cryptography", reason="skipped: needs cryptography, as moto[server] brings it")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificates(NamedTuple):
    """Files in PEM."""

    #: What a client is to trust.
    authority: Path
    #: What a server shows.
    server: Path
    #: What a server keeps for itself.
    key: Path


def write_certificates(folder: Path, host: str = "localhost") -> Certificates:
    """Makes an authority, and a certificate of `host`, a name or an address."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of tests")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(authority_name).public_key(public)
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        return made.not_valid_after(now + datetime.timedelta(days=2))

    authority = (
        builder(authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    named: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    server = (
        builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), key.public_key())
        .add_extension(x509.SubjectAlternativeName([named]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files = Certificates(folder / "authority.pem", folder / "server.pem", folder / "key.pem")
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.server.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
