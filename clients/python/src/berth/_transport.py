"""Calls of the API: one HTTP client with timeouts, retries and problems as errors."""

from __future__ import annotations

import email.utils
import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar, Union
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from berth._errors import BerthError, ProblemError, UnreachableError, problem_error
from berth._model import Model
from berth.models import Problem

M = TypeVar("M", bound=Model)

Params = Mapping[str, Union[str, int, float, None]]

# Of one call, in seconds: the server may take 12 s to look up an image.
CALL_TIMEOUT = 60.0
CONNECT_TIMEOUT = 10.0

# How often a call is tried whose answer was lost, or that the server could not take just then.
TRIES = 4

# Seconds between tries: twice as long each time, or as long as the server asks for.
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
LONGEST_RETRY_AFTER = 60.0

# Rows of a page of a list; the server has no larger ones.
PAGE_ROWS = 500


@dataclass
class Pauses:
    """How long to wait before the next try."""

    last: float = field(default=0.0)

    def next(self, error: Optional[BerthError] = None) -> float:
        """Returns the next pause in seconds."""
        self.last = min(max(2 * self.last, FIRST_PAUSE), LONGEST_PAUSE)
        asked = error.retry_after if isinstance(error, ProblemError) else 0.0
        return min(max(self.last, asked), LONGEST_RETRY_AFTER)

    def reset(self) -> None:
        """Begins with short pauses again."""
        self.last = 0.0


def path(*parts: Union[str, int]) -> str:
    """Returns the path of a resource, each part quoted."""
    return "".join("/" + quote(str(part), safe="") for part in parts)


class Transport:
    """Calls one server as one caller."""

    def __init__(
        self, server: str, token: Optional[str], timeout: float = CALL_TIMEOUT, ca_file: Optional[str] = None
    ) -> None:
        if "://" not in server:
            server = "http://" + server
        self.server = server.rstrip("/")
        try:
            url = httpx.URL(self.server)
        except httpx.InvalidURL as error:
            raise ValueError(f"server {server!r} is no URL: {error}") from error
        if not url.host or url.scheme not in ("http", "https"):
            raise ValueError(f"server {server!r} is no URL; write such as http://127.0.0.1:8080")
        headers = {"User-Agent": "berth-python"}
        if token:
            if not re.fullmatch(r"[!-~]+", token):  # never in the text: an error goes to logs and notebooks
                raise ValueError(
                    "the token has a space, a line break or another character that no token has; give it alone"
                )
            headers["Authorization"] = f"Bearer {token}"
        self.http = httpx.Client(
            base_url=self.server + "/api/v1",
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
            verify=trusted(ca_file),
            # No proxy is between a machine and itself.
            trust_env=url.host not in ("localhost", "127.0.0.1", "::1"),
        )

    def close(self) -> None:
        """Closes the connections."""
        self.http.close()

    def call(
        self,
        method: str,
        at: str,
        *,
        params: Optional[Params] = None,
        content: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        about: Optional[str] = None,
        tries: int = TRIES,
        timeout: Optional[float] = None,
    ) -> httpx.Response:
        """Calls the API and returns an answer that is no problem.

        What the server cannot do just now (429, 503) is tried again. So is a call whose answer was
        lost, if it is the same when done twice: it reads, or has an Idempotency-Key.
        """
        headers = dict(headers or {})
        limit = httpx.USE_CLIENT_DEFAULT if timeout is None else httpx.Timeout(timeout)
        twice = method == "GET" or "Idempotency-Key" in headers
        pauses = Pauses()
        for left in range(tries - 1, -1, -1):
            try:
                response = self.http.request(
                    method, at, params=given(params), content=content, headers=headers, timeout=limit
                )
                if response.is_success:  # a redirect did nothing, wherever it leads
                    return response
                error: BerthError = problem_in(response, about)
                again = response.status_code in (429, 503) or (twice and response.status_code > 500)
            except httpx.LocalProtocolError as mistake:
                raise BerthError(f"the call {method} {at} cannot be sent: {mistake}") from mistake
            except httpx.TransportError as lost:
                error = unreachable(self.server, lost)
                error.__cause__ = lost
                again = twice and not isinstance(lost, (httpx.ConnectError, httpx.UnsupportedProtocol))
            if not again or left == 0:
                raise error
            time.sleep(pauses.next(error))
        raise AssertionError("the last try returns or raises")

    def read(
        self,
        cls: type[M],
        at: str,
        params: Optional[Params] = None,
        *,
        tries: int = TRIES,
        timeout: Optional[float] = None,
    ) -> M:
        """Reads a thing."""
        return parsed(cls, self.call("GET", at, params=params, tries=tries, timeout=timeout))

    def change(
        self,
        cls: type[M],
        method: str,
        at: str,
        body: Any = None,
        *,
        headers: Optional[Mapping[str, str]] = None,
    ) -> M:
        """Changes a thing and returns it."""
        content = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        return parsed(cls, self.call(method, at, content=content, headers={**kind, **(headers or {})}))

    def pages(
        self, cls: type[M], at: str, params: Optional[Params] = None, *, limit: Optional[int] = None
    ) -> Iterator[M]:
        """Reads the pages of a list, until the last one or the row limit."""
        cursor, rows = None, 0
        while True:
            most = None if limit is None else limit - rows
            if most is not None and most <= 0:
                return
            asked = PAGE_ROWS if most is None else min(PAGE_ROWS, most)
            page: Any = self.read(cls, at, {**(params or {}), "cursor": cursor, "limit": asked})
            if most is not None:
                del page.data[most:]
            rows += len(page.data)
            yield page
            cursor = page.next_cursor
            if not cursor:
                return

    @contextmanager
    def stream(
        self,
        at: str,
        *,
        params: Optional[Params] = None,
        headers: Optional[Mapping[str, str]] = None,
        silence: float = CALL_TIMEOUT,
    ) -> Iterator[httpx.Response]:
        """Opens a streamed answer; after this many seconds of silence it counts as lost."""
        try:
            with self.http.stream(
                "GET",
                at,
                params=given(params),
                headers=dict(headers or {}),
                timeout=httpx.Timeout(CONNECT_TIMEOUT, read=max(silence, 0.1)),
            ) as response:
                if response.status_code not in (200, 206):
                    response.read()
                    raise problem_in(response, None)
                yield response
        except httpx.LocalProtocolError as mistake:
            raise BerthError(f"the call GET {at} cannot be sent: {mistake}") from mistake
        except httpx.TransportError as lost:
            raise unreachable(self.server, lost) from lost


