"""Write docs/x264.md, what becomes of each option of x264's --fullhelp: python docs/make_x264.py docs/x264.md"""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from h264lite.cli import cli, encode
from h264lite.encoder.errors import OptionError
from h264lite.encoder.files.output import muxer_of
from h264lite.encoder.files.video import VideoFormat
from h264lite.encoder.settings.options import API, OPTIONS
from h264lite.encoder.settings.user_options import read_options

# The options that x264 (core 165) lists, by its headings: names, values to try, and after | what must stand beside them.
# FILE stands for a file of TEXTS; names are facts, and nothing here is x264's text.
FULLHELP = """
Help
-h --help
--longhelp
--fullhelp
-V --version
Presets
--profile baseline main high high10 high422 high444
--preset ultrafast superfast veryfast faster fast medium slow slower veryslow placebo
--tune film animation grain stillimage psnr ssim fastdecode zerolatency film,zerolatency
--slow-firstpass
Frame types
-I --keyint 1 250 infinite
-i --min-keyint 0 25
--no-scenecut
--scenecut 0 40
--intra-refresh
-b --bframes 0 3 16
--b-adapt 0 1 2
--b-bias -100 0 100
--b-pyramid none strict normal
--open-gop
--no-cabac
-r --ref 1 3 16
--no-deblock
-f --deblock 0:0 -1:2 3
--slices 0 4
--slices-max 0 8
--slice-max-size 0 1400
--slice-max-mbs 0 100
--slice-min-mbs 0 10
--tff
--bff
--constrained-intra
--pulldown none 22 32 64 double triple euro
--fake-interlaced
--frame-packing 0 3
Rate control
-q --qp 0 26 51 69
-B --bitrate 1000
--crf -6 0 23.5 51
--rc-lookahead 0 40 250
--vbv-maxrate 1000 | --vbv-bufsize 1000
--vbv-bufsize 1000 | --vbv-maxrate 1000
--vbv-init 0.9 500 | --vbv-maxrate 1000 --vbv-bufsize 1000
--crf-max 30 | --vbv-maxrate 1000 --vbv-bufsize 1000
--qpmin 0 10
--qpmax 51 69 81
--qpstep 4
--ratetol 1.0 inf
--ipratio 1.4
--pbratio 1.3
--chroma-qp-offset -2 0
--aq-mode 0 1 2 3
--aq-strength 1.0
-p --pass 1 2 3 | --bitrate 1000
--stats FILE.log | --pass 1 --bitrate 1000
--no-mbtree
--qcomp 0.6
--cplxblur 20
--qblur 0.5
--zones 0,99,q=20 0,99,b=0.5/100,199,q=30 0,99,crf=20
--qpfile FILE.qp
Analysis
-A --partitions all none p8x8,b8x8,i8x8,i4x4 p8x8,p4x4,b8x8,i8x8,i4x4
--direct none spatial temporal auto
--no-weightb
--weightp 0 1 2
--me dia hex umh esa tesa
--merange 4 16 64 128
--mvrange -1 512
--mvrange-thread -1 32
-m --subme 0 1 2 3 4 5 6 7 8 9 10 11
--psy-rd 1.0:0.0 0.5 1.0:0.15
--no-psy
--no-mixed-refs
--no-chroma-me
--no-8x8dct
-t --trellis 0 1 2
--no-fast-pskip
--no-dct-decimate
--nr 0 100
--deadzone-inter 21
--deadzone-intra 11
--cqm flat jvt
--cqmfile FILE.cfg
--cqm4 4x4
--cqm8 8x8
--cqm4i 4x4
--cqm4p 4x4
--cqm8i 8x8
--cqm8p 8x8
--cqm4iy 4x4
--cqm4ic 4x4
--cqm4py 4x4
--cqm4pc 4x4
Video usability info
--overscan undef show crop
--videoformat component pal ntsc secam mac undef
--range auto tv pc
--colorprim undef bt709 bt470m bt470bg smpte170m smpte240m film bt2020 smpte428 smpte431 smpte432
--transfer undef bt709 bt470m bt470bg smpte170m smpte240m linear log100 log316 iec61966-2-4 bt1361e iec61966-2-1 bt2020-10 \
bt2020-12 smpte2084 smpte428 arib-std-b67
--colormatrix undef bt709 fcc bt470bg smpte170m smpte240m GBR YCgCo bt2020nc bt2020c smpte2085 chroma-derived-nc \
chroma-derived-c ICtCp
--chromaloc 0 1
--alternative-transfer undef bt709
--nal-hrd none vbr cbr | --vbv-maxrate 1000 --vbv-bufsize 1000 --bitrate 1000
--filler | --vbv-maxrate 1000 --vbv-bufsize 1000 --bitrate 1000
--pic-struct
--crop-rect 0,0,0,0 0,8,0,0
--mastering-display undef G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)
--cll undef 1000,400
Input and output
-o --output out.264 out.mp4 out.mkv
--muxer auto raw mkv mp4 flv
--demuxer auto raw y4m lavf ffms avs
--input-fmt yuv420p
--input-csp i420 yv12 nv12 i422 i444 rgb
--output-csp i420 i422 i444 rgb
--input-depth 8 10
--output-depth 8 10
--input-range auto tv pc
--input-res 352x288
--index FILE.idx
--sar 12:11 4/3
--fps 25 29.97 30000/1001
--seek 10
--frames 100
--level 3.1 31 4 4.1 5.2 1b
--bluray-compat
--avcintra-class 50 100
--avcintra-flavor panasonic sony
--stitchable
-v --verbose
--no-progress
--quiet
--log-level none error warning info debug
--psnr
--ssim
--threads auto 4
--lookahead-threads auto 2
--sliced-threads
--thread-input
--sync-lookahead auto 0 10
--non-deterministic
--cpu-independent
--asm AVX2
--no-asm
--opencl
--opencl-clbin FILE.clbin
--opencl-device 1
--dump-yuv FILE.yuv
--sps-id 0 1
--aud
--force-cfr
--tcfile-in FILE.times
--tcfile-out FILE.times
--timebase 1/1000
--dts-compress
Filters
--vf --video-filter resize:640,480 crop:0,0,8,8
"""
ACCEPTED, MAPPED, NEAREST, REFUSED = "accepted", "mapped", "nearest", "refused"
TEXTS = {".cfg": "INTRA4X4_LUMA = " + ",".join(16 * ["16"]), ".qp": "0 I 20\n"}
_VIDEO = VideoFormat(352, 288, frames=300)
_ROWS = [row for row in OPTIONS if row.scope != API]
_REPORTS = {row.name for row in OPTIONS if row.scope == "cli" and row.name not in ("frames", "seek")}


