"""Seeded fuzzing: broken streams, and any options and contents, in processes whose arrays lie between pages without access.

$H264LITE_SEED gives other cases. tests/fuzz/campaign.py runs as many as one likes; docs and reports: SECURITY.md.
"""

import os
import re

import pytest

from .fuzz import campaign, selftest_cases, worker

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
    assert fuzz("decoder", 700, side=align).peak < 500


@pytest.mark.parametrize("align", ["right", "left"])
def test_several_streams_through_one_decoder(align: str) -> None:
    fuzz("sequences", 150, side=align)


def test_random_options_sizes_and_contents() -> None:
    fuzz("encoder", 400)


def test_hostile_statistics_of_a_first_pass() -> None:
    fuzz("statistics", 60)


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
@pytest.mark.parametrize(("kind", "cases"), [("decoder", 2000), ("sequences", 200), ("encoder", 500)])
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
