"""Waiting for the end of a sweep, and showing how far it is."""

from __future__ import annotations

import os
import sys
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Optional, Protocol, TextIO

from berth import models
from berth._errors import BerthError, WaitTimeoutError, temporary
from berth._events import SILENCE, EventStream
from berth._transport import CALL_TIMEOUT, Pauses, Transport

if TYPE_CHECKING:
    from berth._sweep import Sweep

# Seconds between two looks at a sweep with many changes.
LOOK_PAUSE = 0.3

# Seconds between two lines about a sweep, and between two about a lost server.
LINE_PAUSE = 2.0
NOTICE_PAUSE = 60.0

# Of the last look, once the time is over, in seconds.
LAST_LOOK = 5.0

# What fits in 80 columns: the rate of trials says little, as many run at once.
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class View(Protocol):
    """Shows a sweep as it goes."""

    def show(self, sweep: models.Sweep) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


def wait(sweep: Sweep, transport: Transport, *, progress: bool, timeout: Optional[float]) -> None:
    """Waits until the sweep has ended, or the time is over."""
    view = view_for(progress, sys.stderr)
    try:
        _Watch(sweep, transport, view, timeout).run()
    except KeyboardInterrupt:
        view.close()
        short = sweep.id[:8]
        print(
            f"stopped waiting; sweep {short} goes on. sweep.wait() waits again, sweep.cancel() ends it, "
            f"client.sweep({short!r}) finds it later",
            file=sys.stderr,
        )
        raise
    finally:
        view.close()


class _TimeOverError(Exception):
    """The time that wait() was given is over."""


class _Watch:
    """Reads a sweep whenever an event reports a change, and without events from time to time."""

    def __init__(self, sweep: Sweep, transport: Transport, view: View, timeout: Optional[float]) -> None:
        self.sweep = sweep
        self.events = EventStream(transport, sweep.id)
        self.view = view
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.looked = float("-inf")
        self.noticed = float("-inf")

    def run(self) -> None:
        try:
            self.follow()
        except _TimeOverError:
            # Trials that ended since the last look ended in time.
            try:
                self.sweep._look(timeout=LAST_LOOK)
            except BerthError as error:
                if not temporary(error):
                    raise
            self.view.show(self.sweep.data)
            if not self.sweep.ended:
                raise WaitTimeoutError(
                    f"sweep {self.sweep.id[:8]} has not ended in time, and goes on: it is {self.sweep.state}, "
                    f"{counts_text(self.sweep.data)}"
                ) from None

    def follow(self) -> None:
        pauses = Pauses()
        while not self.look():
            try:
                for event in self.events.listen(self.left(SILENCE)):
                    pauses.reset()
                    # Events report changes from the open on; a read finds earlier ones.
                    self.sleep(self.looked + LOOK_PAUSE - time.monotonic())
                    if self.look():
                        return
                    if event.kind == "alive":
                        self.check()
            except BerthError as error:  # look() reports the problem for good
                self.sleep(pauses.next(error))

    def look(self) -> bool:
        """Reads the sweep, without a time limit, and returns whether it has ended."""
        pauses = Pauses()
        while True:
            self.check()
            try:
                self.sweep._look(timeout=max(self.left(CALL_TIMEOUT), 1.0))
                break
            except BerthError as error:
                if not temporary(error):
                    raise
                if time.monotonic() - self.noticed > NOTICE_PAUSE:
                    self.noticed = time.monotonic()
                    self.view.note(f"lost the server ({str(error).splitlines()[0]}); trying again, the sweep goes on")
                self.sleep(pauses.next(error))
        self.looked = time.monotonic()
        self.view.show(self.sweep.data)
        return self.sweep.ended

    def left(self, most: float) -> float:
        """Returns the seconds until the deadline, at most this many."""
        return most if self.deadline is None else max(min(most, self.deadline - time.monotonic()), 0.0)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(self.left(seconds), 0.0))
        self.check()

    def check(self) -> None:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise _TimeOverError


def finished(counts: models.Counts) -> int:
    """Returns how many trials have ended."""
    return counts.succeeded + counts.failed + counts.infeasible + counts.canceled + counts.pruned


def counts_text(sweep: models.Sweep) -> str:
    """Returns such as 3 of 24 trials ended, 2 running, 1 failed, best 0.98 (trial 2)."""
    counts = sweep.counts
    total = max(counts.planned, counts.total)
    parts = [f"{finished(counts)} of {total} trials ended" if total else f"{finished(counts)} trials ended"]
    others = ("running", "waiting", "pruned", "failed", "infeasible", "canceled")
    parts += [f"{getattr(counts, name)} {name}" for name in others if getattr(counts, name)]
    if sweep.best:
        parts.append(f"best {sweep.best.value:.6g} (trial {sweep.best.trial})")
    return ", ".join(parts)


def view_for(progress: bool, out: TextIO) -> View:
    """Returns a bar on a terminal and in a notebook, lines elsewhere."""
    if not progress:
        return _Silent()
    plain = os.environ.get("TERM") == "dumb" or bool(os.environ.get("CI"))
    if in_notebook() or (out.isatty() and not plain):
        try:
            with warnings.catch_warnings():  # tqdm warns that there are no widgets, and draws text
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm
        except ImportError:
            return _Lines(out)
        return _Bar(tqdm, out)
    return _Lines(out)


def in_notebook() -> bool:
    """Reports whether this program is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _size(out: TextIO) -> dict[str, int]:
    """Returns a size for a terminal that does not know its own, where tqdm draws nothing."""
    with suppress(OSError, ValueError):
        if os.get_terminal_size(out.fileno()).columns == 0:
            return {"ncols": 80, "nrows": 24}
    return {}


class _Silent:
    def show(self, sweep: models.Sweep) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class _Lines:
    """Writes a line for each change, at most one in two seconds, and one for the end."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.last = ""
        self.at = float("-inf")

    def show(self, sweep: models.Sweep) -> None:
        line = f"sweep {sweep.id[:8]} {sweep.state}: {counts_text(sweep)}"
        over = sweep.finished_at is not None
        if line == self.last or (not over and time.monotonic() - self.at < LINE_PAUSE):
            return
        self.last, self.at = line, time.monotonic()
        self.note(line + (f"; {sweep.reason}" if over and sweep.reason else ""))

    def note(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def close(self) -> None:
        pass


class _Bar:
    """Draws a bar with tqdm."""

    def __init__(self, tqdm: Any, out: TextIO) -> None:
        self.tqdm, self.out = tqdm, out
        self.bar: Any = None

    def show(self, sweep: models.Sweep) -> None:
        counts = sweep.counts
        total = max(counts.planned, counts.total) or None
        if self.bar is None:
            label = f"{sweep.name} {sweep.id[:8]}"
            self.bar = self.tqdm(total=total, desc=label, file=self.out, bar_format=BAR, **_size(self.out))
        self.bar.total = total
        self.bar.n = finished(counts)
        # Text behind the bar: states that the bar does not show.
        state = [] if sweep.state == "running" else [sweep.state]
        self.bar.set_postfix_str(", ".join(state + counts_text(sweep).split(", ")[1:]), refresh=False)
        self.bar.refresh()

    def note(self, text: str) -> None:
        self.tqdm.write(text, file=self.out)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None
