"""Servers that misbehave: one with the test's answers, and a line that can be cut."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional, Union

Answer = Callable[["Request"], None]


@dataclass(frozen=True)
class Call:
    """The request of one call."""

    path: str
    headers: Message
    body: bytes


class Request(BaseHTTPRequestHandler):
    """A connection, whose calls a test answers."""

    protocol_version = "HTTP/1.1"
    answers: list[Answer]
    seen: list[Call]

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.seen.append(Call(self.path, self.headers, self.rfile.read(length)))
        (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(self)

    do_GET = do_POST = do_DELETE = do_PATCH = answer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        pass

    def send(self, status: int, body: Union[bytes, dict[str, Any]], **headers: str) -> None:
        """Sends a whole answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "application/problem+json" if status >= 400 else "application/json"
        self.begin(status, **{"Content-Type": kind, "Content-Length": str(len(data)), **headers})
        self.wfile.write(data)

    def begin(self, status: int, **headers: str) -> None:
        """Sends the head of an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def cut(self) -> None:
        """Ends the connection in the middle of the answer."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def problem(status: int, code: str = "unavailable", **more: Any) -> dict[str, Any]:
    """Returns the body of a refused call."""
    about = {"type": f"urn:berth:problem:{code}", "title": "x", "detail": f"it is {code}", "request_id": "r1"}
    return {**about, "status": status, "code": code, **more}


@contextmanager
def fake_server(*answers: Answer, tls: Optional[ssl.SSLContext] = None) -> Iterator[tuple[str, list[Call]]]:
    """Serves these answers, one for each call, the last for ever; yields the URL and the calls."""
    seen: list[Call] = []
    handler = type("Handler", (Request,), {"answers": list(answers), "seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        if tls:
            http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{http.server_address[1]}", seen
        finally:
            http.shutdown()
            thread.join()


class Line:
    """A line to a server that can be cut: connections end, and new ones are refused until it is mended."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.sockets: list[socket.socket] = []
        self.whole = True
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.whole = False
        for end in self.sockets:
            _end(end)
        self.sockets.clear()

    def mend(self) -> None:
        self.whole = True

    def close(self) -> None:
        self.cut()
        _end(self.listener)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                if not self.whole:
                    near.close()
                    continue
                self.connections += 1
                far = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [near, far]
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(a, b), daemon=True).start()


def _pump(a: socket.socket, b: socket.socket) -> None:
    with suppress(OSError):
        while data := a.recv(1 << 16):
            b.sendall(data)
    _end(b)


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
