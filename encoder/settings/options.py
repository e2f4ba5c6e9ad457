"""The table of options: the only source of the command line, keyword arguments and documentation."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from ...console import MESSAGE_LEVELS
from ..errors import OptionError
from .frame_requests import read_zones
from .option_types import (
    MOST_COUNT,
    OF_VALUES,
    OptionValues,
    read_choice,
    read_cll,
    read_count,
    read_deblock,
    read_devices,
    read_flag,
    read_float,
    read_fps,
    read_grid,
    read_int,
    read_kbits,
    read_keyint,
    read_level,
    read_mastering_display,
    read_partitions,
    read_psy_rd,
    read_ray,
    read_sar,
    read_size,
    read_text,
    read_tune,
    show,
)
from .presets import PRESETS
from .translation import nearest
from .tunes import OF_USE, TUNES
from .x264_options import SPELLINGS

# Where an option is accepted: everywhere; only as an argument of Encoder(); only on the command line.
ALL, API, CLI = "all", "api", "cli"


class Option(NamedTuple):
    """One row: `name` is the keyword argument; the command line has it with dashes. No dataclass: 8 ms of --help."""

    name: str
    group: str
    read: Callable[..., Any]  # reads a value; gets low and high, or choices, if the row has them
    default: Any
    help: str
    metavar: str = ""
    low: float | None = None
    high: float | None = None
    choices: dict[str, Any] | None = None
    short: str = ""  # x264's letter
    may_be_bare: bool = False  # whether the command line takes it without a value, which is "" then
    scope: str = ALL

    @property
    def flag(self) -> str:
        """The long option of the command line."""
        return "--" + self.name.rstrip("_").replace("_", "-")

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value on the command line."""
        return self.read is read_flag

    @property
    def range_text(self) -> str:
        """The legal values, for help and documentation."""
        if self.choices is not None:
            return ", ".join(self.choices)
        if self.low is not None or self.high is not None:
            return f"{'' if self.low is None else self.low}..{'' if self.high is None else self.high}"
        return ""

    @property
    def default_text(self) -> str:
        """The default as a user writes it; empty if there is none."""
        if self.default is None:
            return ""
        return ":".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default)

    @property
    def default_value(self) -> Any:
        """The normal form of the default; None = nothing."""
        return None if self.default is None else self.value(self.default)

    def word(self, value: object) -> str:
        """The option with a value as it stands in a command."""
        return f"{self.flag}={value}" if not self.is_switch else self.flag if value else f"--no-{self.flag[2:]}"

    def value(self, raw: object) -> Any:
        """The normal form of `raw`; OptionError with option, value and range."""
        try:
            if getattr(raw, "shape", None) == () and hasattr(raw, "item"):
                raw = raw.item()  # a number of NumPy, PyTorch or JAX
            if self.choices is not None:
                return self.read(raw, self.choices)
            if self.low is not None or self.high is not None:
                return self.read(raw, self.low, self.high)
            return self.read(raw)
        except OF_VALUES as error:
            why = str(error) if type(error) is ValueError else f"{type(error).__name__} while it is read"
            if taken := nearest(self, raw):
                why += f" (--lenient takes {taken})"
            raise OptionError(f"{show(raw)}: {why}", self.flag[2:]) from None


def _same(*names: str) -> OptionValues:
    return {name: name for name in names}


# Tables E-2 to E-5: the numbers of x264's names; None = not written.
VIDEO_FORMAT = {"component": 0, "pal": 1, "ntsc": 2, "secam": 3, "mac": 4, "undef": None}
RANGE = {"auto": None, "tv": 0, "pc": 1}
COLOUR_PRIMARIES = {
    "undef": None, "bt709": 1, "bt470m": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "film": 8, "bt2020": 9,
    "smpte428": 10, "smpte431": 11, "smpte432": 12,
}
TRANSFER = {
    "undef": None, "bt709": 1, "bt470m": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "linear": 8, "log100": 9,
    "log316": 10, "iec61966-2-4": 11, "bt1361e": 12, "iec61966-2-1": 13, "bt2020-10": 14, "bt2020-12": 15,
    "smpte2084": 16, "smpte428": 17, "arib-std-b67": 18,
}
COLOUR_MATRIX = {
    "undef": None, "bt709": 1, "fcc": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "YCgCo": 8, "bt2020nc": 9,
    "bt2020c": 10, "smpte2085": 11, "chroma-derived-nc": 12, "chroma-derived-c": 13, "ICtCp": 14,
}

