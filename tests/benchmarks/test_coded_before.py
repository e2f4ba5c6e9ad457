"""The sets of benchmarks/coded_before.py: ten clips and more, none in both; forms of a clip are what they are called."""

import numpy as np
import pytest
from h264lite.benchmarks import coded_before


def test_sets_share_no_clip():
    choose, judge = (coded_before.SETS[name] for name in ("choose", "judge"))
    assert len({*choose, *judge}) == len(choose) + len(judge) >= 10


def test_forms_of_a_clip(monkeypatch):
    pytest.importorskip("av")
    monkeypatch.setattr(coded_before, "pan", lambda frames: PAN[:frames])
    coded_before.clip_of.cache_clear()
    original, before, cut = (coded_before.clip_of(coded_before.PAN, form, 8).pictures for form in coded_before.FORMS)
    assert len(original) == len(before) == 8 and len(cut) == 8 - coded_before.CUT
    assert all(np.array_equal(a, b) for a, b in zip(before[coded_before.CUT :], cut))
    error = np.square(original[3].astype(int) - before[3]).mean()
    assert 0 < error < 40
    coded_before.clip_of.cache_clear()


def test_the_synthetic_clip_moves():
    assert PAN[0].shape == (432, 352) and PAN[0].dtype == np.uint8
    luma = [picture[:288].astype(int) for picture in PAN]
    still = np.abs(luma[5] - luma[0]).mean()
    moved = np.abs(luma[5][:-3, :-12] - luma[0][3:, 12:]).mean(), np.abs(luma[0][:-3, :-12] - luma[5][3:, 12:]).mean()
    assert min(moved) < still / 2


PAN = coded_before.pan(8)
