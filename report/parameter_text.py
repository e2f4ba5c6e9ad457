"""Parameter sets and slice headers in clear text: the names and values of their syntax elements."""

from dataclasses import fields, is_dataclass
from typing import Any

from ..standard.syntax import Pps, SliceHeader, Sps

LONGEST_LIST = 64  # numbers of a list that are shown
# Elements of Sps and Pps that are absent from the stream unless another element announces them.
_ANNOUNCED = {
    "vui": ("vui_parameters_present_flag",),
    "nal_hrd": ("nal_hrd_parameters_present_flag",),
    "scaling": ("seq_scaling_matrix_present_flag", "pic_scaling_matrix_present_flag"),
    "vcl_hrd": ("vcl_hrd_parameters_present_flag",),
}


def elements(structure: Any, prefix: str = "") -> list[list[str]]:
    """[name, value] of each element of a syntax structure, those of inner structures with a dot."""
    rows: list[list[str]] = []
    for field in fields(structure):
        value = getattr(structure, field.name)
        names = _ANNOUNCED.get(field.name, ())
        if names and not any(getattr(structure, name, 0) for name in names):
            continue
        if is_dataclass(value):
            rows += elements(value, f"{prefix}{field.name}.")
        elif isinstance(value, (list, tuple)):
            if value and not is_dataclass(value[0]):
                rows.append([prefix + field.name, _list_text(value)])
        elif value is not None:
            rows.append([prefix + field.name, str(value)])
    return rows


def _list_text(values: Any) -> str:
    return ", ".join(map(str, values[:LONGEST_LIST])) + ", ..." * (len(values) > LONGEST_LIST)


def parameter_sets(sps: dict[int, Sps], pps: dict[int, Pps]) -> list[dict[str, Any]]:
    """All parameter sets of a stream, as they are at its end."""
    rows = [{"name": f"sequence parameter set {n}", "rows": elements(s)} for n, s in sorted(sps.items())]
    return rows + [{"name": f"picture parameter set {n}", "rows": elements(p)} for n, p in sorted(pps.items())]


def slice_row(header: SliceHeader, qp: int) -> list[int]:
    """What the page says of a slice: SLICE_COLUMNS."""
    slice_type = header.type_mod_5
    return [
        header.first_mb_in_slice, slice_type, qp, header.num_ref_idx_l0_active_minus1 + 1 if slice_type in (0, 1, 3) else 0,
        header.num_ref_idx_l1_active_minus1 + 1 if slice_type == 1 else 0, header.direct_spatial_mv_pred_flag,
        header.cabac_init_idc, header.disable_deblocking_filter_idc, 2 * header.slice_alpha_c0_offset_div2,
        2 * header.slice_beta_offset_div2,
    ]  # fmt: skip


SLICE_COLUMNS = (
    "first_mb_in_slice", "slice_type", "SliceQPY", "num_ref_idx_l0_active", "num_ref_idx_l1_active",
    "direct_spatial_mv_pred_flag", "cabac_init_idc", "disable_deblocking_filter_idc", "FilterOffsetA", "FilterOffsetB",
)  # fmt: skip
