"""`h264lite compile`: its arguments, what it compiles for GPUs, and that nothing is left to compile after it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from h264lite.cli import cli
from h264lite.cli import compile as command
from h264lite.cuda_src.runtime import compiler, facts
from h264lite.encoder.errors import OptionError

COUNT = Path(__file__).resolve().parents[1] / "support" / "count_compilations.py"


@pytest.mark.parametrize("text, expected", [("90", (9, 0)), ("8.6", (8, 6)), ("sm_100", (10, 0)), ("12.0", (12, 0))])
def test_compute_capabilities(text, expected):
    assert command.read_capability(text) == expected


@pytest.mark.parametrize("text", ["", "9", "hopper", "sm_", "9000", "90;rm"])
def test_what_is_no_compute_capability(text, capsys):
    with pytest.raises(OptionError):
        command.read_capability(text)
    assert cli.main(["compile", "--arch", f"90,{text}"]) == 2
    assert "--arch" in capsys.readouterr().err


@pytest.fixture
def nvcc(monkeypatch):
    """The kernel files that are compiled, by capability; `ssd` is compiled before."""
    calls = {}
    monkeypatch.setattr(compiler, "compiled", lambda name, capability: Path("there") if name == "source/ssd" else None)
    monkeypatch.setattr(compiler, "load_codes", lambda names, capability: calls.setdefault(capability, names))
    monkeypatch.setattr(compiler, "known_architectures", lambda: ("80", "90"))
    monkeypatch.setattr(facts, "gpus", lambda: [])
    monkeypatch.setattr(command, "compile_host", lambda log: calls.setdefault("cpu", True))
    monkeypatch.setattr(command, "compile_host_for_gpu", lambda log: calls.setdefault("host", True))
    return calls


@pytest.mark.parametrize("words, capabilities, host", [
    (["--cuda", "--arch", "90"], {(9, 0)}, "host"), (["--arch", "8.0,90"], {(8, 0), (9, 0)}, "host"),
    (["--cuda"], {(8, 0), (9, 0)}, "host"), (["--cpu", "--cuda"], {(8, 0), (9, 0)}, "cpu"), (["--cpu"], set(), "cpu"),
    ([], set(), "cpu"),
])  # fmt: skip
def test_what_is_compiled(nvcc, words, capabilities, host, capsys):
    assert cli.main(["compile", *words]) == 0
    assert nvcc.pop(host) and set(nvcc) == capabilities
    assert all("source/ssd" not in names and "intra/intra" in names for names in nvcc.values())


def test_the_gpus_of_the_machine(nvcc, monkeypatch, capsys):
    gpu = facts.GpuProperties("A GPU", (8, 9), 1 << 30, 1, 99 << 10)
    monkeypatch.setattr(facts, "gpus", lambda: [gpu, gpu])
    assert cli.main(["compile"]) == 0 and nvcc.pop("cpu") and set(nvcc) == {(8, 9)}
    assert "sm_89: " in capsys.readouterr().err


def test_without_gpu_and_nvcc(nvcc, monkeypatch, capsys):
    monkeypatch.setattr(compiler, "known_architectures", lambda: ())
    monkeypatch.setattr(compiler, "find_nvrtc", lambda: None)
    assert cli.main(["compile", "--cuda"]) == 3
    assert "no GPU, and no compiler" in capsys.readouterr().err


def test_a_compiler_that_fails(nvcc, monkeypatch, capsys):
    def refuse(names, capability):
        raise compiler.CompileError("nvcc refused intra.cu:\nwhy")

    monkeypatch.setattr(compiler, "load_codes", refuse)
    assert cli.main(["compile", "--arch", "90"]) == 1
    assert "nvcc refused intra.cu" in capsys.readouterr().err


def test_a_cache_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("compile", "--cpu", "--cache", str(tmp_path / "file"))
    assert done.returncode == 1 and str(tmp_path / "file") in done.stderr and "Traceback" not in done.stderr


def run(*words, **variables):
    return subprocess.run([sys.executable, str(COUNT), *words], env=os.environ | variables, capture_output=True, text=True,
                          timeout=600)  # fmt: skip


@pytest.mark.slow
def test_nothing_is_compiled_after_it(tmp_path):
    """Not by any preset, nor the decoder, from a copy of the caches."""
    done = run("compile", "--cpu", "--cache", str(tmp_path / "made"))
    assert done.returncode == 0 and f"set H264LITE_CACHE={tmp_path / 'made'}" in done.stderr
    (tmp_path / "made").rename(tmp_path / "moved")
    alone = {"H264LITE_CACHE": str(tmp_path / "moved"), "H264LITE_CACHE_ALONE": "1"}
    clip, stream = tmp_path / "clip_64x48.yuv", tmp_path / "clip.264"
    clip.write_bytes(bytes(range(256)) * (3 * 64 * 72 // 256))
    for options in (["--preset", "ultrafast"], ["--preset", "placebo"], ["--me", "step"], ["--slices", "2", "--ssim"],
                    ["--me", "umh"], ["--cqm", "jvt"], ["--subme", "7", "--no-cabac", "--cqm", "jvt"],
                    ["--csv", str(tmp_path / "frames.csv")]):
        done = run("encode", str(clip), str(stream), "--device", "cpu", *options, **alone)
        assert done.returncode == 0 and done.stderr.splitlines()[-1] == "0 compilations", done.stderr
    done = run("decode", str(stream), str(tmp_path / "decoded.yuv"), **alone)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "0 compilations", done.stderr
