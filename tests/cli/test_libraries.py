"""Commands where NumPy is not installed, or broken: `doctor` reports it, the others say it in one line."""

import json
import os
import subprocess
import sys

import pytest

HIDDEN = "import sys; sys.modules['numpy'] = None; from h264lite.__main__ import main; sys.exit(main())"
NEEDED = "without which nothing can be encoded or decoded: pip install numpy"


def run(*words, code=("-c", HIDDEN), **more):
    """(exit code, standard output, standard error) of a command in a Python without NumPy; more: environment variables."""
    done = subprocess.run([sys.executable, *code, *words], env=os.environ | more, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_doctor_without_numpy():
    code, said, errors = run("doctor")
    assert code == 1 and not errors
    assert said.startswith("h264lite:    ") and "\nlibraries:   " in said
    assert said.endswith(f"\n\nproblem: NumPy is not installed, {NEEDED}\n")
    code, said, errors = run("doctor", "--json")
    facts = json.loads(said)
    assert code == 1 and not errors and list(facts) == ["version", "python", "libraries", "problems"]
    assert facts["problems"] == [f"NumPy is not installed, {NEEDED}"]


def test_doctor_with_a_broken_numpy(tmp_path):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('wrong\\n\\nELF class')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code, said, _ = run("doctor", code=("-m", "h264lite"), PYTHONPATH=path)
    assert code == 1 and f"problem: NumPy cannot be imported (wrong ELF class), {NEEDED}\n" in said


@pytest.mark.parametrize("words", (("encode", "in_16x16.yuv", "out.264"), ("info", "in.264"), ("tune",)))
def test_other_commands_without_numpy(words):
    assert run(*words) == (1, "", f"h264lite {words[0]}: error: numpy is not installed: pip install numpy\n")


def test_the_version_needs_no_numpy():
    assert run("--version")[::2] == (0, "")
