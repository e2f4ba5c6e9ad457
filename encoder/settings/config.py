"""The settings of one encode, checked and complete: they exist before any allocation."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ...scheduler.coding_settings import CodingSettings
from ...scheduler.machine_settings import MachineSettings
from ..errors import InputError, OptionError, in_python
from .buffer import average_rate, buffer_of, nal_factor, requested_buffer
from .device import resolve_machine
from .frame_requests import read_qpfile
from .groups import HrdSettings, RateSettings, ReportSettings, StreamSettings, TypeSettings, VideoSettings
from .option_types import OptionValues
from .options import ALL, API, OPTIONS, Option
from .pass_file import READING, WRITING, check_pass, read_pass
from .pyramid import dpb_frames, reordered_frames
from .resolve import (
    check_sar,
    check_slices,
    resolve_deblocking,
    resolve_level,
    resolve_profile,
    resolve_psy,
    resolve_qps,
    resolve_refresh,
    resolve_subme,
    resolve_types,
    with_rate_factor,
)
from .scaling_lists import FLAT
from .user_options import read_options, translated

_BORDER = 24  # samples that sub-sample filters and partitions may read beyond the motion range
_PAD_UNIT = 16
BT709 = {"colorprim": 1, "transfer": 1, "colormatrix": 1, "range": 0}  # in limited range
Group = TypeVar("Group")


class Config(NamedTuple):
    """One encode, by subject. The names of fields differ between all subjects."""

    video: VideoSettings
    stream: StreamSettings
    types: TypeSettings
    rate: RateSettings
    hrd: HrdSettings
    coding: CodingSettings
    machine: MachineSettings
    reports: ReportSettings

    @property
    def holds_frames(self) -> bool:
        """Whether frames wait until later ones have come: for their types, or since coding order is not display order."""
        return self.coding.has_b_frames or self.decides_by_samples

    @property
    def decides_by_samples(self) -> bool:
        """Whether types, order or QPs of frames follow from their samples, so that one place reads all frames in order."""
        return self.types.b_adapt > 0 or self.types.scenecut > 0 or self.rate.crf is not None

    @property
    def decides_beside(self) -> bool:
        """Whether a CPU may decide about frames while others are coded: no later call may refuse a frame."""
        return self.decides_by_samples and self.rate.first_pass is None and not self.machine.waits_for_packets

    @property
    def planned_frames(self) -> int:
        """Frames that wait, decided, for the plan of a bit rate, or of a buffer as many as fill it: of the lookahead."""
        buffer, most = self.hrd.buffer, self.types.rc_lookahead
        if self.rate.bitrate and self.rate.first_pass is None:
            return most
        return 0 if buffer is None else min(most, -int(-buffer.size * self.video.fps // buffer.rate))

    @property
    def values(self) -> OptionValues:
        """All fields by name."""
        return {name: value for group in self for name, value in zip(group._fields, group)}

    @classmethod
    def from_options(cls, **options: Any) -> "Config":
        """Check all options together; OptionError names the wrong one."""
        legal = [row for row in OPTIONS if row.scope in (ALL, API) or row.name in ("frames", "seek")]
        options, lines = translated(options, {row.name for row in legal})
        for line in lines:
            warnings.warn(in_python(line), RuntimeWarning, stacklevel=4)
        values = read_options(options, legal)
        if values["bitrate"]:
            options = with_rate_factor(options, values["pass_"] in READING)
        for name in ("width", "height"):
            if values[name] is None:
                raise OptionError(f"{name} is missing")
        resolve_deblocking(values, options)
        resolve_refresh(values, options)
        resolve_qps(values, options)
        resolve_profile(values, options)
        resolve_subme(values)
        resolve_psy(values, options)
        check_pass(values, options)
        values["bits_by_kind"] = values["bits_by_kind"] or values["pass_"] in WRITING
        values["zones"] = values["zones"] or ()
        values["requests"] = read_qpfile(values["qpfile"])
        if values["me"] != "step" and options.get("step_grid") is not None:
            raise OptionError("has no effect without --me step", "step-grid")
        mb_width, mb_height = -(-values["width"] // 16), -(-values["height"] // 16)
        check_slices(values, mb_height)
        check_sar(values)
        rate, size = requested_buffer(values, options)
        high = values["transform_8x8_mode"] or values["scaling_lists"] != FLAT
        level = resolve_level(values, options, (rate or average_rate(values["bitrate"], high), size, nal_factor(high)))
        resolve_types(values, options)
        if rate or (values["bitrate"] and values["pass_"] not in READING):
            values["gops"] = 1
        resolve_machine(values, options, rate > 0 or values["slice_max_size"] > 0)
        values |= {
            "pad": -(-(values["merange"] + _BORDER) // _PAD_UNIT) * _PAD_UNIT,
            "level_idc": level.level_idc,
            "max_mv_y": level.max_vmv_r,
            "least_qp": values["qpmin"],
            "most_qp": values["qpmax"],
            "max_mvs_per_2mb": level.max_mvs_per_2mb,
            "dpb_frames": dpb_frames(values["ref"], values["bframes"], values["b_pyramid"]),
            "max_num_reorder_frames": reordered_frames(values["bframes"], values["b_pyramid"]),
            "buffer": buffer_of(values, (rate, size), level, mb_width * mb_height),
            "first_pass": read_pass(values) if values["pass_"] in READING else None,
        }
        return cls(*(_group(group_class, group_class._fields, values) for group_class in GROUPS))


GROUPS = tuple(Config.__annotations__.values())


def _group(group_class: Callable[..., Group], names: Iterable[str], values: Mapping[str, object]) -> Group:
    """The settings of a subject; a field that is missing has its default."""
    return group_class(**{name: values[name] for name in names if name in values})


def check_fields(rows: Iterable[Option]) -> None:
    """TypeError that names the options of the encoder for which no subject of Config has a field; called at import."""
    switches = {"no_deblock", "no_cabac", "no_8x8dct", "no_weightb", "no_scenecut", "no_mbtree", "no_psy"}
    other_names = switches | {"lenient", "intra_refresh"}
    known = other_names.union(*(group_class._fields for group_class in GROUPS))
    missing = [row.name for row in rows if row.scope in (ALL, API) and row.name not in known]
    if missing:
        raise TypeError(f"options without a field of their name in a subject of Config (settings/groups.py): {missing}")


check_fields(OPTIONS)


def with_bt709(config: Config, begun: bool) -> Config:
    """The config of a stream of RGB input, which becomes BT.709 in limited range, or the same one (FramePipeline.set_bt709).
    begun: frames were entered.
    """
    video = config.video
    for name in ("colormatrix", "range"):
        if getattr(video, name) not in (None, BT709[name]):
            raise InputError(f"RGB becomes BT.709 in limited range, which contradicts {name}")
    if video.colormatrix is not None and video.range is not None:
        return config
    if begun:
        raise InputError("RGB after other frames: set colormatrix='bt709' and range='tv' from the start")
    values: OptionValues = {name: value for name, value in BT709.items() if getattr(video, name) is None}
    return config._replace(video=video._replace(**values))
