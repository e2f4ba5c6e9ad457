"""x264's command lines: each option that it lists is accepted, mapped, or refused with a reason, as docs/x264.md says."""

import re
import runpy
from pathlib import Path

import pytest
from h264lite.cli import cli
from h264lite.encoder.settings.x264_options import EQUAL, HINTS, UNBUILT

from ..support import fake_pipeline
from ..support.steady import steady_words
from .test_cli import make_clip

ROOT = Path(__file__).resolve().parent.parent.parent
MADE = runpy.run_path(str(ROOT / "docs" / "make_x264.py"))
LISTED = MADE["listed"]()


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """cli.main with the fake pipeline, in an empty folder with clip_18x16.yuv."""
    fake_pipeline.take_place(monkeypatch)
    monkeypatch.setattr("h264lite.cli.encode.will_compile", lambda *_: False)
    make_clip(tmp_path)
    monkeypatch.chdir(tmp_path)
    return lambda words: cli.main(["encode", *steady_words(words.split()), "--device", "cpu"])


def test_every_option_of_x264_is_known_and_refusals_have_a_reason():
    assert len(LISTED) > 140 and len({name for row in LISTED for name in row.names}) == sum(len(row.names) for row in LISTED)
    for row in LISTED:
        for one in row.tried:
            assert not re.search("unknown|not supported|not built|yet", one.text), (row.names, one)
            assert (one.outcome == "accepted") == (not one.text), (row.names, one)
            assert one.outcome == "accepted" or len(one.text) > 2


def test_the_page_of_x264_s_options_is_current():
    assert (ROOT / "docs" / "x264.md").read_text(encoding="utf-8") == MADE["text"](), "run make docs"


def test_words_of_x264_that_are_none_here_are_listed():
    """A row of the tables that x264 does not list is FFmpeg's, a negation, or an older name of x264."""
    names = {name.lstrip("-").replace("-", "_") for row in LISTED for name in row.names}
    ours = {*UNBUILT, *HINTS, *(name for name, _ in EQUAL)}
    others = {name for name in ours - names if name.removeprefix("no_") not in names}
    assert others - {f"no_{name}" for name in others} <= {
        "config", "log_file", "log_file_level", "annexb", "interlaced", "chroma_me", "mixed_refs", "fast_pskip",
        "dct_decimate", "cabac", "8x8dct", "weightb", "mbtree", "psy", "codec", "vcodec", "pix_fmt", "pixelformat",
        "quality", "movflags", "macro_block_size", "options", "x264_params", "x264opts", "ffmpeg_params", "output_params",
        "no_interlaced", "stdin",
        "fourcc", "gop_size", "max_b_frames", "framerate", "keyframe", "qp_offsets"}  # fmt: skip


@pytest.mark.parametrize(("words", "said", "files"), (
    ("-o o.264 clip_18x16.yuv --no-progress", [], ["o.264"]),
    ("clip_18x16.yuv --output=o.264 --preset slow -q 20", [], ["o.264"]),
    ("-oo.264 clip_18x16.yuv -v -w -8 --mixed-refs", [], ["o.264"]),
    ("--partitions p8x8,b8x8,i8x8,i4x4 --slow-firstpass --log-level info -o o.264 clip_18x16.yuv", [], ["o.264"]),
    ("--psy-rd 1.0:0.15 -o o.264 clip_18x16.yuv", ["--psy-rd 1.0:0.15 acts as 1: the trellis has no psy-RD"], ["o.264"]),
    ("--asm AVX2 --lookahead-threads 2 --sliced-threads -o o.264 clip_18x16.yuv", ["--asm has no effect: the variable",
     "--lookahead-threads has no effect: the lookahead", "--sliced-threads has no effect: frames have"], ["o.264"]),
    ("--lenient --subme 11 --trellis 2 --direct auto --me tesa --open-gop clip_18x16.yuv o.264",
     ["--subme 11: 10 is taken, the nearest", "--trellis 2: 1 is taken", "--direct is left out: ", "--me tesa: esa is taken",
      "--open-gop is left out: GOPs are closed"], ["o.264"]),
    ("--asm AVX2 --quiet -o o.264 clip_18x16.yuv", [], ["o.264"]),
    ("-o o.264.part clip_18x16.yuv", [], ["o.264.part"]), ("-o out --muxer raw clip_18x16.yuv", [], ["out"]),
))  # fmt: skip
def test_commands_of_x264(fake, capfd, tmp_path, words, said, files):
    assert fake(words) == 0
    warned = [line for line in capfd.readouterr().err.splitlines() if "[warning]" in line]
    assert len(warned) == len(said), warned
    assert all(line.startswith(f"h264lite [warning]: {text}") for line, text in zip(warned, said)), warned
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["clip_18x16.yuv", *files])
    assert all((tmp_path / name).stat().st_size for name in files)


