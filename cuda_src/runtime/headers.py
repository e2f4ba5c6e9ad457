"""Headers for the kernels, written from Python: tables, decisions, and the sizes that kernels share with their launchers."""

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent  # cuda_src
LARGEST_TABLE = 512  # elements; larger tables are formulas on the GPU
ANY = "[A-Z][A-Za-z0-9_]*"


@cache
def tables_header() -> str:
    """tables.cuh: the standard's tables and the layout of arrays as CUDA constants, written from Python, never by hand."""
    from ...cpu_simd import layout
    from ...standard import cavlc, macroblock, tables

    lines = ["// Generated from standard/{tables,macroblock,cavlc}.py and cpu_simd/layout.py.", "#pragma once", ""]
    wanted_of_cavlc = "NC_CLASS.*|[A-Z_]*_(BITS|CODES)|MAX_LEVEL"
    for module, wanted in ((macroblock, ANY), (layout, ANY), (tables, ANY), (cavlc, wanted_of_cavlc)):
        for name, value in sorted(vars(module).items()):
            if not re.fullmatch(wanted, name):
                continue
            if isinstance(value, int):
                lines.append(f"constexpr int {name} = {value};")
            elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size <= LARGEST_TABLE:
                # lanes look up codes at different addresses, which constant memory serves one by one
                lines.append(_table("__device__ const" if name.endswith("_CODES") else "__constant__", name, value))
                if value.shape == (16,) and 0 <= int(value.min()) and int(value.max()) < 16:
                    # a permutation as digits of one number, which unrolled loops evaluate at compile time
                    packed = sum(int(v) << (4 * i) for i, v in enumerate(value))
                    lines.append(f"constexpr unsigned long long {name}_DIGITS = {packed:#018x}ull;")
    bits = (0, 2, 3, 4, 6, 7)  # plane, x, y of either sample
    codes = [sum(int(v) << at for v, at in zip(pair, bits)) for pair in tables.QUARTER_SAMPLE_PAIRS]
    rows = [sum(v << (8 * x) for x, v in enumerate(codes[4 * y : 4 * y + 4])) for y in range(4)]
    lines += [f"constexpr unsigned QUARTER_SAMPLE_PAIRS_{y} = {row:#010x};" for y, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


@cache
def numbers_header(source: str) -> str:
    """The integers and arrays that a module of Python assigns to names in capitals, as CUDA constants."""
    module, lines = import_module(source), list[str]()
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    for name in ", ".join(re.findall(rf"^({ANY}(?:, {ANY})*) = ", text, re.MULTILINE)).split(", "):
        value = vars(module).get(name)
        if isinstance(value, int):
            lines.append(f"constexpr int {name} = {value};")
        elif isinstance(value, np.ndarray):
            # LAMBDA is in constant memory: most warps look up one or two macroblocks; in search_centre a lane looks up one
            # of its own, once, and neighbours mostly have the same QP
            lines.append(_table("__constant__", name, value))
    return "\n".join([f"// Generated from {source}.", "#pragma once", "", *lines]) + "\n"


@cache
def cabac_bit_header() -> str:
    """cabac_bit_tables.cuh: contexts of residual blocks and of coded_block_pattern, and bits of bins."""
    from ...cpu_simd.cabac_typical import ONE_BIT, STATE_BITS, TYPICAL_M_N
    from ...cpu_simd.decisions.intra import INTRA_TYPE_CONTEXTS
    from ...standard import cabac_contexts as c

    lines = ["// Generated from standard/cabac_contexts.py and cpu_simd/cabac_typical.py.", "#pragma once", ""]
    contexts: list[int] = []
    before = 132  # words of a table of bits before those of contexts, see cabac_bits.cuh
    sizes = {0: (15, 15), 1: (14, 14), 2: (15, 15), 3: (3, 3), 4: (14, 14), 5: (15, 9)}  # significant, last
    for category in (2, 3, 4, 5, 0, 1):  # ctxBlockCat, those of inter macroblocks first
        coded = c.CTX_CBP_LUMA if category == 5 else c.CODED_BLOCK_BASE[category]
        significant, last = sizes[category]
        syntax_elements = (
            ("SIGNIFICANT", c.SIGNIFICANT_BASE[category], significant), ("LAST", c.LAST_BASE[category], last),
            ("LEVEL", c.ABS_LEVEL_BASE[category], 9 if category == 3 else 10), ("CODED", coded, 4),
        )  # fmt: skip
        for name, first, count in syntax_elements:
            lines.append(f"constexpr int AT_{name}_{category} = {before + len(contexts)};")
            contexts += range(first, first + count)
        if category == 5:
            lines.append(f"constexpr int AT_CHROMA_PATTERN = {before + len(contexts)};")
            contexts += range(c.CTX_CBP_CHROMA, c.CTX_CBP_CHROMA + 8)
            lines.append(f"constexpr int N_INTER_CONTEXTS = {len(contexts)}, N_INTER_BITS = {before + len(contexts)};")
    at = before + len(contexts)  # then those of intra macroblocks: mb_type, which differ by slice type, and modes
    lines.append(f"constexpr int AT_INTRA_TYPE = {at}, AT_PREV_MODE = {at + 4}, AT_REM_MODE = {at + 5};")
    lines.append(f"constexpr int AT_CHROMA_MODE = {at + 6};")
    modes = c.CTX_PREV_INTRA_MODE, c.CTX_REM_INTRA_MODE, c.CTX_INTRA_CHROMA + 1, c.CTX_INTRA_CHROMA + 3
    by_slice = [[*contexts, *INTRA_TYPE_CONTEXTS[slice_type], *modes] for slice_type in (0, 1, 1)]
    # 4x4 parts of an 8x8 block, four positions a word: ctxIdxInc of significant_coeff_flag, of last_significant_coeff_flag
    increments = np.append(c.SIGNIFICANT_INC_8x8, 0) | c.LAST_INC_8x8 << 4
    words = increments.reshape(16, 4).T.astype(np.uint8).copy().view(np.uint32)
    lines += [
        f"constexpr int N_RESIDUAL_CONTEXTS = {len(by_slice[0])}, N_RESIDUAL_BITS = {before + len(by_slice[0])};",
        f"constexpr int FIRST_CONTEXT = {before}, ONE_BIT = {ONE_BIT};",
        _table("__device__ const", "RESIDUAL_M_N", np.stack([TYPICAL_M_N[k, by_slice[k]] for k in range(3)])),
        _table("__device__ const", "STATE_BITS", STATE_BITS),
        "__device__ const unsigned INCREMENTS_8x8[16] = {" + ", ".join(f"{word:#010x}" for word in words.ravel()) + "};",
    ]
    return "\n".join(lines) + "\n"


@cache
def cabac_header() -> str:
    """cabac_tables.cuh: first contexts of the syntax elements and tables of 9.3 as CUDA constants."""
    from ...standard import cabac_contexts

    lines = []
    for name, value in vars(cabac_contexts).items():
        if re.fullmatch(ANY, name) and isinstance(value, int):
            lines.append(f"constexpr int {name} = {value};")
        elif re.fullmatch("[A-Z_]*_(BASE|INC_8x8)", name):
            lines.append(_table("__device__ const", name, value))  # lanes look up different elements
    return "\n".join(["// Generated from standard/cabac_contexts.py.", "#pragma once", "", *lines]) + "\n"


@cache
def sample_format_header() -> str:
    """sample_format.cuh: the type of samples, and the names of the chroma format."""
    from ...standard.sample_format import Sample

    names = numbers_header(f"{_PACKAGE.rpartition('.')[0]}.standard.sample_format")
    return f"{names}using Sample = {np.dtype(Sample).name}_t;\n"


def _table(memory: str, name: str, value: np.ndarray) -> str:
    flat = ", ".join(str(int(v)) for v in value.ravel())
    c_type = {1: "signed char", 2: "short", 4: "int"}[_bytes_needed(value)]
    dims = "".join(f"[{n}]" for n in value.shape)
    return f"{memory} {c_type} {name}{dims} = {_nested(flat, value.shape)};"


def _bytes_needed(value: np.ndarray) -> int:
    low, high = int(value.min()), int(value.max())
    return next(n for n in (1, 2, 4) if -(1 << (8 * n - 1)) <= low and high < 1 << (8 * n - 1))


def _nested(flat: str, shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return "{" + flat + "}"
    items = flat.split(", ")
    step = len(items) // shape[0]
    rows = [", ".join(items[first : first + step]) for first in range(0, len(items), step)]
    return "{" + ", ".join(_nested(row, shape[1:]) for row in rows) + "}"


LAUNCHERS = [path.relative_to(HERE).with_suffix("").as_posix() for path in sorted(HERE.glob("**/*.py"))
             if path.with_suffix(".cu").exists()]  # fmt: skip
DECISIONS = [path.stem for path in sorted((HERE.parent / "cpu_simd" / "decisions").glob("[a-z]*.py"))]
_PACKAGE = __package__.rpartition(".")[0]  # h264lite.cuda_src
GENERATED: dict[str, Callable[[], str]] = {
    "sample_format.cuh": sample_format_header, "tables.cuh": tables_header,
    "cabac_tables.cuh": cabac_header, "cabac_bit_tables.cuh": cabac_bit_header,
    **{f"decisions/{name}.cuh": partial(numbers_header, f"{_PACKAGE.rpartition('.')[0]}.cpu_simd.decisions.{name}")
       for name in DECISIONS},
    **{f"{name}_launch.cuh": partial(numbers_header, f"{_PACKAGE}.{name.replace('/', '.')}") for name in LAUNCHERS},
}  # fmt: skip
