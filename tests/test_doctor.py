"""`agentexp doctor`: each thing that can be wrong is named with what to do about it."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

import pytest

from agentexp import doctor


def texts(findings: object, level: str) -> list[str]:
    return [finding.text for finding in findings if finding.level == level]  # type: ignore[attr-defined]


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    program.touch(mode=0o755)
    return program


@pytest.mark.parametrize(
    ("says", "level", "words"),
    [
        ('java version "1.7.0_80"', "missing", "too old"),
        ('java version "1.8.0_402"', "ok", "1.8.0_402"),
        ('openjdk version "21" 2023-09-19', "ok", "21"),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", "missing", "install a Java runtime"),
    ],
)
def test_java(fake_java: Path, says: str, level: str, words: str) -> None:
    fake_java.write_text(f'#!/bin/sh\ncat >&2 <<"END"\n{says}\nEND\n')
    (text,) = texts(doctor.java(), level)
    assert words in text


def test_java_that_does_not_start(fake_java: Path) -> None:
    fake_java.write_text("#!/nonexistent/interpreter\n")
    (text,) = texts(doctor.java(), "wrong")
    assert "does not start" in text and "JAVA_HOME" in text


def test_java_home_that_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert any("JAVA_HOME names no Java" in text for text in texts(doctor.java(), "note"))


def test_packages_of_another_version_or_absent_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [
        "good>=1",
        "old>=2,<3",
        "gone>=1",
        "optional==5; extra == 'more'",
        "absent==1; extra == 'more'",
        "never; python_version < '3'",
    ]
    found = {"good": "1.5", "old": "1.9", "optional": "4"}

    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "requires", lambda _: wanted)
    monkeypatch.setattr(metadata, "version", version)
    findings = list(doctor.packages())
    old, gone = texts(findings, "wrong")
    assert "old 1.9 is installed" in old and "pip install 'old<3,>=2'" in old
    assert gone == "gone is not installed: pip install 'gone>=1'"
    (optional,) = texts(findings, "note")
    assert "agentexp[more] needs ==5" in optional
    assert texts(findings, "ok") == ["1 packages of the base install have versions that agentexp is made for"]


def test_a_missing_package_of_the_base_install_stops_the_main_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "packages", lambda: iter([doctor.Finding("wrong", "x")]))
    monkeypatch.setattr(doctor.inventory, "missing", lambda _: [])
    assert doctor.doctor()[1] is False
    monkeypatch.setattr(doctor, "packages", lambda: iter([]))
    assert doctor.doctor()[1] is True


def test_keys_are_said_to_be_there_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "zq7Planted1zq7")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    findings = list(doctor.keys())
    assert any("OPENAI_API_KEY is set" in text for text in texts(findings, "ok"))
    assert any("WANDB_API_KEY is not set" in text for text in texts(findings, "note"))
    assert "zq7" not in str(findings)


def test_data_folders_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nowhere"))
    assert any("ALFWORLD_DATA names no folder" in text for text in texts(doctor.data(), "missing"))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert any("ALFWORLD_DATA is a folder" in text for text in texts(doctor.data(), "ok"))


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, 10**9))  # type: ignore[attr-defined]
    here, temporary = texts(doctor.disk(), "missing")
    assert "0.9 GiB free" in here and "output_root=" in here
    assert "TMPDIR" in temporary


def test_this_installation_has_what_the_base_needs() -> None:
    assert texts(doctor.packages(), "wrong") == []
    assert texts(doctor.python(), "ok")
