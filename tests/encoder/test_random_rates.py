"""Random settings of rates (hypothesis): see tests/fuzz/rate_cases.py."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, seed, settings

from ..fuzz import rate_cases


def checked(examples: int, number: int) -> Counter[str]:
    """Runs so many cases by the seed `number`; how many were refused, encoded, with a buffer and with an average rate."""
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(rate_cases.cases())
    def one(case: rate_cases.Case) -> None:
        config = rate_cases.run(case)
        counts["refused" if config is None else "encoded"] += 1
        if config is not None:
            counts["buffer"] += config.hrd.buffer is not None
            counts["bitrate"] += config.rate.bitrate > 0

    one()
    return counts


@pytest.mark.parametrize("number", range(2))
def test_some(number):
    checked(100, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10, 20))
def test_ten_thousand(number):
    counts = checked(1000, number)
    print(counts)
    assert min(counts["refused"], counts["buffer"], counts["bitrate"]) > 50 and counts["encoded"] > 500, counts
