"""Puts the two programs into the wheel, where COFFERDAM_WHEEL_PROGRAMS names their directory.

Without it the wheel has Python alone, and the SDK uses the program that is on the PATH. The
programs are static, so they run on any Linux of their processor.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("cofferdam", "runsc")


class ProgramsHook(BuildHookInterface):
    """The build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds scripts and says for which platform the wheel is."""
        folder = os.environ.get("COFFERDAM_WHEEL_PROGRAMS")
        if not folder or self.target_name != "wheel":
            return
        platform = os.environ["COFFERDAM_WHEEL_PLATFORM"]
        for program in PROGRAMS:
            path = os.path.join(folder, program)
            if not os.access(path, os.X_OK):
                raise FileNotFoundError(f"{path} is not there: run `make build` first")
            build_data["shared_scripts"][path] = program
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