LEVELS = ("none", "error", "warning", "info", "debug")
WARNED = "clip_18x16.yuv -o o.264 --asm AVX2 --progress plain"  # a hint without effect; times are not kept
FAILS = "none_18x16.yuv -o f.264 --asm AVX2"


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("by", ("name", "number", "case"))
def test_log_levels(fake, capfd, tmp_path, number, by):
    """Each level has the lines of those before and more; the exit code is that of the command, whatever is said."""
    level = {"name": LEVELS[number], "number": str(number - 1), "case": LEVELS[number].upper()}[by]
    (tmp_path / "in.times").write_text("# timestamp format v2\n0\n40\n240\n280\n320\n")
    assert fake(f"{WARNED} --tcfile-in in.times --log-level {level}") == 0
    lines = capfd.readouterr().err.splitlines()
    warnings, infos = ([line for line in lines if f"h264lite [{kind}]: " in line] for kind in ("warning", "info"))
    assert bool(warnings) == (number >= 2) and ("--asm has no effect" in " ".join(warnings)) == (number >= 2)
    assert ("variable frame rate" in " ".join(warnings)) == (number >= 2)
    assert bool(infos) == (number >= 3) == any(line.startswith("encoded ") for line in lines)
    assert any("plan: " in line for line in infos) == (number == 4)
    assert fake(f"{FAILS} --log-level {level}") == 1
    lines = capfd.readouterr().err.splitlines()
    assert [line[:24] for line in lines if "[warning]" not in line] == ["h264lite encode: error: "][: number > 0]
    assert len(lines) == min(number, 2)
    assert fake(f"clip_18x16.yuv o.264 --crf 99 --log-level {level}") == 2  # an option that is read after the level
    assert bool(capfd.readouterr().err) == (number > 0)


QUIET = (("--quiet", 1), ("--quiet --log-level info", 1), ("--quiet --log-level error", 0), ("--log-level warning", 2))


@pytest.mark.parametrize(("words", "count"), QUIET)
def test_quiet_lowers_the_level(fake, capfd, tmp_path, words, count):
    """Warnings of what the output lacks stay, those of options do not."""
    (tmp_path / "in.times").write_text("# timestamp format v2\n0\n40\n240\n280\n320\n")
    assert fake(f"{WARNED} --tcfile-in in.times {words}") == 0
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == count and all("variable frame rate" in line for line in lines[-1:])


def test_a_level_ends_with_its_command(fake, capfd):
    """The next command of the process says all again; a level that is none is refused, with a line."""
    assert fake("clip_18x16.yuv o.264 --log-level none") == 0 and not capfd.readouterr().err
    assert fake(FAILS) == 1 and capfd.readouterr().err.count("error: ") == 1
    assert fake("clip_18x16.yuv o.264 --log-level loud") == 2
    assert "log-level loud" in capfd.readouterr().err
    assert fake("clip_18x16.yuv o.264 --nonsense --log-level none") == 2  # before the level is known
    assert "nonsense" in capfd.readouterr().err


@pytest.mark.parametrize(("words", "line"), (
    ("--qp 0", "--qp 0 is the finest there is, not lossless as in x264"), ("--crf 0", "--crf 0 is the finest"),
    ("-q 0", "--qp 0 is"), ("--qp 1", ""), ("--crf 0.1", ""), ("", ""),
))  # fmt: skip
def test_a_quantiser_of_0_is_not_lossless(fake, capfd, words, line):
    fake(f"clip_18x16.yuv o.264 --preset ultrafast {words}")  # whose pipeline has no rate factor
    text = capfd.readouterr().err
    assert (f"h264lite [info]: {line}" if line else "lossless") in text or not line
    assert ("lossless" in text) == bool(line)


@pytest.mark.parametrize(("words", "said"), (
    ("-preset fast", "-preset is an option of FFmpeg: say --preset"), ("-tune film", "say --tune"), ("-crf 20", "say --crf"),
    ("-qp 20", "say --qp"), ("-b:v 2M", "-b:v is an option of FFmpeg: say --bitrate, in kbit/s"), ("-bf 2", "say --bframes"),
    ("-maxrate 2M", "say --vbv-maxrate"), ("-vf hflip", "filter before: ffmpeg"), ("-c:v libx264", "the stream is H.264"),
    ("-an", "--audio"), ("-y", "leave it out"), ("-movflags +faststart", "--fragment"), ("-g 30", "say --keyint"),
    ("-threads 2", "say --threads"), ("-profile:v high", "say --profile"),
    ("-i clip_18x16.yuv", "-i clip_18x16.yuv: -i is --min-keyint; IN needs no option"),
))  # fmt: skip
def test_options_of_ffmpeg_are_refused_with_those_that_stand_for_them(fake, capfd, tmp_path, words, said):
    assert fake(f"{words} clip_18x16.yuv o.264") == 2 == fake(f"clip_18x16.yuv o.264 {words}")
    text = capfd.readouterr().err
    assert text.count(said) == 2 == text.count("\n") and not (tmp_path / "o.264").exists()


@pytest.mark.parametrize("words", (
    "-i 5", "-i auto", "-iauto", "-f-1:1 -w -8 -v", "-q20 -b2 -r2 -m3 -t0 -Anone -I infinite",
))  # fmt: skip
def test_letters_of_x264_stay_what_they_are(fake, tmp_path, words):
    assert fake(f"{words} clip_18x16.yuv -oo.264") == 0 and (tmp_path / "o.264").exists()


def test_batches_tell_once_what_acts_otherwise(fake, tmp_path, capfd):
    (tmp_path / "list").write_text("clip_18x16.yuv a.264\nclip_18x16.yuv b.264\n")
    assert fake("--batch list --psy-rd 1:1 --lenient --subme 11 --workers 1") == 0
    text = capfd.readouterr().err
    assert text.count("acts as 1") == text.count("10 is taken") == 1 and (tmp_path / "b.264").exists()


@pytest.mark.parametrize("word", ("-h", "--help", "--longhelp", "--fullhelp", "-V", "--version"))
def test_questions(fake, capfd, word):
    assert fake(word) == 0
    out = capfd.readouterr().out
    assert out.startswith("h264lite 0") if word in ("-V", "--version") else "--lenient" in out
