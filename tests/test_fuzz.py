"""Seeded fuzzing: broken streams, and any options and contents, in processes whose arrays lie between pages without access.

$H264LITE_SEED gives other cases. tests/fuzz/campaign.py runs as many as one likes; docs and reports: SECURITY.md.
"""

import os
import random
import re

import pytest
from h264lite.standard.bits import NAL_PPS
from h264lite.standard.syntax import parse_pps, write_pps

from .fuzz import campaign, legal_cases, mp4_cases, mp4_files, mutate, seeds, selftest_cases, worker
from .fuzz.guard import GuardedNumpy

SEED = int(os.environ.get("H264LITE_SEED", 20261122))


def fuzz(kind: str, cases: int, **settings: object) -> campaign.Campaign:
    """A campaign that finds nothing wrong."""
    done = campaign.Campaign(kind, cases, SEED, shown=False, **settings)
    done.go()
    print(done.summary())
    assert not done.findings, "\n".join(done.findings)
    assert done.run == cases and 0 < done.refused < cases
    return done


@pytest.mark.parametrize("align", ["right", "left"])
def test_broken_streams(align: str) -> None:
    assert fuzz("decoder", 250, side=align).peak < 500


@pytest.mark.parametrize("align", ["right", "left"])
def test_several_streams_through_one_decoder(align: str) -> None:
    fuzz("sequences", 150, side=align)


def test_legal_rewrites_are_what_ffmpeg_shows() -> None:
    pytest.importorskip("av")
    done = fuzz("legal", 60)
    assert done.refused < 24


def test_mp4_files() -> None:
    assert fuzz("mp4", 150).peak < 500


def test_what_describes_broken_streams() -> None:
    fuzz("pages", 60)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cases"), [("legal", 3000), ("mp4", 10_000), ("pages", 3000)])
def test_many_rewrites_movies_and_pages(kind: str, cases: int) -> None:
    if kind == "legal":
        pytest.importorskip("av")
    fuzz(kind, cases, first=10_000)


def test_only_residuals_out_of_range_may_differ(monkeypatch) -> None:
    """Frames that differ from FFmpeg's pass where 8.5.12 excludes the residual, and only there."""
    pytest.importorskip("av")
    units = mutate.units_of(seeds.own(48, 32, 5, qp=20, keyint=5))
    at_pps = next(n for n, unit in enumerate(units) if unit.kind == NAL_PPS)
    pps = parse_pps(units[at_pps].rbsp)
    pps.pic_scaling_matrix_present_flag = 1
    pps.scaling.lists = [[255] * 16] * 6 + [[255] * 64] * 2 * pps.transform_8x8_mode_flag
    units[at_pps] = units[at_pps]._replace(rbsp=write_pps(pps))
    case = legal_cases.Case([mutate.stream_of(units, random.Random(0))], ("scaling",), 1 << 20)
    assert legal_cases.run(case, GuardedNumpy("none")).done == 5
    monkeypatch.setattr(legal_cases, "spoiled_frames", lambda stream: set())
    with pytest.raises(AssertionError):
        legal_cases.run(case, GuardedNumpy("none"))


def test_a_wrong_frame_and_a_wrong_sample_are_seen(monkeypatch) -> None:
    """What the new kinds compare does differ where the decoder or the reader is wrong."""
    pytest.importorskip("av")
    given, decode = legal_cases.material(), legal_cases.ours
    cases = [legal_cases.build(given, worker.random_of("legal", 1, n)) for n in range(12)]
    monkeypatch.setattr(legal_cases, "ours", lambda *a: [frame[:-1] + bytes((frame[-1] ^ 1,)) for frame in decode(*a)])
    count = 0
    for case in cases:
        try:
            assert legal_cases.run(case, GuardedNumpy("none")).refused
        except AssertionError:
            count += 1
    assert count > 6
    movies = mp4_cases.material()
    legal = [mp4_files.legal(movies.movies[0], random.Random(n)) for n in range(4)]
    for case in legal:
        mp4_cases.run(case, GuardedNumpy("none"))
        with pytest.raises(AssertionError):
            mp4_cases.run(case._replace(times=[(dts + 1, *rest) for dts, *rest in case.times]), GuardedNumpy("none"))


def test_random_options_sizes_and_contents() -> None:
    fuzz("encoder", 130)


def test_encodes_with_their_threads_passes_buffers_and_levels() -> None:
    fuzz("streams", 40)


@pytest.mark.slow
@pytest.mark.parametrize("align", ["right", "left"])
def test_many_encodes(align: str) -> None:
    fuzz("streams", 3000, side=align, first=10_000)


def test_hostile_statistics_of_a_first_pass() -> None:
    fuzz("statistics", 30)


@pytest.mark.slow
def test_many_hostile_statistics() -> None:
    fuzz("statistics", 2000, first=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("align", ["right", "left"])
def test_many_options_sizes_and_contents(align: str) -> None:
    fuzz("encoder", 3000, side=align, first=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("align", ["right", "left"])
def test_many_broken_streams(align: str) -> None:
    fuzz("decoder", 10_000, side=align, first=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("align", ["right", "left"])
def test_many_sequences(align: str) -> None:
    fuzz("sequences", 1500, side=align, first=10_000)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cases"), [("decoder", 2000), ("sequences", 200), ("encoder", 500), ("streams", 300)])
def test_with_bounds_checked(kind: str, cases: int) -> None:
    fuzz(kind, cases, side="none", first=100_000, boundscheck=True)


def test_a_campaign_finds_what_is_wrong(monkeypatch) -> None:
    """The case's number leads to the same way for things to go wrong as the campaign tells."""
    monkeypatch.setattr(campaign, "MOST_SECONDS", 0.4)
    monkeypatch.setattr(campaign, "MOST_MEGABYTES", 400)
    expected = {"behind": "ended with -11", "foreign": "ZeroDivisionError", "slow": r"takes 0.\d s", "large": r"takes 5.. MB"}
    ways = [selftest_cases.build(selftest_cases.WAYS, worker.random_of("selftest", 1, n)) for n in range(30)]
    for way, said in expected.items():
        one = campaign.Campaign("selftest", 1, 1, ways.index(way), shown=False)
        one.go()
        assert re.search(said, "\n".join(one.findings)), one.findings
        assert f"--seed 1 --first {ways.index(way)} --cases 1" in one.findings[0]
        assert (campaign.OUT / f"selftest-1-{ways.index(way)}.bin").read_text() == way
    for way, side in (("before", "left"), ("in place", "left"), ("in place", "right"), ("refused", "none")):
        done = campaign.Campaign("selftest", 1, 1, ways.index(way), side=side, shown=False)
        done.go()
        assert bool(done.findings) == (way == "before") and done.refused == (way == "refused")
