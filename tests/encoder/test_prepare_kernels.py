"""Kernels before the first frame: the list of a set of options, the processes that compile, the counter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.encoder import compile_kernels, prepare_kernels, warm_up
from h264lite.encoder.settings.config import Config
from h264lite.jit import cache_checks, compiling, listing
from h264lite.jit.numba_version import is_possible

from ..support.steady import steady

pytestmark = pytest.mark.skipif(not is_possible(), reason="kernels are kept in Numba's cache")
OPTIONS = ({}, {"profile": "baseline", "me": "step"}, {"bframes": 1, "no_cabac": True}, {"bitrate": 300},
           {"cqm": "jvt"})  # fmt: skip
FRAMES = [np.zeros((48, 32), np.uint8)] * 6


def config_of(**options):
    return Config.from_options(width=32, height=32, device="cpu", **options)


@pytest.fixture
def fresh(monkeypatch):
    """No set of options was looked at, and other processes may be started."""
    monkeypatch.setattr(prepare_kernels, "_ready", set())
    monkeypatch.setattr(compiling, "_now", compiling._Compilations())
    monkeypatch.delenv(prepare_kernels.VARIABLE, raising=False)


# ---- lists
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_encode_needs_no_other_kernels_than_those_of_the_list(options, fresh):
    """In a process that has loaded none before: what it loads or compiles is on the list."""
    names = set(prepare_kernels.kernels_of(config_of(**options, threads=2)).names)
    code = f"""
import json, numpy as np
from h264lite.jit import numba_free
find, used = numba_free._find, []
def look(function, described):
    source, name = numba_free._name(function)
    path = numba_free._file(source, name, numba_free._host(), described, source)
    used.append(source.resolve().relative_to(numba_free.Path(numba_free.__file__).resolve().parents[1]).as_posix() + ":" + path.name)
    return find(function, described)
numba_free._find = look
from h264lite import Encoder
with Encoder(32, 32, device="cpu", threads=2, **{options!r}) as encoder:
    for k in range(6):
        encoder.encode(np.full((48, 32), 20 * k, np.uint8))
    encoder.flush()
print(json.dumps(used))
"""  # noqa: E501
    root = str(Path(h264lite.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": root, prepare_kernels.VARIABLE: "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    used = json.loads(done.stdout.splitlines()[-1])
    assert len(used) > 15 and not set(used) - names


def names_of(**options):
    return set(prepare_kernels.kernels_of(config_of(**options, threads=1)).names)


@pytest.mark.parametrize("option", ({"me": "umh"}, {"bits_by_kind": True}, {"cqm": "jvt"}), ids=str)
def test_all_kernels_are_those_of_any_options(option, fresh):
    """What `h264lite compile` compiles, and a wheel has: also where B frames, costs or CAVLC come together with an option."""
    (name,) = option
    variants = [variant for variant in compile_kernels._VARIANTS if name in variant or "subme" in variant]
    compiled = names_of().union(*(names_of(**compile_kernels._STEADY | variant) for variant in variants))
    for others in ({}, {"bframes": 0, "subme": 1}, {"subme": 6, "bframes": 1}, {"subme": 6, "no_cabac": True}):
        assert not names_of(**option, **others) - compiled


def test_options_choose_other_kernels(fresh):
    first, second = (set(prepare_kernels.kernels_of(config_of(**options)).names) for options in OPTIONS[:2])
    for kernel in ("intra.intra-", "deblock.deblock-", "write_slices-"):  # the same functions for other types
        (one,), (other,) = ([name for name in names if kernel in name] for names in (first, second))
        assert one != other
    assert any("mode_decision_b" in name for name in first) and not any("mode_decision_b" in name for name in second)


def test_what_chooses_kernels():
    """The values of a QP and of a rate choose none, the ways of rate control do."""
    texts = [prepare_kernels._options(config_of(**options)) for options in (
        {"qp": 26}, {"qp": 40}, {"crf": 20}, {"crf": 30}, {"bitrate": 100}, {"bitrate": 900}, {"threads": 3}, {"threads": 1})]
    assert texts[0] == texts[1] and texts[2] == texts[3] and texts[4] == texts[5] and texts[6] != texts[7]
    assert len({texts[0], texts[2], texts[4]}) == 3
    assert warm_up.choosing(config_of(bitrate=100))["bitrate"]


def test_lists_of_other_sources_do_not_count(fresh):
    name = prepare_kernels.kernels_of(config_of(**steady({}))).names[0]
    source, _, file = name.partition(":")
    kernel, _, stamp = file.removesuffix(".nbd").rpartition(".")
    assert listing.are_kept([f"{source}:{kernel}.{'0' * len(stamp)}.nbd"]) is None
    assert listing.are_kept([f"{source}:nothing.py311.0.{stamp}.nbd"]) is False
    assert listing.are_kept(["no/such.py:file.0.nbd"]) is None


# ---- processes
CHILD = """
import json, sys, time
names = [f"a.py:a.k{k}-1.py311.0.0.nbd" for k in range(6)]
print(json.dumps([names, names[1:]]), flush=True)
for line in sys.stdin:
    if line.strip().endswith("fails"): sys.exit(1)
    print(json.dumps(True), flush=True)
