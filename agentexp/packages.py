"""Versions of installed packages, for manifests and `versions()`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def version_of(package: str, absent: str = "absent") -> str:
    """The installed version of a package; `absent` where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return absent


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those packages that are installed, by name."""
    found = {package: version_of(package, "") for package in packages}
    return {package: number for package, number in found.items() if number}
