"""The start of a command: what an encode does not need is not imported."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from h264lite.cli import cli

SCRIPT = """
import sys
if {gpu}:
    from h264lite.cuda_src.runtime import driver
    from h264lite.tests.cuda_emulator.driver import EmulatedDriver
    driver.use_driver(EmulatedDriver())
from h264lite.cli.cli import main
code = main(sys.argv[1:])
print(code, *sys.modules)
"""
SERVED = sys.platform == "linux" and os.uname().machine == "x86_64"
PLAIN = ("--profile", "baseline", "--qp", "27", "--quiet")
# Imported only where an option asks for them
OF_OPTIONS = {
    f"h264lite.{name}" for name in (
        "encoder.reordering", "encoder.decisions.adaptive_quantisation", "encoder.decisions.adaptive_types",
        "encoder.decisions.buffer_control", "encoder.decisions.given_types", "scheduler.lookahead.host_costs",
        "encoder.decisions.macroblock_tree", "encoder.decisions.qp_source", "encoder.decisions.rate_control",
        "encoder.decisions.second_pass", "encoder.decisions.weights", "encoder.workers.workers", "encoder.files.output_mp4",
        "scheduler.lookahead.gpu_or_host", "cpu_simd.decide.bipredict",
        "cpu_simd.decide.mode_decision_b", "cpu_simd.lookahead.macroblock_tree",
        "cli.charts.chart", "cli.charts.timeline", "analysis.analyse", "decoder.decoder", "report", "cluster.pipeline",
        "scheduler.hybrid.planner", "mp4.playlists", "encoder.files.images", "encoder.files.video_av",
        "encoder.frames.reader", "encoder.compile_kernels",
    )
}  # fmt: skip
SLOW = ("numba", "scipy", "av", "PIL", "matplotlib", "ssl", "email", "http", "xml")  # to import, and not needed


def imported(folder, gpu, *options):
    """Names of the modules that an encode has imported, in a process of its own."""
    clip = folder / "clip_48x32_25.yuv"
    clip.write_bytes(np.random.default_rng(1).integers(0, 256, 3 * 48 * 48, np.uint8).tobytes())
    words = [sys.executable, "-c", SCRIPT.format(gpu=gpu), "encode", clip, folder / "out.264", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment, cwd=folder)
    code, *modules = done.stdout.split()
    assert code == "0" and not done.stderr.replace("h264lite [info]", "").count("error"), done.stderr
    return set(modules)


@pytest.mark.skipif(not SERVED, reason="see jit/numba_free.py")
@pytest.mark.parametrize("device", ("cpu", "cuda"))
def test_an_encode_with_compiled_kernels_imports_no_numba(tmp_path, device):
    options = (*PLAIN, "--device", device)
    imported(tmp_path, device == "cuda", *options)  # compiles what is missing
    modules = imported(tmp_path, device == "cuda", *options)
    assert not {name for name in modules if name.partition(".")[0] in SLOW}
    assert not modules & OF_OPTIONS
    assert ("h264lite.cuda_src.runtime.device" in modules) == (device == "cuda")
    assert cli.main(["encode", str(tmp_path / "clip_48x32_25.yuv"), str(tmp_path / "here.264"), *options[:-1], "cpu"]) == 0
    assert (tmp_path / "here.264").read_bytes() == (tmp_path / "out.264").read_bytes()


def test_doctor_imports_no_numba(tmp_path):
    """With the kernels of default options compiled."""
    code = "import sys\nfrom h264lite.cli.cli import main\n" \
           "code = main(['doctor', '--json'])\nprint(code, 'numba' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    facts = json.loads(done.stdout)
    if not facts["processor"]["compiled"]:
        pytest.skip("kernels of default options are not compiled")
    assert done.stderr.split()[-1] == str(not SERVED)


def test_names_of_modules_are_true():
    from importlib.util import find_spec

    assert all(find_spec(name) is not None for name in OF_OPTIONS)