class Tried(NamedTuple):
    """What becomes of an option with a value; text: what is said, or what stands for it."""

    value: str
    outcome: str
    text: str


class Listed(NamedTuple):
    """One option of x264."""

    group: str
    names: tuple[str, ...]
    tried: tuple[Tried, ...]

    @property
    def outcome(self) -> str:
        """Of the option: accepted, mapped (some values), in part (some values refused), refused."""
        outcomes = {one.outcome for one in self.tried}
        if outcomes <= {ACCEPTED, MAPPED}:
            return MAPPED if MAPPED in outcomes else ACCEPTED
        return "in part" if outcomes & {ACCEPTED, MAPPED} else REFUSED


def listed() -> list[Listed]:
    """All options, tried with each of their names and values."""
    group, all_of_them = "", []
    with tempfile.TemporaryDirectory() as folder:
        for ending, content in TEXTS.items():
            (Path(folder) / f"FILE{ending}").write_text(content, encoding="ascii")
        for line in FULLHELP.strip().splitlines():
            if not line.startswith("-"):
                group = line
                continue
            option, _, companions = line.partition(" | ")
            words = option.split()
            names = [word for n, word in enumerate(words) if word[:2] == "--" or (n == 0 and word[0] == "-")]
            values = words[len(names) :] or [""]
            numbers = {"4x4": ",".join(16 * ["16"]), "8x8": ",".join(64 * ["16"])}
            tried = []
            for value in values:
                meant = numbers.get(value, value).replace("FILE", f"{folder}/FILE")
                ways = [_try([name, *([meant] if meant else []), *companions.split()]) for name in names]
                if len({way[0] in (ACCEPTED, MAPPED) for way in ways}) > 1:
                    raise AssertionError(f"{names} {value}: {ways}")
                outcome, text = ways[-1]
                tried.append(Tried(value, outcome, text.replace(f"{folder}/", "")))
            all_of_them.append(Listed(group, tuple(names), tuple(tried)))
    return all_of_them


