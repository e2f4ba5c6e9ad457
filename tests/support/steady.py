"""Options with a constant QP and P frames alone, for tests that are about something else."""

from collections.abc import Iterable, Mapping

_RATES = {"qp": "-q", "crf": "--crf", "bitrate": "-B"}


def steady(options: Mapping[str, object]) -> dict[str, object]:
    """Keyword arguments with QP 26 and no B frames where they say nothing else."""
    said = any(options.get(name) is not None for name in _RATES)
    return {"bframes": 0, **({} if said else {"qp": 26}), **options}


def steady_words(words: Iterable[object]) -> list[str]:
    """The same for the words of a command line."""
    texts = list(map(str, words))
    said = {word.partition("=")[0] for word in texts}
    rates = {f"--{name}" for name in _RATES} | set(_RATES.values())
    return [*texts, *(() if said & rates else ("--qp", "26")), *(() if said & {"--bframes", "-b"} else ("--bframes", "0"))]
