"""The server behind a TLS proxy, under a sub-path: deploy/nginx.conf as it is, run by nginx."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import Site, write_rows

from heldout.server import accounts
from heldout.server.settings import PREFIX

ROOT = Path(__file__).resolve().parents[2]
HOST = "hospital.example.org"
LINK = re.compile(r'(?:href|src|action|formaction|hx-[a-z]+|url)="?(/[^"]*)')


def links(text: str) -> list[str]:
    return [link for link in LINK.findall(text) if not link.startswith("//")]


# --- links, without a proxy ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("proxy")
    made = Site(folder / "server", address="http://testserver/evaluate/heldout")
    made.register(write_rows(folder / "rows.parquet"))
    made.grant()
    made.model = made.upload()["id"]  # type: ignore[attr-defined]
    yield made
    made.service.close()


def signed_in(site: Site, name: str) -> Any:
    browser = site.client()
    link = accounts.new_link(site.service, name)
    browser.cookies.set("heldout", accounts.sign_in_by_link(site.service, link))
    return browser


@pytest.mark.parametrize(
    ("who", "paths"),
    [
        ("ana", "/ /artifacts /compare /boards /account /datasets/readmissions"),
        ("ana", "/datasets/readmissions/ask /artifacts/MODEL /nothing"),
        ("carol", "/ /register /boards /ledger /log /datasets/readmissions"),
        ("olga", "/ /ledger /log"),
        ("adam", "/ /operations"),
        (None, "/sign-in /boards"),
    ],
)
def test_every_link_of_every_page_is_under_the_sub_path(
    site: Any, who: str | None, paths: str
) -> None:
    browser = site.client() if who is None else signed_in(site, who)
    for path in paths.replace("MODEL", site.model).split():
        for address in (path, "/evaluate/heldout" + path):  # whether or not the proxy strips it
            text = browser.get(address).text
            assert links(text), address
            outside = [link for link in links(text) if not link.startswith("/evaluate/heldout/")]
            assert outside == [], address


def test_redirects_and_next_pages_stay_under_the_sub_path(site: Any) -> None:
    answer = site.client().get("/evaluate/heldout/artifacts", follow_redirects=False)
    assert answer.headers["location"] == "/evaluate/heldout/sign-in?next=/artifacts"
    described = site.client().get("/evaluate/heldout/api/v1/openapi.json").json()
    assert described["servers"] == [{"url": "/evaluate/heldout"}]
    assert site.client().get("/evaluate/heldoutside").status_code == 404


# --- nginx ---------------------------------------------------------------------------------------


def free_ports() -> tuple[int, int]:
    """Two ports that are free, and not the same one."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        return one.getsockname()[1], other.getsockname()[1]