def trusted(ca_file: Optional[str]) -> ssl.SSLContext:
    """Trusts httpx's authorities, and the one in the file."""
    context = httpx.create_ssl_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except ssl.SSLError as error:
            raise ValueError(f"ca_file {ca_file!r} holds no certificate in PEM: {error}") from error
        except OSError as error:
            raise ValueError(f"ca_file {ca_file!r} cannot be read: {error}") from error
    return context


def given(params: Optional[Params]) -> dict[str, Union[str, int, float]]:
    """Returns the parameters that have a value."""
    return {name: value for name, value in (params or {}).items() if value is not None}


def parsed(cls: type[M], response: httpx.Response) -> M:
    """Reads an answer."""
    try:
        return cls.model_validate(response.json())
    except (ValueError, ValidationError) as error:
        raise BerthError(
            f"the answer to {response.request.method} {response.request.url.path} is none of Berth's: {error}"
        ) from error


def problem_in(response: httpx.Response, about: Optional[str]) -> ProblemError:
    """Reads the problem of a refused call."""
    try:
        problem = Problem.model_validate(response.json())
    except (ValueError, ValidationError):
        fix = "is its URL right?"
        if b"HTTP request to an HTTPS server" in response.content:
            fix = "it speaks TLS there: write https:// in its URL"
        problem = Problem(
            type="about:blank",
            title=response.reason_phrase,
            status=response.status_code,
            code="unknown",
            detail=f"the server answered {response.status_code} {response.reason_phrase}, and not as Berth does; "
            + fix,
            request_id=response.headers.get("X-Request-ID", ""),
        )
    return problem_error(problem, about=about, retry_after=retry_after(response.headers.get("Retry-After", "")))


def unreachable(server: str, lost: Exception) -> UnreachableError:
    """Says that there was no answer."""
    why = str(lost) or type(lost).__name__
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return UnreachableError(
            f"the certificate of {server} is refused: {why}; its name and date must fit, and the authority of your own "
            "that signed it, if any, is given by ca_file= or BERTH_CA_FILE"
        )
    return UnreachableError(
        f"no answer from {server}: {why}; is `berth dev` or `berth server` running? "
        "(server= or BERTH_SERVER says where)"
    )


def retry_after(header: str, now: Optional[float] = None) -> float:
    """Reads the header: seconds, or a time (RFC 9110, section 10.2.3). 0 = absent."""
    if header.isdigit():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return 0.0
    return max(at.timestamp() - (time.time() if now is None else now), 0.0)
