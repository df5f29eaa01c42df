"""A proxy on 127.0.0.1 between a client and a Blob store that loses, cuts, delays, repeats, holds and fails.

It knows the truth: `landed` holds the request id of every PUT and DELETE that the store carried out, also of those whose
answer the client never got, or whose request arrived long after the client had given it up.
"""

import http.client
import random
import socket
import socketserver
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

FAULTS = [
    "lose request",  # never reaches the store
    "lose answer",  # carried out, then silence
    "cut answer",  # carried out, half an answer
    "delay answer",  # in time, but late
    "answer too late",  # carried out, the client has left
    "hold request",  # carried out after the client has left
    "fail before",  # 5xx or 429 without the store
    "fail after",  # carried out, then 5xx
    "repeat",  # sent on twice, the second answer passed on
    "repeat, first answer",  # sent on twice, the first answer passed on
]


@dataclass
class Landing:
    """One request that the store carried out."""

    op: str
    method: str
    path: str
    fault: str


@dataclass
class Proxy:
    """`chance(method)` is the probability of a fault; `patience` what the client waits for one answer."""

    port_behind: int
    patience: float
    chance: object
    seed: int = 0
    landed: list[Landing] = field(default_factory=list)
    faults: Counter = field(default_factory=Counter)

    def __enter__(self):
        self.random = random.Random(self.seed)
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        proxy = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                try:
                    while proxy._serve(self):
                        pass
                except OSError:
                    pass  # the client left: what it was owed is lost, as it should be

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = False
            block_on_close = True
            allow_reuse_address = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()
        return self

    def __exit__(self, *_):
        """Waits until every held request has arrived, so that `landed` is the whole truth."""
        self.server.shutdown()
        self.thread.join(30)
        self.server.server_close()

    def count(self, *methods):
        return sum(n for (method, _), n in self.faults.items() if method in methods)

    def _serve(self, handler) -> bool:
        """One request; False when the connection is over."""
        line = handler.rfile.readline().decode("latin-1").strip()
        if not line:
            return False
        method, path, _ = line.split(" ", 2)
        headers = http.client.parse_headers(handler.rfile)
        body = handler.rfile.read(int(headers.get("content-length") or 0))
        fault = self._choose(method)
        send = lambda: self._forward(method, path, headers, body, fault)  # noqa: E731
        return getattr(self, "_" + fault.replace(", ", "_").replace(" ", "_"))(handler, send, headers)

    def _choose(self, method):
        with self.lock:
            fault = self.random.choice(FAULTS) if self.random.random() < self.chance(method) else "pass"
            if fault != "pass":
                self.faults[method, fault] += 1
            return fault

    def _forward(self, method, path, headers, body, fault):
        """Ask the store and note what it did."""
        behind = http.client.HTTPConnection("127.0.0.1", self.port_behind, timeout=20)
        try:
            behind.request(method, path, body=body or None, headers=dict(headers.items()))
            answer = behind.getresponse()
            found = answer.status, answer.reason, answer.getheaders(), answer.read()
        finally:
            behind.close()
        if method in ("PUT", "DELETE") and answer.status < 300:
            with self.lock:
                self.landed.append(Landing(headers["x-ms-client-request-id"], method, path, fault))
        return found

    def _answer(self, handler, found, cut=False):
        status, reason, headers, body = found
        kept = [(n, v) for n, v in headers if n.lower() not in ("transfer-encoding", "connection", "content-length")]
        head = [f"HTTP/1.1 {status} {reason}", *(f"{n}: {v}" for n, v in kept), f"content-length: {len(body)}", "", ""]
        data = "\r\n".join(head).encode("latin-1") + body
        handler.wfile.write(data[: len(data) // 2] if cut else data)
        handler.wfile.flush()
        return not cut

    def _pass(self, handler, send, headers):
        return self._answer(handler, send())

    def _lose_request(self, handler, send, headers):
        return False

    def _lose_answer(self, handler, send, headers):
        send()
        return False

    def _cut_answer(self, handler, send, headers):
        return self._answer(handler, send(), cut=True)

    def _delay_answer(self, handler, send, headers):
        found = send()
        time.sleep(self.patience / 4)
        return self._answer(handler, found)

    def _answer_too_late(self, handler, send, headers):
        found = send()
        _until_gone(handler.connection, self.patience * 3)
        return self._answer(handler, found)

    def _hold_request(self, handler, send, headers):
        _until_gone(handler.connection, self.patience * 3)
        time.sleep(self.patience * self._fraction())
        send()
        return False

    def _fail_before(self, handler, send, headers):
        status, reason = self._pick([(503, "Server Busy"), (500, "Error"), (429, "Too Many Requests")])
        return self._answer(handler, (status, reason, [("retry-after", "0")], b""))

    def _fail_after(self, handler, send, headers):
        send()
        status, reason = self._pick([(500, "Error"), (502, "Bad Gateway"), (503, "Busy"), (504, "Gateway Timeout")])
        return self._answer(handler, (status, reason, [], b"<html>no</html>"))

    def _repeat(self, handler, send, headers):
        send()
        return self._answer(handler, send())

    def _repeat_first_answer(self, handler, send, headers):
        found = send()
        send()
        return self._answer(handler, found)

    def _fraction(self):
        with self.lock:
            return self.random.random()

    def _pick(self, choices):
        with self.lock:
            return self.random.choice(choices)


def _until_gone(connection: socket.socket, most: float) -> None:
    """Wait until the client has closed its end, at most `most` seconds."""
    connection.settimeout(most)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except OSError:
        pass
    finally:
        connection.settimeout(None)
