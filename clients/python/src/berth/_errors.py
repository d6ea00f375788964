"""What goes wrong, as exceptions. All of them are a BerthError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from berth.models import Problem, ProblemItem


class BerthError(Exception):
    """The base of all errors of this package."""


class BerthWarning(UserWarning):
    """Something to know about a sweep or its files that is no error."""


class UnreachableError(BerthError):
    """There was no answer from the server."""


class NoResultError(BerthError):
    """No trial of the sweep has a value yet, so there is no best one."""


class FilesError(BerthError):
    """The files of a trial are missing, or a download differs from the server's checksum."""


class WaitTimeoutError(BerthError, TimeoutError):
    """The sweep did not end in the time that wait() was given. It goes on."""


class ProblemError(BerthError):
    """The server refused a call (RFC 9457). Each status has a subclass.

    Its text names each thing that is wrong: code, JSON pointer, what to do.
    """

    def __init__(self, problem: Problem, *, about: Optional[str] = None, retry_after: float = 0) -> None:
        super().__init__(problem, about)
        self.problem = problem
        self.about = about
        self.retry_after = retry_after
        """Seconds after which the server asks to be asked again; 0 = it does not say."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def code(self) -> str:
        """A kind such as not_found, or E_… (docs/api.md, docs/errors.md)."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """The problem, in plain words."""
        return self.problem.detail

    @property
    def errors(self) -> Sequence[ProblemItem]:
        """Each thing that is wrong with the request: code, pointer, detail."""
        return self.problem.errors or []

    @property
    def request_id(self) -> str:
        """By which the server's log knows the call."""
        return self.problem.request_id

    def __str__(self) -> str:
        lines = [f"{self.detail} ({self.code})"]
        if self.errors:
            problems = "1 problem" if len(self.errors) == 1 else f"{len(self.errors)} problems"
            lines = [f"{self.about or 'the request'} has {problems}:"]
            lines += [f"  {problem_text(item)}" for item in self.errors]
        if self.status >= 500:
            lines.append(f"  request id {self.request_id}")
        return "\n".join(lines)


class InvalidError(ProblemError):
    """A sweep file or a request is wrong; ``errors`` says all that is (400, 413, 415, 422)."""


class AccessError(ProblemError):
    """The token is missing or not valid (401), or its role does not allow the call (403)."""


class NotFoundError(ProblemError):
    """There is no such thing (404)."""


class ConflictError(ProblemError):
    """The thing is in a state that forbids the call, or its name is not unique (409)."""


class BusyError(ProblemError):
    """The server has too much to do, also after some retries (429, 503)."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    400: InvalidError,
    413: InvalidError,
    415: InvalidError,
    422: InvalidError,
    401: AccessError,
    403: AccessError,
    404: NotFoundError,
    409: ConflictError,
    429: BusyError,
    503: BusyError,
}


def problem_error(problem: Problem, *, about: Optional[str] = None, retry_after: float = 0) -> ProblemError:
    """Returns the error of the class that the problem's status has."""
    return _BY_STATUS.get(problem.status, ProblemError)(problem, about=about, retry_after=retry_after)


def problem_text(item: ProblemItem) -> str:
    """Returns such as E_LOG_RANGE /parameters/0/min: …."""
    return " ".join(filter(None, [item.code, item.pointer])) + f": {item.detail}"


def temporary(error: BerthError) -> bool:
    """Reports whether the same call may work later."""
    if isinstance(error, ProblemError):
        return error.status == 429 or error.status >= 500
    return isinstance(error, UnreachableError)
