"""Azurite as the real part: started, asked and stopped by the tests that need it."""

import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import ssl
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from fdagent.stores.blob import BlobStore
from fdagent.stores.blobauth import Auth, Bearer, SharedKey
from fdagent.stores.blobhttp import BlobHttp, open_client
from fdagent.system import SystemClock, SystemIds

MAIN = Path(__file__).parents[2] / ".azurite/node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "devstoreaccount1"
# The account and key that every Azurite has: published, not a secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
READY_SECONDS = 20.0
MISSING = "Azurite is not installed here: `make test` installs it where npm is"
FLAGS = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--disableProductStyleUrl", "--inMemoryPersistence"]


def need() -> None:
    """Skip when Azurite is not installed; in CI that is a failure."""
    if MAIN.is_file():
        return
    if os.environ.get("CI"):
        pytest.fail(MISSING, pytrace=False)
    pytest.skip(MISSING)


@dataclass
class Azurite:
    """One running server. `kind` is http (shared key) or https (bearer token)."""

    kind: str
    folder: Path
    port: int = field(init=False)
    ca: Path = field(init=False)

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = ["node", str(MAIN), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), *FLAGS]
        if self.kind == "https":
            ca, self.ca = trustme.CA(), self.folder / "ca.pem"
            ca.cert_pem.write_to_path(self.ca)
            cert = ca.issue_cert("127.0.0.1", "localhost")
            cert.private_key_pem.write_to_path(self.folder / "key.pem")
            for n, pem in enumerate(cert.cert_chain_pems):
                pem.write_to_path(self.folder / "cert.pem", append=n > 0)
            command += ["--oauth", "basic", "--cert", f"{self.folder}/cert.pem", "--key", f"{self.folder}/key.pem"]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.stop()
                    pytest.fail(f"Azurite ({self.kind}) did not come up within {READY_SECONDS:.0f} s")
                time.sleep(0.02)
        self.client = self.new_client()

    def stop(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def new_client(self, **settings):
        verify = ssl.create_default_context(cafile=str(self.ca)) if self.kind == "https" else True
        return open_client(verify=verify, **settings)

    @property
    def auth(self) -> Auth:
        return Bearer(bearer_token) if self.kind == "https" else SharedKey(ACCOUNT, KEY, SystemClock())

    def container(self, name: str, port: int | None = None) -> str:
        return f"{self.kind}://127.0.0.1:{port or self.port}/{ACCOUNT}/{name}"

    def new_container(self) -> str:
        """A container of its own for one test; its name."""
        name = str(uuid.uuid4())
        http = BlobHttp(self.container(name), auth=self.auth, clock=SystemClock(), ids=SystemIds(), client=self.client)
        outcome = http.exchange("PUT", f"{self.container(name)}?restype=container", {}, limit=10_000)
        assert outcome.answer is not None, outcome
        assert outcome.answer.status == 201
        return name

    def store(self, container: str, *, port: int | None = None, folder: str = "lake/Files/_control", **settings):
        ports = {"clock": SystemClock(), "ids": SystemIds(), "client": self.client, "auth": self.auth} | settings
        return BlobStore(self.container(container, port), folder, **ports)


def bearer_token(lives: float = 3600, audience: str = "https://storage.azure.com") -> str:
    """A token that Azurite takes: the signature is not looked at, times, issuer and audience are."""
    now = int(time.time())
    claims = {
        "iat": now - 60,
        "nbf": now - 60,
        "exp": int(now + lives),
        "aud": audience,
        "iss": "https://sts.windows.net/11111111-2222-3333-4444-555555555555/",
    }
    head, body = (_b64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{head}.{body}.{_b64(hmac.new(b'any', f'{head}.{body}'.encode(), hashlib.sha256).digest())}"


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
