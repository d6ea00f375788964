"""The way in: connect() and the client."""

from __future__ import annotations

import json
import os
import re
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Union

from berth import models
from berth._errors import BerthError, BerthWarning, NotFoundError, problem_text
from berth._space import parameters
from berth._stage import Stage
from berth._sweep import Sweep
from berth._transport import CALL_TIMEOUT, M, Transport, parsed, path

DEFAULT_SERVER = "http://127.0.0.1:8080"

Spec = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A sweep file: its path, its text, or a dict of its content.

In a dict, ``parameters`` may be a dict of names, to Float, Int or Choice, to a list of choices, or to one value.
"""


def connect(
    server: Optional[str] = None,
    token: Optional[str] = None,
    *,
    timeout: float = CALL_TIMEOUT,
    ca_file: Optional[str] = None,
) -> Client:
    """Returns a client of a Berth server. Nothing is sent yet.

    ``server`` is its URL; default: BERTH_SERVER, else http://127.0.0.1:8080.
    ``token`` is an API token; default: BERTH_TOKEN, else none. Space around it, such as the line break of a
    file, does not matter.
    ``timeout`` bounds each call in seconds. What takes longer by its nature, such as a download or
    wait(), is not bounded by it.
    ``ca_file`` is a PEM file of the authority that signed the server's certificate, beside those that
    httpx trusts; default: BERTH_CA_FILE, else none.
    """
    server = server or os.environ.get("BERTH_SERVER") or DEFAULT_SERVER
    token = (token or os.environ.get("BERTH_TOKEN") or "").strip()
    ca_file = ca_file or os.environ.get("BERTH_CA_FILE") or None
    return Client(Transport(server, token or None, timeout, ca_file))


class Client:
    """A Berth server, as one caller sees it. Made by connect()."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def server(self) -> str:
        """The server's URL."""
        return self._transport.server

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<berth.Client {self.server}>"

    def close(self) -> None:
        """Closes the connections. Sweeps go on."""
        self._transport.close()

    def submit(self, spec: Spec, *, idempotency_key: Optional[str] = None) -> Sweep:
        """Submits a sweep and returns it. It runs on the server, also when this program ends.

        ``idempotency_key`` makes repeated submissions of the same file one sweep, for 24 hours.
        Errors: InvalidError, which says everything that is wrong with the file.
        Warnings of the server come as BerthWarning, and name the sweep, which runs also where they are errors.
        """
        document = _Document(spec)
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4()), "Content-Type": document.kind}
        answer = self._transport.call("POST", "/sweeps", content=document.content, headers=headers, about=document.name)
        sweep = Sweep(self._transport, parsed(models.Sweep, answer))
        for item in sweep.data.warnings or []:
            warnings.warn(f"sweep {sweep.id[:8]}: {problem_text(item)}", BerthWarning, stacklevel=2)
        return sweep

    def preview(self, spec: Spec) -> models.Preview:
        """Predicts a sweep without submitting it: trials, how many at once and why no more, how long."""
        return self._look("/sweep-previews", models.Preview, spec)

    def validate(self, spec: Spec) -> models.Validation:
        """Says everything that is wrong with a sweep file, and what its defaults are."""
        return self._look("/sweep-validations", models.Validation, spec)

    def _look(self, at: str, cls: type[M], spec: Spec) -> M:
        document = _Document(spec)
        answer = self._transport.call(
            "POST", at, content=document.content, headers={"Content-Type": document.kind}, about=document.name
        )
        return parsed(cls, answer)

    def sweeps(
        self,
        *,
        state: Union[str, list[str], None] = None,
        name: Optional[str] = None,
        created_by: Optional[str] = None,
        sort: Optional[str] = None,
        limit: Optional[int] = 100,
    ) -> list[Sweep]:
        """Lists sweeps, newest first.

        ``state`` keeps one or several states, ``name`` those whose name or note contains the text.
        ``sort`` is created_at, name or finished_at, with a minus for descending.
        ``limit`` is how many at most; None = all.
        """
        params = {
            "state": ",".join(state) if isinstance(state, list) else state,
            "name": name,
            "created_by": created_by,
            "sort": sort,
        }
        pages = self._transport.pages(models.SweepList, "/sweeps", params, limit=limit)
        return [Sweep(self._transport, data) for page in pages for data in page.data]

    def sweep(self, ref: str) -> Sweep:
        """Returns the sweep with this id or name, or with this beginning of either that no other has.

        Errors: NotFoundError, and BerthError when several sweeps have it.
        """
        if not ref:
            raise ValueError("the id or name of a sweep is empty")
        missing: Optional[NotFoundError] = None
        if re.fullmatch(r"[0-9a-fA-F-]{1,36}", ref):
            try:
                return Sweep(self._transport, self._transport.read(models.Sweep, path("sweeps", ref)))
            except NotFoundError as error:
                missing = error
        named = [sweep for sweep in self.sweeps(name=ref, limit=None) if sweep.name.startswith(ref)]
        found = [sweep for sweep in named if sweep.name == ref] or named
        if len(found) == 1:
            return found[0].refresh()  # a list has no specs
        if found:
            some = "\n".join(
                f"  {s.id}  {s.name}  {s.state}, of {s.data.created_at:%Y-%m-%d %H:%M}" for s in found[:10]
            )
            more = f"\n  and {len(found) - 10} more" if len(found) > 10 else ""
            raise BerthError(
                f"{len(found)} sweeps have a name that begins with {ref!r}; give the id of one:\n{some}{more}"
            )
        if missing is not None:
            raise missing
        # The server's own words for an id that it does not know.
        return Sweep(self._transport, self._transport.read(models.Sweep, path("sweeps", ref[:36])))

    def stages(self, sweep: Union[Sweep, str, None] = None, *, limit: Optional[int] = 100) -> list[Stage]:
        """Lists the stages that have an output, newest first.

        ``sweep``, or its id or name, keeps the stages that its trials use; those without an output come first.
        ``limit`` is how many at most; None = all.
        """
        params = {"sweep": sweep.id if isinstance(sweep, Sweep) else sweep}
        pages = self._transport.pages(models.StageList, "/stages", params, limit=limit)
        return [Stage(self._transport, data) for page in pages for data in page.data]

    def stage(self, key: str) -> Stage:
        """Returns the stage with this key, or with this beginning of it, of 8 digits or more, that no other has."""
        return Stage(self._transport, self._transport.read(models.Stage, path("stages", key)))

    def hosts(self) -> list[models.Host]:
        """Lists the machines with their GPUs, by name."""
        return self._transport.read(models.HostList, "/hosts").data

    def me(self) -> models.Me:
        """Returns the caller: name and role."""
        return self._transport.read(models.Me, "/me")

    def server_info(self) -> models.ServerInfo:
        """Says the server's version and limits."""
        return self._transport.read(models.ServerInfo, "/server")


class _Document:
    """A sweep file as it is sent."""

    def __init__(self, spec: Spec) -> None:
        self.kind = "application/yaml"
        self.name = "the sweep file"
        if isinstance(spec, Mapping):
            self.name, self.kind = "the sweep", "application/json"
            if isinstance(spec.get("parameters"), Mapping):
                spec = {**spec, "parameters": parameters(spec["parameters"])}
            self.content = json.dumps(spec, default=_plain, allow_nan=False).encode()
        elif isinstance(spec, str) and ("\n" in spec or spec.lstrip().startswith("{")):
            self.content = spec.encode()
        elif isinstance(spec, (str, os.PathLike)):
            file = Path(spec)
            if isinstance(spec, str) and not file.is_file():
                raise FileNotFoundError(
                    f"there is no sweep file {spec!r} (a text of more than one line is taken for the file itself)"
                )
            self.name = str(file)
            self.content = file.read_bytes()
            if file.suffix.lower() == ".json":
                self.kind = "application/json"
        else:
            raise TypeError(f"a sweep is a path, a text or a dict, and no {type(spec).__name__}")


def _plain(value: Any) -> Any:
    """Turns numbers and arrays of NumPy, and paths, into JSON types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a sweep cannot have a value of type {type(value).__name__}")
