"""Makes the encoder for some settings: one pipeline, lanes for several GOPs, or worker processes."""

from collections.abc import Callable
from contextlib import suppress

from ..scheduler.trace import Trace
from .frame_pipeline import FramePipeline
from .gops.gops import Gops, NoThreads, count_lanes, lane_settings
from .gops.shared_gops import SharedGops, shares_gops
from .settings.config import Config


def make_pipeline(
    config: Config, keep: bool, warn: Callable[[str], None] | None, trace: Trace | None, frames: int | None = None,
    length: int | None = None,
) -> FramePipeline:  # fmt: skip
    """The encoder for these settings. frames: see count_lanes; length: frames of the input in any case, None: unknown."""
    from .pipeline import Pipeline  # after the start of worker processes; tests put another one in its place

    if frames is not None and frames > config.types.keyint and shares_gops(config):
        with suppress(NoThreads):
            return SharedGops(config, frames, keep, warn, trace)
    lanes = count_lanes(config, frames)
    if len(config.machine.devices) > 1:
        from .workers.process import end_early
        from .workers.workers import Workers, uses_workers

        try:
            if uses_workers(config, length):
                return Workers(config, lanes, keep, warn, trace)
        except (NoThreads, OSError):  # limits of the system: fewer threads are needed for lanes of this process
            pass
        finally:
            end_early()  # those that were not taken
    one: Callable[[Config, bool, Callable[[str], None] | None, Trace | None], FramePipeline] = Pipeline
    if config.holds_frames:
        from .reordering import ReorderingPipeline  # and the lookahead

        one = ReorderingPipeline
    if lanes == 1:
        return one(config, keep, warn, trace)
    while lanes > 1:
        try:
            return Gops(config, lanes, keep, warn, trace)
        except NoThreads:
            lanes //= 2
    return one(lane_settings(config, 0, 1), keep, warn, trace)
