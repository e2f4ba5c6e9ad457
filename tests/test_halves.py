"""What tests/conftest.py leaves to `make test-all`: every second set of parameters, and no order of threads for good."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def collected(file: str, marks: str) -> set[str]:
    """Names of tests in a file of tests/ by an expression of marks."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "-m", marks, f"tests/{file}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    return {line.split("::", 1)[1] for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize("file", ("cuda_src/test_cuda_rd_candidates.py", "cuda_src/test_cuda_intra.py"))
def test_each_set_runs_in_one_order(file):
    fast, slow = (collected(file, f"{mark} and not gpu") for mark in ("not slow", "slow"))
    sets = Counter(re.sub("emulated(-reversed)?-", "", name) for name in fast if "-" in name.replace("emulated-reversed", ""))
    assert not fast & slow and set(sets.values()) == {1} and len(sets) > 20
    for function in {name.split("[")[0] for name in fast}:
        mine = [name for name in fast if name.split("[")[0] == function]
        assert {"emulated-reversed" in name for name in mine} == {False, True}, function
    if "rd_candidates" in file:
        orders = {("reversed" in name, kind) for name in fast for kind in ("noise", "extremes", "waves")
                  if re.match(rf"test_twin.*-{kind}\]", name)}  # fmt: skip
        assert len(orders) == 6, "each kind of picture in both orders"


def test_every_pair_of_values_is_among_the_half():
    fast, slow = (collected("cpu_simd/test_inter_residual.py", mark) for mark in ("not slow", "slow"))
    sets = [re.findall(r"\[(.*)\]", name)[0].split("-") for name in fast if "reconstruction_is_the_decoders" in name]
    assert len(sets) == 18 and sum("reconstruction_is_the_decoders" in name for name in slow) == 18
    for a, b, count in ((0, 1, 12), (0, 2, 12), (1, 2, 9)):
        assert len({(one[a], one[b]) for one in sets}) == count