def certificate(folder: Path) -> None:
    """A certificate of this machine's own, for the host of the example."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, datetime.now(UTC) - timedelta(days=1),
        datetime.now(UTC) + timedelta(days=1),
    ).add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)  # fmt: skip
    signed = made.sign(key, hashes.SHA256())
    (folder / "hospital.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    (folder / "hospital.key").write_bytes(key.private_bytes(*plain, serialization.NoEncryption()))


def until(look: Any, seconds: float = 300) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            return look()
        except (OSError, httpx.HTTPError, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[httpx.Client, Path, str]]:
    """A browser that reaches `heldout serve` through nginx; and the administrator's link."""
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(nginx).exists():
        pytest.skip("nginx is not installed; make test-proxy installs it")
    certificate(tmp_path)
    outer, inner = free_ports()
    example = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    text = example.replace("/etc/ssl/", f"{tmp_path}/").replace("listen 443", f"listen {outer}")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{inner}")
    temporary = " ".join(
        f"{kind}_temp_path {tmp_path}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"""daemon off; worker_processes 1; pid {tmp_path}/nginx.pid; error_log stderr;
events {{ worker_connections 64; }}
http {{ access_log off; {temporary}
{text}
}}"""
    (tmp_path / "nginx.conf").write_text(whole)
    command = [nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    address = f"https://{HOST}/heldout"
    environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {f"{PREFIX}ADDRESS": address, f"{PREFIX}PORT": str(inner)}
    serve = [sys.executable, "-m", "heldout", "serve", str(tmp_path / "server"), "--workers", "1"]
    log = (tmp_path / "log").open("wb")
    out = (tmp_path / "out").open("wb")
    started = [
        subprocess.Popen(serve, env=environment, stdout=out, stderr=log),
        subprocess.Popen(command, stdout=log, stderr=log),
    ]
    trust = ssl.create_default_context(cafile=str(tmp_path / "hospital.pem"))
    transport = Through(outer, trust)
    try:
        with httpx.Client(transport=transport, base_url=address, timeout=30) as browser:
            until(lambda: browser.get("/ready").raise_for_status())
            said = (tmp_path / "out").read_text()
            found = re.search(rf"{address}(/sign-in/\S+)", said)
            assert found is not None, said
            yield browser, tmp_path / "log", found[1]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)
        for file in (log, out):
            file.close()


class Through(httpx.HTTPTransport):
    """Reaches the host of the example where nginx is."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        super().__init__(verify=trust)
        self._port = port

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        there = httpx.Request(  # a copy: cookies are of the host that was asked for
            request.method,
            request.url.copy_with(host="127.0.0.1", port=self._port),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": HOST},
        )
        return super().handle_request(there)


@pytest.mark.slow
def test_the_proxy_of_the_docs_works_under_its_sub_path(proxied: Any) -> None:
    browser, log, link = proxied
    page = browser.get(link)
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert token is not None
    answer = browser.post(link, data={"form_token": token[1]})
    assert answer.headers["location"] == "/heldout/"
    session = next(
        one for one in answer.headers.get_list("set-cookie") if one.startswith("__Host-heldout=")
    )
    assert {"Secure", "HttpOnly", "Path=/"} <= set(session.split("; "))
    assert "samesite=strict" in session.lower()
    home = browser.get("/")
    assert home.status_code == 200
    assert "People" in home.text
    assert "strict-transport-security" in home.headers
    assert all(one.startswith("/heldout/") for one in links(home.text))
    for one in {one for one in links(home.text) if "/static/" in one}:
        assert browser.get(one.removeprefix("/heldout")).status_code == 200
    # A page outside the sub-path is not ours, and neither is another host.
    outside = browser.get(f"https://{HOST}/artifacts")
    assert outside.status_code in {403, 404}
    assert "nginx" in outside.text
    other = browser.get("/", headers={"Host": "elsewhere.example"})
    assert other.status_code == 421
    # The API, an upload that is streamed, and one that is too large for the server.
    made = browser.post(
        "/people",
        data={"form_token": re.search(r'value="([0-9a-f]+)"', home.text)[1],  # type: ignore[index]
              "name": "ana", "role": "analyst"},
    )  # fmt: skip
    invited = re.search(rf"https://{HOST}/heldout(/sign-in/[^<]+)<", made.text)
    assert invited is not None
    ana = httpx.Client(transport=browser._transport, base_url=str(browser.base_url), timeout=30)
    token = re.search(r'value="([0-9a-f]+)"', ana.get(invited[1]).text)
    ana.post(invited[1], data={"form_token": token[1]})  # type: ignore[index]
    token = re.search(r'value="([0-9a-f]+)"', ana.get("/account").text)
    form = {"form_token": token[1], "label": "t", "scopes": ["read", "ask"]}  # type: ignore[index]
    secret = re.search(r"heldout_[\w-]+", ana.post("/account/tokens", data=form).text)
    assert secret is not None
    bearer = {"Authorization": f"Bearer {secret[0]}", "Content-Type": "application/json"}
    model = json.dumps({"coefficients": {"x": 1.0}}).encode()
    sent = browser.put("/api/v1/artifacts?name=m.json", content=model, headers=bearer)
    assert sent.status_code in {201, 202}, sent.text

    def parts() -> Iterator[bytes]:
        yield from (bytes(2**20) for _ in range(4))

    large = browser.post("/api/v1/quotes", content=parts(), headers=bearer)
    # The server reads on before it refuses, so nginx always reports 413.
    assert large.status_code == 413
    # Who asks is who the proxy sees, whatever they say of themselves.
    browser.get("/sign-in", headers={"X-Forwarded-For": "203.0.113.9"})
    text = until(lambda: _has(log, '"route": "/sign-in"'))
    assert "203.0.113.9" not in text
    assert '"address": "127.0.0.1"' in text
    assert link.split("/")[-1] not in text


def _has(log: Path, words: str) -> str:
    text = log.read_text()
    assert words in text
    return text
