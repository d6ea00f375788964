"""A stage: work that trials share."""

from __future__ import annotations

from typing import Optional

from berth import models
from berth._transport import Transport, path


class Stage:
    """A key of a stage as it was when it was read last; ``refresh()`` reads it again, with parts and why."""

    def __init__(self, transport: Transport, data: models.Stage) -> None:
        self._transport = transport
        self.data = data
        """All that the server says of it."""

    @property
    def key(self) -> str:
        """The SHA-256 of all that its output depends on."""
        return self.data.key

    @property
    def name(self) -> str:
        """The stage's name in the sweep file."""
        return self.data.stage

    @property
    def output(self) -> Optional[models.StageOutput]:
        """Its output; None = it has none yet."""
        return self.data.output

    @property
    def held(self) -> bool:
        """An unfinished trial needs it, or a container reads it: it cannot be forgotten."""
        return self.data.held

    @property
    def parts(self) -> Optional[models.StageParts]:
        """What the key is made of; None = another version of Berth made the key."""
        return self._whole().parts

    @property
    def why(self) -> Optional[str]:
        """The first part in which it differs from the nearest key of the stage, in plain words."""
        return self._whole().why

    def refresh(self) -> Stage:
        """Reads the stage as it is now, and returns it."""
        self.data = self._transport.read(models.Stage, path("stages", self.key))
        return self

    def forget(self) -> None:
        """Removes its output: the next trial that needs it runs the stage again.

        Errors: ConflictError while an unfinished trial needs it, NotFoundError when it has no output.
        """
        self._transport.call("DELETE", path("stages", self.key))

    def _whole(self) -> models.Stage:
        if self.data.why is None:  # lists have neither
            self.refresh()
        return self.data

    def __repr__(self) -> str:
        state = "no output yet" if self.output is None else self.output.lost or "there"
        return f"<berth.Stage {self.key[:8]} {self.name!r}: {state}>"
