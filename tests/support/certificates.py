"""A certificate authority for one test, and what it signs, made by the openssl command."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def server_context(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """What a TLS server on 127.0.0.1 needs, and the certificate of the authority that signed it."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command, which is not installed")
    authority, signed = folder / "ca.pem", folder / "server.pem"
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
        *("-keyout", folder / "ca.key", "-out", authority, "-subj", "/CN=test authority"),
        *("-addext", "keyUsage=critical,keyCertSign"),
    )
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-keyout", folder / "server.key", "-out", folder / "server.csr", "-subj", "/CN=127.0.0.1"),
    )
    (folder / "names").write_text(
        "subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    )
    _openssl(
        *("x509", "-req", "-in", folder / "server.csr", "-CA", authority, "-CAkey", folder / "ca.key"),
        *("-CAcreateserial", "-days", "2", "-extfile", folder / "names", "-out", signed),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, folder / "server.key")
    return context, authority


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
