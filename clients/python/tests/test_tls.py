"""Servers whose certificate an authority of one's own has signed."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from fake import fake_server

import berth


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 that signs itself; its key lies beside it."""
    path = tmp_path / "server.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=berth"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "server.key"), "-out", str(path)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


def test_an_authority_of_ones_own(certificate: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_server(lambda r: r.send(200, {"data": []}), tls=tls) as (url, _):
        assert berth.connect(url, ca_file=str(certificate)).hosts() == []
        monkeypatch.setenv("BERTH_CA_FILE", str(certificate))
        assert berth.connect(url).hosts() == []


def test_a_certificate_that_nobody_here_trusts(tls: ssl.SSLContext) -> None:
    with fake_server(lambda r: r.send(200, {"data": []}), tls=tls) as (url, seen):
        with pytest.raises(berth.UnreachableError, match="ca_file= or BERTH_CA_FILE"):
            berth.connect(url).hosts()
        assert seen == []


def test_http_where_tls_is_spoken() -> None:
    said = b"Client sent an HTTP request to an HTTPS server.\n"  # by Go
    with (
        fake_server(lambda r: r.send(400, said)) as (url, _),
        pytest.raises(berth.BerthError, match="write https://"),
    ):
        berth.connect(url).hosts()


def test_files_that_are_no_authority(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(ValueError, match="holds no certificate"):
        berth.connect("https://localhost", ca_file=str(empty))
    with pytest.raises(ValueError, match="cannot be read"):
        berth.connect("https://localhost", ca_file=str(tmp_path / "none"))
