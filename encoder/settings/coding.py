"""The settings of an encode as the scheduler takes them, and its plan by a tuning file."""

from typing import TYPE_CHECKING

from ...scheduler.coding_settings import CodingSettings
from .config import Config

if TYPE_CHECKING:
    from ...scheduler.hybrid.planner import Planned


def coding_settings(config: Config, slices: tuple[tuple[int, int], ...]) -> CodingSettings:
    """slices: macroblock rows [row0, row1) of each."""
    tuning, choices = config.tuning, config.gpu_choices
    if choices is None:
        choices = {} if tuning is None else tuning.choices
    return CodingSettings(
        width=config.width,
        height=config.height,
        pad=config.pad,
        slices=slices,
        ref=config.ref,
        bframes=config.bframes,
        dpb_frames=config.dpb_frames,
        frames_back=config.frames_back,
        most_searches=config.most_searches,
        weighted_copies=config.weightp,
        me=config.me,
        step_grid=config.step_grid,
        merange=config.merange,
        max_mv_y=config.max_mv_y,
        max_mvs_per_2mb=config.max_mvs_per_2mb,
        partitions=config.partitions,
        subme=config.subme,
        cabac=config.cabac,
        transform_8x8_mode=config.transform_8x8_mode,
        chroma_qp_offset=config.chroma_qp_offset,
        scaling_lists=config.scaling_lists,
        has_scaling_lists=config.has_scaling_lists,
        trellis=config.trellis,
        psy_rd=config.psy_rd,
        deadzone_inter=config.deadzone_inter,
        deadzone_intra=config.deadzone_intra,
        disable_deblocking_idc=config.disable_deblocking_idc,
        deblock_alpha=config.deblock_alpha,
        deblock_beta=config.deblock_beta,
        measures_energies=config.aq_mode > 0,
        downloads_levels=config.bits_by_kind,
        device=config.device,
        ordinal=config.ordinal,
        may_change_device=config.may_change_device,
        threads=config.threads,
        stage_threads=config.stage_threads,
        team=config.team,
        shares_references=config.shares_references,
        waits_for_packets=config.waits_for_packets,
        split=config.split,
        tuning=tuning,
        gpu_choices=choices,
    )


def planned(config: Config, devices: tuple[str, ...] | None = None) -> "Planned | None":
    """The plan for this encode, with predicted times; None without a tuning file for its devices."""
    if config.tuning is None:
        return None
    from ...scheduler.hybrid.planner import make_plan
    from ...scheduler.hybrid.tuning.models import CPU, filled
    from .device_prediction import frame_kind_of  # the planner

    frame_kind = frame_kind_of(
        config.mb_width, config.mb_height, config.ref, config.me, config.pad, config.subme, config.cabac, config.bframes
    )
    devices = devices or ((CPU, f"cuda:{config.ordinal}") if config.device == "hybrid" else config.devices)
    try:
        models = filled(config.tuning.models.with_threads(config.threads), optional=True)
        return make_plan(devices, frame_kind, models, config.tuning.pins)
    except ValueError:
        return None