LEVELS = _same(*"1 1.1 1.2 1.3 2 2.1 2.2 3 3.1 3.2 4 4.1 4.2 5 5.1 5.2 6 6.1 6.2".split())

OPTIONS: tuple[Option, ...] = (
    Option("input_res", "Input", read_size, None, "size of raw input, if its name does not say it (x_352x288.yuv)", "WxH",
           scope=CLI),
    Option("width", "Input", read_int, None, "width in luma samples", "INT", 1, MOST_COUNT, scope=API),
    Option("height", "Input", read_int, None, "height in luma samples", "INT", 1, MOST_COUNT, scope=API),
    Option("demuxer", "Input", read_choice, "auto", "format of IN; auto = by its name and first bytes",
           choices=_same("auto", "raw", "y4m", "av"), scope=CLI),
    Option("fps", "Input", read_fps, Fraction(25), "frames per second: 25, 12.5 or 30000/1001; 29.97 means that, 23.976 "
           "means 24000/1001. Without it: that of the input, or of a raw file's name (x_352x288_30.yuv)", "RATE"),
    Option("tcfile_in", "Input", read_text, None, "times of the frames, in place of those of the input: timecode format v1 "
           "or v2, as of mkvtoolnix. Into .mp4, .mkv and .mov; --fps then is what rate control counts by, and without it the "
           "file's average rate", "FILE", scope=CLI),
    Option("seek", "Input", read_int, 0, "number of the first frame to encode; the input begins with frame 0", "INT", 0,
           MOST_COUNT, scope=CLI),
    Option("frames", "Input", read_int, 0, "encode at most this many frames; 0 = all", "INT", 0, MOST_COUNT, scope=CLI),

    Option("muxer", "Output", read_choice, "auto", "format of OUT; auto = by its name; raw = Annex B",
           choices=_same("auto", "raw", "mp4", "mkv", "mov", "hls", "dash"), scope=CLI),
    Option("audio", "Output", read_text, None, "put the sound of this file into the .mp4, .mkv, .mov, or the segments of "
           ".m3u8 and .mpd (may be IN). Into MP4 AAC, Opus and FLAC are copied, out of MP4, ADTS, Ogg and FLAC files, and "
           "WAV becomes FLAC; other sound needs PyAV, and an output without fragments", "FILE", scope=CLI),
    Option("fragment", "Output", read_float, None, "write a fragmented MP4, as for pipes: whole GOPs, this long together, "
           "with keyframes to match. Of .m3u8 and .mpd (HLS, DASH) the length of a segment; 4 without it", "SECONDS",
           0.001, 3600.0, scope=CLI),
    Option("batch", "Output", read_text, None, "encode many videos, some at once: in place of IN and OUT, each line of "
           "the file LIST, or of - (standard input), has two names, quoted as in a shell; # begins a comment. The other "
           "options are for each video", "LIST", scope=CLI),
    Option("workers", "Output", read_int, None, "with --batch: videos at once. Without it: one for each "
           "core, at most 8; on GPUs two for each",
           "INT", 1, 256, scope=CLI),

    Option("preset", "Presets", read_choice, "medium", "speed against compression: a set of options; single options "
           "override it", choices=_same(*PRESETS)),
    Option("tune", "Presets", read_tune, None, "options for some content or use. They override the preset, single "
           "options override them. Several are joined by commas: fastdecode, zerolatency and at most one of the others",
           "LIST", choices={name: name not in OF_USE for name in TUNES}),
    Option("lenient", "Presets", read_flag, False, "of options and values of x264 that are not built, take what is nearest, "
           "with a line; else they are refused"),
    Option("profile", "Presets", read_choice, "high", "profile of the stream: main allows CABAC and B frames, high also "
           "the 8x8 transform", choices=_same("baseline", "main", "high")),
    Option("level", "Presets", read_level, None, "level to declare; refused if the stream exceeds its limits. Without "
           "it: the smallest that fits", choices=LEVELS),

    Option("keyint", "Frame types", read_keyint, 250, "maximum distance between IDR frames, or infinite", "INT", short="I"),
    Option("intra_refresh", "Frame types", read_flag, False, "no IDR frames but the first: every --keyint frames a bar of "
           "intra macroblocks wanders over the P frames, for live streams without large frames. Without B frames, scene cuts "
           "and several references (docs/how/decisions.md)"),
    Option("ref", "Frame types", read_int, 1, "reference frames of a P frame (more = smaller, slower). The number of a "
           "preset is lowered to what the level allows", "INT", 1, 16, short="r"),
    Option("bframes", "Frame types", read_int, 3, "maximum number of B frames between two others; none in Baseline "
           "profile", "INT", 0, 16, short="b"),
    Option("b_pyramid", "Frame types", read_grid, "normal", "B frames that are references of other B frames: none; "
           "normal or strict, the middle one of a run; dyadic, also the middle of each half, and so on (longer delay). "
           "Lowered if the level has no room",
           choices={"none": "none", "0": "none", "strict": "normal", "1": "normal", "normal": "normal", "2": "normal",
                    "dyadic": "dyadic"}),
    Option("b_adapt", "Frame types", read_int, 1, "how many B frames in a row: 0 fixed, always --bframes; 1 fast "
           "decision; 2 optimal decision over the lookahead (slower)", "INT", 0, 2),
    Option("b_bias", "Frame types", read_int, 0, "higher = --b-adapt takes more B frames", "INT", -100, 100),
    Option("scenecut", "Frame types", read_int, None, "how readily a new scene begins with an I frame, or from "
           "--min-keyint on with an IDR frame: higher = more often, 0 = never. Default 40, or 0 with --qp and no B "
           "frames", "INT", 0, 100),
    Option("no_scenecut", "Frame types", read_flag, False, "the same as --scenecut 0"),
    Option("min_keyint", "Frame types", read_count, "auto", "minimum distance between IDR frames; auto = a tenth of "
           "--keyint, at most one second", "INT", 0, MOST_COUNT, short="i"),
    Option("rc_lookahead", "Frame types", read_int, 40, "frames that macroblock tree, --bitrate and --b-adapt 2 look "
           "ahead; at least --bframes + 1", "INT", 0, 250),

    Option("slices", "Frame types", read_int, 1, "slices per frame, each of whole macroblock rows", "INT", 1, 1055),
    Option("slice_max_size", "Frame types", read_int, 0, "most bytes of the NAL unit of a slice, for packets of a "
           "network; frames are coded again until all slices are small enough. 0 = slices are those of --slices",
           "INT", 0, 1 << 24),
    Option("no_deblock", "Frame types", read_flag, False, "switch the deblocking filter off"),
    Option("deblock", "Frame types", read_deblock, (0, 0), "offsets of the deblocking filter, -6..6 each: strength "
           "(alpha) and threshold (beta); higher = more filtering", "A:B", short="f"),

    Option("deblock_within_slices", "Frame types", read_flag, False, "do not filter across the edges between slices"),

    Option("no_cabac", "Frame types", read_flag, False, "CAVLC in place of CABAC (faster to decode, more bits)"),

    Option("qpfile", "Frame types", read_text, None, "types and QPs of single frames, a line each: FRAME TYPE [QP]. "
           "Frames count from 0 as in the input. TYPE is I or K (IDR), i (I), P, B or b (B); without QP, or with -1, "
           "the encoder chooses it", "FILE"),

    Option("qp", "Quality", read_int, None, "constant quantiser of P frames, in place of --crf; 0 = finest, not "
           "lossless", "INT", 0, 51,
           short="q"),
    Option("crf", "Quality", read_float, 23.0, "constant rate factor: about the same visible quality everywhere; lower "
           "= better, more bits. Frames that are hard to predict get a higher QP", "FLOAT", 0.0, 51.0),
    Option("bitrate", "Quality", read_kbits, 0, "average bitrate in kbit/s, in place of --crf or --qp; 0 = none. GOPs are "
           "coded one after another, except with --pass 2", "INT", 0, 2000000, short="B"),
    Option("ratetol", "Quality", read_float, 1.0, "how slowly --bitrate corrects the average: higher = steadier "
           "quality, less exact size. An error is corrected within three times this many seconds", "FLOAT", 0.1, 100.0),
    Option("pass_", "Quality", read_int, 0, "1: also write statistics to --stats, with fast tools. 2: read them, and "
           "spread the bits of --bitrate over the whole stream. 3: read and write them. 0: one pass", "INT", 0, 3,
           short="p"),
    Option("stats", "Quality", read_text, "h264lite_2pass.log", "statistics file of --pass", "FILE"),
    Option("slow_firstpass", "Quality", read_flag, False, "--pass 1 keeps the tools of the preset"),
    Option("qcomp", "Quality", read_float, 0.6, "how much QPs follow the content: 0 = towards a constant bitrate, 1 = "
           "one QP for all frames", "FLOAT", 0.0, 1.0),
    Option("no_mbtree", "Quality", read_flag, False, "no macroblock tree, which spends more bits on what the next "
           "--rc-lookahead frames predict from"),
    Option("qpmin", "Quality", read_int, 0, "lowest QP with --crf or --bitrate", "INT", 0, 51),
    Option("qpmax", "Quality", read_int, 51, "highest QP with --crf or --bitrate; above 51 means 51", "INT", 0, 69),
    Option("vbv_maxrate", "Quality", read_kbits, 0, "kbit/s that fill the decoder's buffer; with --vbv-bufsize. A frame "
           "that would empty the buffer is coded again with a higher QP", "INT", 0, 2000000),
    Option("vbv_bufsize", "Quality", read_kbits, 0, "size of the decoder's buffer in kbit", "INT", 0, 2000000),
    Option("crf_max", "Quality", read_float, 0.0, "with --crf and a buffer: raise QPs at most to those of this rate "
           "factor, even if the buffer runs empty; 0 = no limit", "FLOAT", 0.0, 51.0),
    Option("vbv_init", "Quality", read_float, 0.9, "fullness of the buffer at the first frame: up to 1 a fraction, "
           "above 1 in kbit", "FLOAT", 0.0, 2000000.0),
    Option("ipratio", "Quality", read_float, 1.4, "quantiser step of P frames divided by that of I frames", "FLOAT", 0.25,
           4.0),
    Option("pbratio", "Quality", read_float, 1.8, "quantiser step of B frames divided by that of P frames; B frames "
           "that are references get half the difference. Ignored with macroblock tree, which uses 1.3", "FLOAT", 0.25, 4.0),
    Option("aq_mode", "Quality", read_int, 0, "adaptive quantisation, a lower QP where the source is flat: 0 off; 1 by "
           "the energy of each macroblock; 2 also by the mean of the frame; 3 as 2, with a bias to the flattest (dark) "
           "parts. Default 1, or 0 with --qp", "INT", 0, 3),
    Option("aq_strength", "Quality", read_float, 1.0, "strength of --aq-mode", "FLOAT", 0.0, 3.0),
    Option("zones", "Quality", read_zones, None, "other QPs for parts of the stream: FIRST,LAST,q=INT (this QP) or "
           "FIRST,LAST,b=FLOAT (bits times FLOAT), joined by /. Frames count from the first coded one; of several zones "
           "the last counts", "LIST"),
    Option("chroma_qp_offset", "Quality", read_int, 0, "QP of chroma minus QP of luma", "INT", -12, 12),
    Option("cqm", "Quality", read_text, "flat", "scaling matrices (High profile): flat, jvt (those of the standard), or "
           "a file of lists in JM's format", "FILE"),
    Option("cqm4", "Quality", read_text, None, "one matrix for all 4x4 blocks, in place of --cqm: 16 numbers, 1..255, "
           "row by row, joined by commas", "LIST"),
    Option("cqm4i", "Quality", read_text, None, "the same for 4x4 blocks of intra macroblocks", "LIST"),
    Option("cqm4iy", "Quality", read_text, None, "the same for 4x4 blocks of luma in intra macroblocks", "LIST"),
    Option("cqm4ic", "Quality", read_text, None, "the same for 4x4 blocks of chroma in intra macroblocks", "LIST"),
    Option("cqm4p", "Quality", read_text, None, "the same for 4x4 blocks of inter macroblocks", "LIST"),
    Option("cqm4py", "Quality", read_text, None, "the same for 4x4 blocks of luma in inter macroblocks", "LIST"),
    Option("cqm4pc", "Quality", read_text, None, "the same for 4x4 blocks of chroma in inter macroblocks", "LIST"),
    Option("cqm8", "Quality", read_text, None, "one matrix for all 8x8 blocks, in place of --cqm: 64 numbers", "LIST"),
    Option("cqm8i", "Quality", read_text, None, "the same for 8x8 blocks of intra macroblocks", "LIST"),
    Option("cqm8p", "Quality", read_text, None, "the same for 8x8 blocks of inter macroblocks", "LIST"),

    Option("partitions", "Analysis", read_partitions, "all", "block sizes to try, joined by commas: p8x8 (also 16x8 and "
           "8x16, and b8x8 of B frames), p4x4, i8x8 (needs the 8x8 transform), i4x4 (always tried); or none, all",
           "LIST", short="A"),
    Option("me", "Analysis", read_choice, "fsbm", "motion search: fsbm (the same as esa) compares all positions; dia, "
           "hex, umh follow patterns (faster on a CPU, more bits); step searches ever finer grids (CPU only)",
           choices={"dia": "dia", "hex": "hex", "umh": "umh", "fsbm": "fsbm", "esa": "fsbm", "step": "step"}),
    Option("step_grid", "Analysis", read_grid, 7, "with --me step: positions along each side of a grid (more = "
           "slower)", "INT", choices={"3": 3, "7": 7, "13": 13}),
    Option("merange", "Analysis", read_int, 16, "range of the motion search in samples (more = slower)", "INT", 4, 64),
    Option("subme", "Analysis", read_int, 6, "vectors and mode decision (higher = slower): 0 whole samples; 1 half; 2 "
           "quarter; 3 quarter by SATD; 4 half too by SATD; 5 for all partitions; 6 modes by rate and distortion "
           "(without CABAC only on a CPU); 7 vectors too; 8 those of all partitions, 9 in B frames too; 10 QPs of "
           "macroblocks too (8 to 10 with CABAC; 10 with --trellis 1 and --aq-mode or the macroblock tree, else 9)",
           "INT", 0, 10, short="m"),
    Option("trellis", "Analysis", read_int, 1, "1: trellis quantisation, levels by rate and distortion (slower; in I "
           "frames only with CABAC). 0: rounding with a dead zone", "INT", 0, 1, short="t"),
    Option("psy_rd", "Analysis", read_psy_rd, 0.0, "psy-RD: how much texture is kept at the cost of PSNR; 0 = off. RD, "
           "or RD:TRELLIS as x264 writes it, without effect on the trellis. Acts from --subme 6 on, with CABAC. Default 1, "
           "or 0 with --qp", "RD"),
    Option("no_psy", "Analysis", read_flag, False, "the same as --psy-rd 0"),

    Option("deadzone_inter", "Analysis", read_int, 21, "dead zone of luma in inter macroblocks, used where the trellis "
           "does not choose levels: a level is rounded up from 1/2 + INT/64 on; 21 means 5/6", "INT", 0, 32),
    Option("deadzone_intra", "Analysis", read_int, 11, "the same in intra macroblocks; 11 means 2/3", "INT", 0, 32),
    Option("weightp", "Analysis", read_int, 2, "weighted prediction of P frames (Main and High): 1 for fades and "
           "flashes; 2 also where parts of a frame need other weights (the reference is listed twice)", "INT", 0, 2),

    Option("no_weightb", "Analysis", read_flag, False, "B frames: the mean of two predictions does not depend on the "
           "distances of their frames"),
    Option("no_8x8dct", "Analysis", read_flag, False, "no 8x8 transform in High profile"),

    Option("threads", "Running", read_count, 0, "number of threads; 0 = one per core, fewer for small frames. The "
           "stream is the same for any number", "INT", 0, 256),
    Option("device", "Running", read_choice, "auto", "where to encode; auto = what is fastest on this machine, which a "
           "line reports", choices=_same("auto", "cpu", "cuda", "hybrid")),
    Option("gops", "Running", read_count, "auto", "closed GOPs (--keyint) encoded at the same time; auto = as many as "
           "help if IN is a file that can be read anywhere, else 1. The stream is the same for any number", "INT", 1, 64),
    Option("devices", "Running", read_devices, None, "devices that share the GOPs, in place of --device: cuda:0,cuda:1 "
           "and so on; all = every GPU; or cpu, several times. Worker processes encode (docs/scale.md). With --batch: "
           "each video is encoded on one of them", "LIST"),
    Option("ray", "Running", read_ray, None, "encode on a Ray cluster (pip install 'h264lite[ray]'): HOST:PORT, auto, "
           "or local for a new one on this machine. Without a value: the one that ray.init() finds, or a new one. The "
           "stream is the same (docs/ray.md)", "ADDRESS", may_be_bare=True, scope=CLI),
    Option("ray_gpus", "Running", read_float, None, "GPUs per task of --ray, may be a fraction; 0 = tasks run on "
           "--threads CPUs. Default 1 if the cluster has GPUs and --device allows them", "FLOAT", 0.0, 1.0, scope=CLI),

    Option("tuning", "Running", read_text, None, "measurements of `h264lite tune`; without it those in the user's cache",
           "FILE"),

    Option("sar", "Video usability info", read_sar, None, "sample aspect ratio; without it that of the input", "W:H"),
    Option("videoformat", "Video usability info", read_choice, None, "original format of the source", choices=VIDEO_FORMAT),
    Option("range", "Video usability info", read_choice, None, "range of the samples: tv = limited, pc = full; auto = "
           "that of the input", choices=RANGE),
    Option("colorprim", "Video usability info", read_choice, None, "colour primaries", choices=COLOUR_PRIMARIES),
    Option("transfer", "Video usability info", read_choice, None, "transfer characteristics", choices=TRANSFER),
    Option("colormatrix", "Video usability info", read_choice, None, "matrix coefficients", choices=COLOUR_MATRIX),

    Option("info_sei", "Stream", read_flag, False, "write name, version and options of the encoder into the stream (SEI "
           "of the first frame)"),
    Option("aud", "Stream", read_flag, False, "begin every frame with an access unit delimiter (not in MP4)"),

    Option("mastering_display", "Stream", read_mastering_display, None, "colours and light of an HDR display (SEI): green, "
           "blue, red and white in 1/50000, light in 0.0001 cd/m2; undef = that of the input is left out",
           "G(x,y)B(x,y)R(x,y)WP(x,y)L(max,min)"),
    Option("cll", "Stream", read_cll, None, "most light of a sample and of a frame's mean, in cd/m2 (SEI); undef = none",
           "MAX,AVG"),
    Option("nal_hrd", "Stream", read_choice, "none", "write the buffer of --vbv-maxrate and the times of frames into "
           "the stream (HRD parameters, SEI): vbr; cbr also adds filler data (not in MP4)",
           choices=_same("none", "vbr", "cbr")),
    Option("filler", "Stream", read_flag, False, "add filler data up to --vbv-maxrate (not in MP4)"),
    Option("pic_struct", "Stream", read_flag, False, "mark every frame as progressive (SEI of picture timing)"),

    Option("dump_yuv", "Reports", read_text, None, "write the frames as a decoder returns them", "FILE", scope=CLI),
    Option("psnr", "Reports", read_flag, True, "PSNR in the summary"),
    Option("ssim", "Reports", read_flag, False, "SSIM in the summary"),
    Option("bits_by_kind", "Reports", read_flag, False, "count bits of headers, vectors and levels; on with --csv and "
           "--verbose. On a GPU the encode then takes several times as long"),
    Option("csv", "Reports", read_text, None, "write a line per frame", "FILE", scope=CLI),
    Option("mb_csv", "Reports", read_text, None, "write a line per macroblock", "FILE", scope=CLI),
    Option("mb_npz", "Reports", read_text, None, "write arrays of all macroblocks for NumPy (docs/research.md)", "FILE",
           scope=CLI),
    Option("json", "Reports", read_text, None, "write the summary as JSON (docs/json.md)", "FILE", scope=CLI),
    Option("trace", "Reports", read_text, None, "write a timeline of stages, copies and threads (Chrome trace format)",
           "FILE", scope=CLI),
    Option("trace_png", "Reports", read_text, None, "draw this timeline for some frames (needs matplotlib)", "FILE",
           scope=CLI),
    Option("rate_png", "Reports", read_text, None, "draw bits, QPs and buffer over time (needs matplotlib)", "FILE",
           scope=CLI),
    Option("verbose", "Reports", read_flag, False, "also report where the work is done, predicted and measured times, "
           "and how QPs are chosen", short="v", scope=CLI),
    Option("progress", "Reports", read_choice, "auto", "progress line; auto = updated in place on a terminal",
           choices=_same("auto", "plain", "json", "none"), scope=CLI),
    Option("quiet", "Reports", read_flag, False, "print errors only, and warnings of what the output lacks", scope=CLI),
    Option("log_level", "Reports", read_choice, "info", "messages: none at all (the exit code tells of errors); errors; also "
           "warnings; also progress and summary; also what --verbose tells", choices=MESSAGE_LEVELS, scope=CLI),
)

BY_NAME = {option.name: option for option in OPTIONS}
ALIASES = {"frame_rate": "fps", "bframe": "bframes", "pass": "pass_", **SPELLINGS}
