"""Which axis is which: arrays of 10,000 shapes are read right or refused with the argument that decides."""

import pytest
from h264lite.encoder.errors import InputError, OptionError
from h264lite.encoder.frames.layouts import (
    COLOURS,
    FORMATS,
    PACKED,
    SMALLEST,
    Known,
    Layout,
    find_layout,
    read_format,
    read_layout,
)
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = ("HW", "HWC", "CHW", "THW", "THWC", "TCHW", "CTHW", "BTHWC", "BTCHW", "BCTHW", "BHWC", "BCHW", "BTHW", "BHW")


@st.composite
def arrays(draw, least):
    """(layout, shape): a layout and a shape that it has."""
    axes = draw(st.sampled_from(WORDS))
    format = draw(st.sampled_from([name for name in FORMATS if ("C" in axes) <= (name in COLOURS)
                                   and ("C" in axes or name not in ("rgb", "bgr", "rgba", "bgra"))]))  # fmt: skip
    sizes = {
        "B": 1,
        "T": draw(st.one_of(st.integers(1, 6), st.integers(1, 300))),
        "C": COLOURS.get(format, 1),
        "H": draw(st.one_of(st.integers(least, 8), st.integers(least, 2000))),
        "W": draw(st.one_of(st.integers(least, 8), st.integers(least, 2000))),
    }
    if format in PACKED:
        sizes["H"], sizes["W"] = 3 * sizes["H"], 2 * sizes["W"]
    return Layout(axes, format), tuple(sizes[axis] for axis in axes)


def same(guess, true, shape):
    """Whether two readings give the same frames. BGR is not found by shape."""
    moving = ["".join(axis for axis, n in zip(layout.axes, shape) if n > 1 or axis in "HW") for layout in (guess, true)]
    formats = {"bgr": "rgb", "bgra": "rgba"}.get(true.format, true.format)
    return moving[0] == moving[1].replace("B", "") and guess.format == formats and guess.size(shape) == true.size(shape)


@pytest.mark.parametrize("examples", (1000, pytest.param(10_000, marks=pytest.mark.slow)))
def test_shapes_alone_are_right_or_refused(examples):
    settings(max_examples=examples, deadline=None)(given(arrays(SMALLEST), st.booleans())(right_or_refused))()


def right_or_refused(case, is_uint8):
    true, shape = case
    if true.format in PACKED:
        is_uint8 = True
    try:
        layout = find_layout(shape, is_uint8, whole=True)
    except InputError as error:
        assert "layout=" in str(error) or "format=" in str(error)
    else:
        assert same(layout, true, shape), layout


@settings(max_examples=500, deadline=None)
@given(arrays(1))
def test_what_is_said_is_taken(case):
    true, shape = case
    layout = find_layout(shape, True, true.axes, true.format)
    assert layout.size(shape) == true.size(shape) and layout.frames(shape) == true.frames(shape)
    assert layout.format == true.format
    width, height = true.size(shape)
    if true.format in ("rgb", "gray", "i420"):
        earlier = Known(true.format, width, height, frozenset([true.axes]))
        try:
            assert same(find_layout(shape, True, known=earlier, whole=True), true, shape)
        except InputError as error:  # grey frames as many as colours, of a video whose layout has another number of axes
            assert "layout=" in str(error)


@pytest.mark.parametrize(("shape", "axes", "format"), [
    ((480, 640, 3), "HWC", "rgb"), ((3, 480, 640), "CHW", "rgb"), ((480, 640, 4), "HWC", "rgba"), ((481, 640), "HW", "gray"),
    ((480, 640, 1), "HWC", "gray"), ((9, 480, 640, 3), "THWC", "rgb"), ((9, 3, 480, 640), "TCHW", "rgb"),
    ((3, 9, 480, 640), "CTHW", "rgb"), ((1, 3, 9, 480, 640), "BCTHW", "rgb"), ((1, 9, 3, 480, 640), "BTCHW", "rgb"),
    ((1, 3, 480, 640), "TCHW", "rgb"), ((3, 1, 480, 640), "CTHW", "rgb"), ((9, 481, 640), "THW", "gray"),
    ((9, 480, 641), "THW", "gray"),
])  # fmt: skip
def test_frames_and_chunks_of_a_loop(shape, axes, format):
    assert find_layout(shape, True) == Layout(axes, format)


@pytest.mark.parametrize(("shape", "options", "words"), [
    ((5, 480, 640), {}, "gray of 640x480, or i420 of 640x320: say format='gray' or format='i420'"),
    ((480, 640), {}, "say format='gray' or format='i420'"), ((3, 64, 3), {}, "layout="),
    ((3, 3, 480, 640), {}, "say layout='CTHW' or layout='TCHW'"), ((4, 3, 480, 640), {}, "may be CTHW or TCHW"),
    ((4, 480, 640), {}, "may be CHW or THW"), ((3, 480, 640), {"whole": True}, "may be CHW or THW"),
    ((1, 3, 481, 640), {"whole": True}, "may be CTHW or TCHW"), ((2, 9, 3, 480, 640), {}, "a batch of 2 videos"),
    ((9, 480, 640, 2), {}, "no known frame"), ((7,), {}, "no known frame"), ((0, 480, 640, 3), {}, "no samples"),
    ((9, 480, 640, 3), {"layout": "TCHW"}, "does not fit layout='TCHW'"),
    ((9, 480, 640, 3), {"format": "rgba"}, "does not fit format='rgba'"), ((9, 479, 640), {"format": "nv12"}, "does not fit"),
    ((2, 9, 480, 640, 3), {"layout": "BTHWC"}, "a batch of 2"),
])  # fmt: skip
def test_what_is_ambiguous_or_impossible_is_refused(shape, options, words):
    with pytest.raises(InputError) as caught:
        find_layout(shape, True, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_names():
    assert (read_layout("tchw"), read_layout(None)) == ("TCHW", None)
    assert (read_format("Grey"), read_format("bgr24"), read_format(None)) == ("gray", "bgr", None)
    for value in ("", "HC", "THWCC", "XHW", 5, ["T"]):
        with pytest.raises(OptionError, match="layout"):
            read_layout(value)
    for value in ("yuv444p", "", 5, ["rgb"]):
        with pytest.raises(OptionError, match="format"):
            read_format(value)
