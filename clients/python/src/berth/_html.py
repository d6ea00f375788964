"""Sweeps and trials as small tables, for notebooks."""

from __future__ import annotations

from html import escape
from typing import Optional

from berth import models
from berth._wait import counts_text

COLORS = {"succeeded": "#2e7d32", "running": "#1565c0", "failed": "#c62828", "infeasible": "#ad6800"}


def sweep(data: models.Sweep, url: str) -> str:
    """Returns a sweep as HTML."""
    rows = [("trials", escape(counts_text(data)))]
    if data.objective:
        objectives = [data.objective, *(data.objective.further or [])]
        rows.append(("objective", escape(", ".join(f"{one.goal} {one.metric}" for one in objectives))))
    if data.eta:
        rows.append(("still takes", f"{span(data.eta.min_seconds)} to {span(data.eta.max_seconds)}"))
    if data.reason:
        rows.append(("reason", escape(data.reason)))
    return _table(
        f'<a href="{escape(url)}">{escape(data.name)}</a> <code>{escape(data.id[:8])}</code>', data.state, rows
    )


def trial(data: models.Trial, url: str) -> str:
    """Returns a trial as HTML."""
    rows = [(escape(name), escape(str(value))) for name, value in data.params.items()]
    for name, value in (data.results or {}).items():
        rows.append((escape(name), f"{value:.6g}"))
    if data.value is not None:
        rows.insert(0, ("value", f"{data.value:.6g}"))
    if data.message and (data.state != "succeeded" or data.value is None):
        rows.append(("message", escape(data.message)))
    return _table(f'<a href="{escape(url)}">trial {data.number}</a>', data.state, rows)


def _table(title: str, state: str, rows: list[tuple[str, str]]) -> str:
    color = COLORS.get(state, "inherit")
    cells = "".join(
        f'<tr><td style="text-align:left">{k}</td><td style="text-align:left">{v}</td></tr>' for k, v in rows
    )
    return f'<div><b>{title}</b> <span style="color:{color}">{escape(state)}</span><table>{cells}</table></div>'


def span(seconds: Optional[float]) -> str:
    """Returns such as 45 s, 3 min or 2.5 h."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
