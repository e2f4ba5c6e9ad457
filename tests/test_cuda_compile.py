"""nvcc takes every kernel file for every architecture; the report of registers, spills and shared memory."""

import re

import pytest
from h264lite.cuda_src import compiler

# In mode_decision the registers of a called function are saved, once a macroblock and not in any loop over samples
NOT_HOT = {"mode_decision"}
needs_nvcc = pytest.mark.skipif(compiler.find_nvcc() is None, reason="no nvcc on this machine")


def report(name, architecture, folder):
    """{kernel: (registers, bytes spilled, bytes of shared memory)}"""
    include = compiler.write_tables(folder)
    target = ["-cubin", f"-arch=sm_{architecture}"]
    text = compiler.run_nvcc(name, target, folder / f"{name}.cubin", include, ("-Xptxas", "-v"))
    kernels = {}
    for part in re.split(r"Compiling entry function '", text)[1:]:
        kernel = part.split("'")[0]
        # an entry's own properties come first
        spill = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        used = re.search(r"Used (\d+) registers.*", part)
        shared = re.search(r"(\d+) bytes smem", used[0])
        kernels[kernel] = int(used[1]), int(spill[1]) + int(spill[2]), int(shared[1]) if shared else 0
    return kernels


@needs_nvcc
@pytest.mark.parametrize("name", compiler.module_names())
def test_no_kernel_spills(name, tmp_path, capsys):
    """On the card that the figures are for; other architectures in the slow test."""
    kernels = report(name, "90", tmp_path)
    assert kernels
    with capsys.disabled():
        for kernel, (registers, spilled, shared) in kernels.items():
            print(f"\n  sm_90 {name}.{kernel}: {registers} registers, {spilled} bytes spilled, {shared} shared", end="")
    assert not any(spilled for kernel, (_, spilled, _) in kernels.items() if kernel not in NOT_HOT)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("architecture", compiler.ARCHITECTURES)
def test_every_architecture(architecture, tmp_path):
    for name in compiler.module_names():
        kernels = report(name, architecture, tmp_path)
        print({k: v for k, v in kernels.items()})
        spilling = [kernel for kernel, (_, spilled, _) in kernels.items() if spilled and kernel not in NOT_HOT]
        assert not spilling, (architecture, kernels)


@needs_nvcc
@pytest.mark.slow
def test_fatbins_are_taken_while_the_sources_stand(tmp_path, monkeypatch):
    name = "interpolate"
    for path in compiler.HERE.iterdir():
        if path.suffix in (".cu", ".cuh"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(compiler, "HERE", tmp_path)
    compiler.module_key.cache_clear()
    compiler.build_fatbins(("80", "90"), [name])
    assert compiler.load_code(name, (9, 0)) == (tmp_path / f"{name}.fatbin").read_bytes()
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "cache"))
    with (tmp_path / f"{name}.cu").open("a") as file:
        file.write("// changed\n")
    compiler.module_key.cache_clear()
    assert compiler.load_code(name, (9, 0)) != (tmp_path / f"{name}.fatbin").read_bytes()
    compiler.module_key.cache_clear()
