"""The class that all answers of the API have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An answer, or a part of one.

    ``model_dump()`` makes a dict of it. Fields that a newer server adds are kept.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())