def _try(words: list[str]) -> tuple[str, str]:
    """The outcome of an option in a command, and the text that explains it, without option and value."""
    head = " ".join([*words[:2][: 1 + (len(words) > 1 and words[1][:2] != "--")]]).lstrip("-")
    try:
        lines, stands_for = _read(words)
    except OptionError as error:
        try:
            lines, _ = _read([*words, "--lenient"])
        except OptionError:
            return REFUSED, _reason(error.command_text, head)
        return NEAREST, _reason(lines[0], head)
    if lines:
        return MAPPED, _reason(lines[0], head)
    name = words[0].lstrip("-")
    same = any(word.partition("=")[0].lstrip("-") == name for word in stands_for) or words[0][:2] != "--"
    return (ACCEPTED, "") if same or not stands_for else (MAPPED, f"`{' '.join(stands_for)}`")


def _reason(text: str, head: str) -> str:
    """What is said of an option, whose name and value are `head`, without these."""
    text = text.lstrip("-")
    text = text.removeprefix(head if text.startswith(head) else text.split()[0]).strip(": ")
    return text.rpartition(" is not available: ")[2].removeprefix("is not available: ")


def _read(words: list[str]) -> tuple[list[str], list[str]]:
    """The lines that are told about a command, and the words that stand for its first option. OptionError."""
    lines: list[str] = []
    has_output = words[0] in ("-o", "--output")
    joined = cli.join_values([*words, "x_352x288.yuv", *([] if has_output else ["out.264"])], lines.append)
    if words[0] not in ("-h", "--help", "--longhelp", "--fullhelp", "-V", "--version"):
        args, unknown = cli.make_parser("encode").parse_known_args(["encode", *joined])
        if unknown:
            raise OptionError(f"unknown {unknown}")
        texts = {row.name: getattr(args, row.name) for row in _ROWS if getattr(args, row.name) is not None}
        muxer_of(args.output)
        read_options(texts, _ROWS)
        if texts.get("pass_") not in ("2", "3"):  # which read a file of --pass 1
            encode.make_config("x_352x288.yuv", _VIDEO, None, {k: v for k, v in texts.items() if k not in _REPORTS})
    option_names = {word for word in words[1:] if word.startswith("--")}
    stands_for = [word for word in joined if word.startswith("-") and word.partition("=")[0] not in option_names]
    return lines, stands_for or (["OUT"] if has_output else [])


def text() -> str:
    """The whole document."""
    rows = listed()
    counts = {outcome: sum(row.outcome == outcome for row in rows) for outcome in (ACCEPTED, MAPPED, "in part", REFUSED)}
    lines = [
        "# x264's options, one by one", "",
        "Made by [make_x264.py](make_x264.py) (`make docs`), which gives the command each option that `x264 --fullhelp`",
        f"lists; a test compares. Of {len(rows)} options {counts[ACCEPTED]} are accepted with all values tried, "
        f"{counts[MAPPED]} mapped (to other words,", "or with a line that something has no effect), "
        f"{counts['in part']} accepted with some values, {counts[REFUSED]} refused. What options do:",
        "[options.md](options.md).", "",
        "`--lenient` takes what is nearest where the last column says so, with the line that stands there; without it the",
        "command is refused with a line that says so.",
    ]  # fmt: skip
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines += ["", f"## {group}", "", "| option | | accepted | mapped | refused |", "|---|---|---|---|---|"]
        lines.append(_line(row))
    return "\n".join(lines) + "\n"


def _line(row: Listed) -> str:
    cells = [", ".join(f"`{name}`" for name in row.names), row.outcome]
    cells.append(" ".join(f"`{one.value}`" for one in row.tried if one.outcome == ACCEPTED and one.value))
    cells.append(_said(row, MAPPED))
    cells.append("; ".join(filter(None, (_said(row, REFUSED), _said(row, NEAREST, "`--lenient`: ")))))
    return f"| {' | '.join(cells)} |"


def _said(row: Listed, outcome: str, before: str = "") -> str:
    """The texts of an outcome, each once, behind its values."""
    values: dict[str, list[str]] = {}
    for one in row.tried:
        if one.outcome == outcome:
            values.setdefault(one.text.replace("|", "\\|"), []).extend([f"`{one.value}`"] if one.value else [])
    return "; ".join(f"{' '.join(named)}{': ' * bool(named)}{before}{said}" for said, named in values.items())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
