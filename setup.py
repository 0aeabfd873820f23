"""The one build step that pyproject.toml cannot state: the parser's tables are saved beside mjk.lark."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithTables(build_py):
    """Saves grammar/mjk.tables, which package-data then finds; in an editable install too."""

    def run(self) -> None:
        # By its path: neither metaljit nor its dependencies are importable while it is built.
        tables = runpy.run_path(str(Path(__file__).with_name("grammar") / "tables.py"))
        tables["save"]()
        super().run()


setup(cmdclass={"build_py": BuildWithTables})
