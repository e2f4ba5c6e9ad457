"""Numba's private interfaces: what counts as a difference, and the same bytes with ordinary njit where one is found."""

import configparser
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from h264lite import Encoder
from h264lite.jit import interfaces
from numba.core import codegen

ROOT = Path(interfaces.__file__).parents[1]
LACKING = "import numba.core.compiler_machinery as machinery\ndel machinery.LoweringPass\n"
NAME = "numba.core.compiler_machinery.LoweringPass"
SAID = f"Numba {numba.__version__} has no {NAME}: kernels are compiled and kept in its ordinary way"

KERNELS = """
import sys
import numpy as np
from h264lite.jit.intrinsics import outlined
from h264lite.jit.kernel import closed_kernel, helper, kernel, quick_kernel

@helper
def double(values):
    outlined()
    for i in range(values.size):
        values[i] *= 2

@kernel
def any_kernel(values, n):
    double(values)
    return values[n]

@closed_kernel
def closed(values):
    double(values)
    return any_kernel(values, 1)

@quick_kernel
def quick(values):
    double(values)
    return any_kernel(values, 2)

values = np.arange(4)
print(closed(values), quick(values), double(values), *values, "h264lite.jit.parts" in sys.modules,
      sum(sum(entry.stats.cache_hits.values()) for entry in (closed, quick)))
"""

ENCODE = """
import configparser
import hashlib
import numpy as np
from h264lite import Encoder
frames = np.random.default_rng(5).integers(0, 256, (3, 96, 64), np.uint8)
with Encoder(64, 64, device="cpu", threads=2, qp=26, bframes=0) as encoder:
    packets = [packet for frame in frames for packet in encoder.encode(frame)] + encoder.flush()
print(hashlib.sha256(b"".join(bytes(packet.data) for packet in packets)).hexdigest())
"""


def run(tmp_path, script, before=LACKING, **variables):
    """Runs a script in a process of its own: (lines of standard output, standard error). variables: of its environment."""
    path = tmp_path / "script.py"
    if not path.exists() or path.read_text() != before + script:  # Numba's cache knows sources by their times
        path.write_text(before + script)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT.parent)} | variables
    done = subprocess.run([sys.executable, str(path)], env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_this_numba_is_as_expected():
    assert interfaces.why_ordinary() == ""


def test_the_versions_are_those_of_the_package():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    since, before = (".".join(map(str, version)) for version in (interfaces.SINCE, interfaces.BEFORE))
    assert f"numba >= {since}, < {before}" in setup["options"]["install_requires"]


@pytest.mark.parametrize("version, known", [((0, 59), 0), ((0, 60), 1), ((0, 68), 1), ((0, 69), 0), ((1, 0), 0)])
def test_versions(monkeypatch, version, known):
    monkeypatch.setattr(interfaces.numba, "version_info", type("Version", (), {"short": version}))
    assert bool(interfaces._difference()) != bool(known)


def test_a_missing_attribute_is_a_difference(monkeypatch):
    monkeypatch.delattr(codegen.CPUCodeLibrary, "_optimize_final_module")  # which JITCodeLibrary inherits
    assert interfaces._difference() == "has no numba.core.codegen.JITCodeLibrary._optimize_final_module"


def test_a_missing_module_is_a_difference(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.core.typed_passes", None)
    assert interfaces._difference() == "has no numba.core.typed_passes.IRLegalization"


def test_kernels_by_ordinary_njit(tmp_path):
    """One warning; the second process loads what the first one kept."""
    for hits in (0, 2):
        lines, errors = run(tmp_path, KERNELS)
        assert lines == [f"4 32 None 0 32 64 96 False {hits}"]
        assert errors.count("RuntimeWarning") == 1 and SAID in errors


def test_kernels_of_other_systems_are_in_numbas_cache(tmp_path):
    """Linked as here, and without a warning."""
    elsewhere = "from h264lite.jit import numba_version\nimport sys\nsys.platform = 'other'\nnumba_version.is_possible()\n" \
                "sys.platform = 'linux'\n"
    for hits in (0, 2):
        lines, errors = run(tmp_path, KERNELS + "print(closed.address(values) > 0)\n", elsewhere)
        assert lines == [f"4 32 None 0 32 64 96 True {hits}", "True"] and "Warning" not in errors
    assert not list(tmp_path.rglob("*.nbd"))


def test_kernels_without_a_folder(tmp_path):
    """Numba refuses to cache; they are compiled all the same."""
    blocked = "from numba.core.caching import CompileResultCacheImpl\nCompileResultCacheImpl._locator_classes = []\n"
    lines, _ = run(tmp_path, KERNELS, LACKING + blocked)
    assert lines == ["4 32 None 0 32 64 96 False 0"]


def test_doctor_tells(tmp_path):
    script = "from h264lite.cli import doctor\nimport json\nprint(json.dumps(doctor.examine()))\n"
    facts = json.loads(run(tmp_path, script)[0][0])
    assert facts["processor"]["why_ordinary"].startswith(SAID)
    assert [text.startswith(SAID) for text in facts["problems"]].count(True) == 1
    assert not run(tmp_path, script, "")[0][0].count(SAID)


@pytest.mark.slow
def test_the_same_stream_by_ordinary_njit(tmp_path):
    lines, errors = run(tmp_path, ENCODE, NUMBA_OPT="2")  # other kernels than this checkout has kept: those need no Numba
    assert SAID in errors
    frames = np.random.default_rng(5).integers(0, 256, (3, 96, 64), np.uint8)
    with Encoder(64, 64, device="cpu", threads=2, qp=26, bframes=0) as encoder:
        packets = [packet for frame in frames for packet in encoder.encode(frame)] + encoder.flush()
    assert lines == [hashlib.sha256(b"".join(bytes(packet.data) for packet in packets)).hexdigest()]
