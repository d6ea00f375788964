"""The stream of changes (server-sent events)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from berth._errors import UnreachableError
from berth._transport import Transport

# The server says that it is alive after 15 s of silence; a connection that is
# silent for twice as long is lost.
SILENCE = 30.0


@dataclass(frozen=True)
class ServerEvent:
    """One event: ``kind`` is change, alive or reset; open says that the stream has begun."""

    kind: str
    data: str = ""


@dataclass
class EventStream:
    """A subscription to the events of one sweep, which outlives its connections."""

    transport: Transport
    sweep_id: str
    last_id: str = field(default="")

    def listen(self, silence: float = SILENCE) -> Iterator[ServerEvent]:
        """Connects and yields the events after the last seen one, until the connection ends.

        Errors: UnreachableError, as a stream does not end by itself, and what the server refuses.
        """
        headers = {"Accept": "text/event-stream"}
        if self.last_id:
            headers["Last-Event-ID"] = self.last_id
        with self.transport.stream(
            "/events", params={"sweep_id": self.sweep_id}, headers=headers, silence=min(silence, SILENCE)
        ) as response:
            yield ServerEvent("open")
            yield from self.parse(response.iter_lines())
        raise UnreachableError("the stream of events has ended")

    def parse(self, lines: Iterable[str]) -> Iterator[ServerEvent]:
        """Reads events as WHATWG describes them."""
        kind, event_id = "", ""
        data: list[str] = []
        for line in lines:
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if not line:
                self.last_id = event_id or self.last_id
                if data:
                    yield ServerEvent(kind, "\n".join(data))
                kind, data = "", []
            elif name == "event":
                kind = value
            elif name == "id":
                event_id = value
            elif name == "data":
                data.append(value)