"""


@pytest.fixture
def children(monkeypatch, tmp_path, fresh):
    """Processes that compile nothing; what their lists are, and the lines that are said."""
    started, said = [], []
    begin = subprocess.Popen

    def start(command, **options):
        started.append(command)
        return begin([sys.executable, "-c", children_code[0]], **options)

    children_code = [CHILD]
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(prepare_kernels, "_EACH", 0.0)
    place = warm_up.CacheFolder(tmp_path, True, (), (tmp_path / "image", tmp_path))
    monkeypatch.setattr(prepare_kernels, "kernel_cache_folder", lambda: place)
    monkeypatch.setattr(prepare_kernels, "are_kept", lambda names: True)
    monkeypatch.setattr(os, "sched_getaffinity", lambda number: range(8))
    return started, said, children_code


def test_missing_kernels_are_compiled_by_several_processes(children):
    started, said, _ = children
    with compiling.messages_to(said.append):
        assert prepare_kernels.prepare(config_of(**steady({})))
    assert len(started) == prepare_kernels.MOST and compiling.count() == 5
    assert said[0].startswith("first run: compiling 5 kernels for this processor, once; about ")
    assert any(text.startswith("compiling kernels: ") and " of 5, about " in text for text in said[1:-1])
    assert said[-1].startswith("5 kernels compiled in ")
    assert prepare_kernels.prepare(config_of(**steady({}))) and len(started) == prepare_kernels.MOST
    prepare_kernels._ready.clear()  # as another process: the list is kept
    assert prepare_kernels.prepare(config_of(**steady({}))) and len(started) == prepare_kernels.MOST


def test_processes_that_end_leave_their_kernels_to_the_encode(children, tmp_path):
    _, said, code = children
    code[0] = CHILD.replace('endswith("fails")', 'endswith("nbd")')
    with compiling.messages_to(said.append):
        assert prepare_kernels.prepare(config_of(**steady({})))
    assert compiling.count() == 0 and said[-1].startswith("0 kernels compiled")


def test_kernels_that_no_cache_takes_are_compiled_by_the_encode(children):
    """As on a full disk: the encode says why."""
    _, said, code = children
    code[0] = CHILD.replace("dumps(True)", "dumps(False)")
    with compiling.messages_to(said.append):
        assert not prepare_kernels.prepare(config_of(**steady({})))
    assert compiling.count() == 0 and not compiling._now.expects_none and not any("compiled in" in text for text in said)


def test_a_temporary_folder_is_named(children, monkeypatch):
    """Which the processes that compile cannot do."""
    said = []
    monkeypatch.setattr(prepare_kernels, "second_best", lambda folder: f"kept in {folder.folder}")
    monkeypatch.setattr(cache_checks, "_reported", set())
    monkeypatch.setattr(cache_checks, "_listener", said.append)
    for _ in range(2):
        assert prepare_kernels.prepare(config_of(**steady({})))
        prepare_kernels._ready.clear()
    assert said == [f"kept in {prepare_kernels.kernel_cache_folder().folder}"]


def test_a_process_that_cannot_list(children):
    started, said, code = children
    code[0] = "raise SystemExit(1)"
    with compiling.messages_to(said.append):
        assert not prepare_kernels.prepare(config_of(**steady({})))
    assert not said and len(started) == 1


@pytest.mark.parametrize("why", ("variable", "folder", "start"))
def test_without_other_processes(children, monkeypatch, why):
    started, said, _ = children
    if why == "variable":
        monkeypatch.setenv(prepare_kernels.VARIABLE, "0")
    elif why == "folder":
        monkeypatch.setattr(prepare_kernels, "kernel_cache_folder", lambda: prepare_kernels_folder)
    else:
        monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: (_ for _ in ()).throw(OSError("no more processes")))
    with compiling.messages_to(said.append):
        assert not prepare_kernels.prepare(config_of(**steady({})))
    assert not started and not said


prepare_kernels_folder = warm_up.CacheFolder(None, False, ())


def test_an_interrupt_ends_the_processes(children, monkeypatch):
    _, _, code = children
    code[0] = CHILD.replace("    print(json.dumps(True", "    time.sleep(60)\n    print(json.dumps(True")
    processes = []
    begin = prepare_kernels._Compiler.__init__

    def make(self, text):
        begin(self, text)
        processes.append(self.process)

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare_kernels._Compiler, "__init__", make)
    monkeypatch.setattr(prepare_kernels._Work, "show", interrupt)
    with compiling.messages_to(lambda text: None), pytest.raises(KeyboardInterrupt):
        prepare_kernels.prepare(config_of(**steady({})))
    assert processes and all(process.returncode is not None for process in processes)
    assert not compiling._now.depth


def test_kernels_that_share_helpers_are_compiled_by_one_process():
    compiled = []

    class Compiler:
        at_work = ""

        def compile(self, name):
            compiled.append((self, prepare_kernels._function(name)))

    names = [f"x.py:x.{name}-1.py311.0.0.nbd" for name in ("intra", "write_slices", "inter_residual", "ssd")]
    first, second = Compiler(), Compiler()
    work = prepare_kernels._Work(list(names), lambda text: None)
    for compiler in (first, second, second, first):
        work.next(compiler)
    assert compiled == [(first, "intra"), (second, "write_slices"), (second, "ssd"), (first, "inter_residual")]
    work = prepare_kernels._Work(names[::2], lambda text: None)
    work.next(first)
    work.next(second)  # better than to wait
    assert compiled[-1] == (second, "inter_residual") and not work.left


def test_the_longest_kernels_begin():
    assert prepare_kernels._seconds("cpu_simd/intra/intra.py:intra.intra-314.py311.a.b.nbd") > 5
    assert prepare_kernels._seconds("a/b.py:b.small-3.py311.a.b.nbd") == prepare_kernels._OTHERS
