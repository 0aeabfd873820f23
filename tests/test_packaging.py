"""The wheel holds everything and nothing else: built from a copy, installed and imported elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["setuptools"]["packages"]
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
# What a build makes; left out of the copy, so that the wheel's build has to make it again.
NOT_SOURCE = shutil.ignore_patterns(
    *(
        ".git",
        ".venv",
        ".*_cache",
        ".hypothesis",
        "build",
        "dist",
        "out",
        "*.egg-info",
        "__pycache__",
        "*.tables",
    ),
)


@dataclass(frozen=True)
class Installed:
    """The tree from which a wheel was built, the wheel, and the folder into which it was installed."""

    tree: Path
    wheel: Path
    site: Path

    @property
    def names(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    @property
    def modules(self) -> list[str]:
        """Every module but `__main__`, which runs when it is imported."""
        paths = (
            p.relative_to(self.site).with_suffix("") for p in self.site.joinpath("metaljit").rglob("*.py")
        )
        dotted = {".".join(part for part in p.parts if part != "__init__") for p in paths}
        return sorted(name for name in dotted if not name.endswith("__main__"))

    def python(self, code: str, cwd: Path) -> str:
        """Run code that sees this installation and its dependencies: no .pth file, not the checkout."""
        paths = [str(self.site), *(p for p in sys.path if p and Path(p) != ROOT and "__editable__" not in p)]
        result = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "error", "-c", f"import sys; sys.path[:] = {paths!r}\n{code}"],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("packaging")
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=NOT_SOURCE)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(tree))
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    pip("install", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    return Installed(tree, wheel, site)


def sources(root: Path) -> dict[str, Path]:
    """Every file of the four folders that git would keep: its name in the wheel → its path."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in (root / folder).rglob("*"):
            inner = path.relative_to(root / folder)
            if path.is_file() and "__pycache__" not in inner.parts and not path.name.startswith("."):
                found["/".join((*package.split("."), *inner.parts))] = path
    return found


def test_every_package_is_listed() -> None:
    """An unlisted package works in an editable install, and is missing from the wheel."""
    found = set()
    for package, folder in FOLDERS.items():
        for path in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join((package, *path.parent.relative_to(ROOT / folder).parts)))
    assert sorted(found) == sorted(PACKAGES)


def test_every_mapped_folder_is_linked_for_the_type_checkers() -> None:
    for package, folder in FOLDERS.items():
        if package != "metaljit":
            link = ROOT / ".typings" / Path(*package.split("."))
            assert link.is_symlink()
            assert link.resolve() == (ROOT / folder).resolve()


def test_the_wheel_holds_only_metaljit(installed: Installed) -> None:
    version = PROJECT["project"]["version"]
    assert {name.partition("/")[0] for name in installed.names} == {
        "metaljit",
        f"metaljit-{version}.dist-info",
    }


def test_the_wheel_holds_every_file_byte_for_byte(installed: Installed) -> None:
    expected = sources(installed.tree)
    missing = set(expected) - installed.names
    assert not missing, "add a pattern to package-data in pyproject.toml"
    for name, path in expected.items():
        assert (installed.site / name).read_bytes() == path.read_bytes(), name


def test_the_wheel_holds_nothing_more(installed: Installed) -> None:
    packaged = {name for name in installed.names if name.startswith("metaljit/")}
    assert packaged - set(sources(installed.tree)) <= {"metaljit/grammar/mjk.tables"}


def test_the_build_saves_the_tables_of_the_parser(installed: Installed) -> None:
    assert "metaljit/grammar/mjk.tables" in installed.names


def test_every_module_imports_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    code = f"""
import importlib
for name in {installed.modules!r}:
    print(importlib.import_module(name).__file__)
"""
    files = installed.python(code, tmp_path).split("\n")[:-1]
    assert len(files) == len(installed.modules)
    assert all(Path(file).is_relative_to(installed.site) for file in files)


@pytest.mark.parametrize("name", ["grammar", "runtime", "stdlib_ops", "compiler", "tests"])
def test_no_bare_name_becomes_importable(installed: Installed, tmp_path: Path, name: str) -> None:
    code = f"import importlib.util; print(importlib.util.find_spec({name!r}))"
    assert installed.python(code, tmp_path).strip() == "None"


def test_data_is_found_through_the_import_system(installed: Installed, tmp_path: Path) -> None:
    code = """
from importlib.resources import files
assert (files("metaljit") / "py.typed").is_file()
assert (files("metaljit.grammar") / "mjk.lark").is_file()
assert any((files("metaljit.runtime") / "shim").iterdir())
"""
    installed.python(code, tmp_path)


def test_the_command_is_declared_and_exists(installed: Installed, tmp_path: Path) -> None:
    code = f"""
from importlib.metadata import distributions
(ours,) = distributions(name="metaljit", path=[{str(installed.site)!r}])
(command,) = ours.entry_points.select(group="console_scripts")
assert command.name == "metaljit" and callable(command.load())
"""
    installed.python(code, tmp_path)


def test_metadata_names_the_licence_and_the_python(installed: Installed) -> None:
    (info,) = installed.site.glob("*.dist-info")
    metadata = message_from_string((info / "METADATA").read_text("utf-8"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert (info / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
