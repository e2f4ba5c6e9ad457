"""Which sets of a test's parameters `make test` runs, where all of them take long: every second one, as on a chessboard.

Of parameters that multiply, a set runs if its positions in the lists add up to an even number; the others are `slow`. So
each value meets each value of any other parameter, as long as a third one is there. This is so for

- tests on the emulated GPU, whose threads run in ascending or in descending order (cuda_emulator/fixtures.py): a missing
  barrier gives another result in one of them, and a kernel meets both over the sets of its test,
- tests marked `half`.
"""

import gc
from collections.abc import Sequence

import pytest

ORDERS = {"emulated", "emulated-reversed"}
FEW = 2  # sets of other parameters, with which both orders run


def lists_of(item: pytest.Item) -> list[list[str]]:
    """The names of a test's parameters, those together that come from one list."""
    callspec = vars(item).get("callspec")
    if callspec is None:
        return []
    together = [_names(mark.args[0]) for mark in item.iter_markers("parametrize")]
    single = [[name] for name in callspec.params if not any(name in names for names in together)]
    return [*together, *single]


def _names(argument: str | Sequence[str]) -> list[str]:
    return [name.strip() for name in argument.split(",")] if isinstance(argument, str) else list(argument)


def is_order(item: pytest.Item, names: list[str]) -> bool:
    """Whether a list is that of the orders of the emulated GPU's threads, and one of them is asked for."""
    return names in (["device"], ["gpu"]) and vars(item)["callspec"].params[names[0]] in ORDERS


def mark_halves(items: list[pytest.Item]) -> None:
    """Mark every second set of one test function as slow. items: its sets, in the order of the lists."""
    values: dict[str, list[tuple[int, ...]]] = {}  # of a list, as identities, in the order in which they come
    places, others, ordered = [], set(), []
    for item in items:
        place, other = [], []
        lists = lists_of(item)
        for names in lists:
            value = tuple(id(vars(item)["callspec"].params[name]) for name in names)
            known = values.setdefault(names[0], [])
            if value not in known:
                known.append(value)
            place.append(known.index(value))
            other += [] if is_order(item, names) else [value]
        places.append(sum(place))
        others.add(tuple(other))
        ordered.append(any(is_order(item, names) for names in lists))
    for item, place, in_order in zip(items, places, ordered):
        if place % 2 and (item.get_closest_marker("half") or (in_order and len(others) > FEW)):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "half: every second set of its parameters is slow (tests/conftest.py)")


@pytest.hookimpl(tryfirst=True)  # before those are left out that -m does not ask for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.split("[")[0], []).append(item)
    for of_function in functions.values():
        mark_halves(of_function)


def pytest_collection_finish() -> None:
    """What is imported and collected lives as long as the process: the garbage collector need not go through it."""
    gc.collect()
    gc.freeze()
