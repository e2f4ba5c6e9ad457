"""Which sets of a test's parameters `make test` runs, where all of them take long: every second one, as on a chessboard.

Of parameters that multiply, a set runs if its positions in the lists add up to an even number; the others are `slow`. So
each value meets each value of any other parameter, as long as a third one is there. This is so for

- tests on the emulated GPU, whose threads run in ascending or in descending order (cuda_emulator/fixtures.py): a missing
  barrier gives another result in one of them, and a kernel meets both over the sets of its test,
- tests marked `half`.
"""

import gc

import pytest

ORDERS = {"emulated", "emulated-reversed"}
FEW = 2  # sets of other parameters, with which both orders run


def positions(item: pytest.Item) -> dict[str, int]:
    """Where a test's parameters stand in their lists; those that stand in one list together count once."""
    call = getattr(item, "callspec", None)
    if call is None:
        return {}
    together = [names for mark in item.iter_markers("parametrize") for names in [_names(mark.args[0])]]
    repeated = {name for names in together for name in names[1:]}
    return {name: n for name, n in call.indices.items() if name not in repeated}


def _names(argument: str | tuple[str, ...] | list[str]) -> list[str]:
    return [name.strip() for name in argument.split(",")] if isinstance(argument, str) else list(argument)


def order_of(item: pytest.Item) -> str | None:
    """The name of the parameter that is an order of the emulated GPU's threads."""
    call = getattr(item, "callspec", None)
    return next((name for name in ("device", "gpu") if call and call.params.get(name) in ORDERS), None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "half: every second set of its parameters is slow (tests/conftest.py)")


@pytest.hookimpl(tryfirst=True)  # before those are left out that -m does not ask for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every second set as slow."""
    sets: dict[str, set[tuple[int, ...]]] = {}  # of other parameters than the order, by function
    for item in items:
        if order := order_of(item):
            others = tuple(n for name, n in positions(item).items() if name != order)
            sets.setdefault(item.nodeid.split("[")[0], set()).add(others)
    for item in items:
        is_half = item.get_closest_marker("half") or (order_of(item) and len(sets[item.nodeid.split("[")[0]]) > FEW)
        if is_half and sum(positions(item).values()) % 2:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What is imported and collected lives as long as the process: the garbage collector need not go through it."""
    gc.collect()
    gc.freeze()
