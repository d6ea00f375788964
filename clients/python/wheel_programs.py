"""Puts Berth's programs into the wheel when scripts/dist names them; without, the wheel is the client alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelPrograms(BuildHookInterface[Any]):
    """BERTH_DIST_TREE is a directory with bin/ and lib/, BERTH_DIST_PLATFORM the platform's tag of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 (the name of the base class)
        tree = os.environ.get("BERTH_DIST_TREE")
        if not tree:
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['BERTH_DIST_PLATFORM']}"
        build_data["shared_scripts"] = {str(Path(tree, "bin", "berth")): "berth"}
        build_data["shared_data"] = {str(Path(tree, "lib")): "lib"}
