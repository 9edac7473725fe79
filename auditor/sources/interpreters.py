"""Where a Python environment keeps its packages, found without running it.

An environment is a virtualenv folder (``pyvenv.cfg``, PEP 405), a conda environment, or the
installation an interpreter belongs to. The layouts are those of :mod:`sysconfig`'s schemes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*[a-z]?(\.exe)?", re.IGNORECASE)
_LAYOUTS = (
    "lib/{python}/site-packages",
    "lib64/{python}/site-packages",
    "local/lib/{python}/dist-packages",
    "lib/{python}/dist-packages",
)


def own_site_folders() -> list[Path]:
    """The package folders of this interpreter, in the order in which imports look at them.

    The current folder and the folder of the running script are no place of installation, so
    they are left out even where ``sys.path`` has them.
    """
    import site
    import sysconfig

    standard = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    standard.update(site.getsitepackages())
    standard.add(site.getusersitepackages())
    excluded = {"", os.getcwd(), sys.path[0] if sys.path else ""}
    extra = [entry for entry in sys.path if entry in standard or entry not in excluded]
    return _unique(Path(entry) for entry in extra if os.path.isdir(entry))


def is_environment(folder: Path) -> bool:
    """Whether ``folder`` is a virtualenv or a conda environment."""
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def is_interpreter(file: Path) -> bool:
    """Whether ``file`` is named like a Python interpreter (``python3.12``, ``python.exe``)."""
    return _INTERPRETER.fullmatch(file.name) is not None


def site_folders_of(target: Path) -> list[Path]:
    """The package folders of the environment ``target``: its folder or its interpreter.

    A virtualenv made with system packages also has those of the Python it was made from.
    """
    if target.is_dir():
        return _unique(_of_environment(target, None))
    prefix = Path(os.path.abspath(target)).parent.parent
    if is_environment(prefix):
        return _unique(_of_environment(prefix, None))
    real = Path(os.path.realpath(target))
    return _unique(_of_prefix(real.parent.parent, _release_in_name(real.name)))


def _of_environment(folder: Path, release: str | None) -> Iterator[Path]:
    settings = _venv_settings(folder / "pyvenv.cfg")
    stated = re.match(r"\d+\.\d+", settings.get("version", settings.get("version_info", "")))
    release = stated.group() if stated else release
    yield from _of_prefix(folder, release)
    if settings.get("include-system-site-packages", "").lower() == "true":
        home = settings.get("home")
        if home:
            yield from _of_prefix(Path(home).parent, release)


def _of_prefix(prefix: Path, release: str | None) -> Iterator[Path]:
    pythons = [f"python{release}", "python3"] if release else ["python*", "pypy*"]
    for layout in _LAYOUTS:
        for python in pythons:
            yield from sorted(prefix.glob(layout.format(python=python)), reverse=True)
    yield prefix / "Lib" / "site-packages"


def _venv_settings(file: Path) -> dict[str, str]:
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        # A conda environment has no such file, and nothing of it is needed.
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _release_in_name(name: str) -> str | None:
    match = re.search(r"\d+\.\d+", name)
    return match.group() if match else None


def _unique(folders: Iterable[Path]) -> list[Path]:
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]
