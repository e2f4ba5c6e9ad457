"""The page in headless Chromium: pictures, overlays counted against the decoder's arrays, keys and clicks, hostile texts."""

import hashlib
import shutil
import time

import h264lite
import numpy as np
import pytest
from h264lite.analysis.analyse import in_display_order
from h264lite.report.stream_report import Options
from h264lite.standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    I_PCM,
    LAST_INTRA,
    MB_TYPE_NAMES,
    P_SKIP,
    B_8x8,
    B_8x16,
    B_16x8,
    I_4x4,
    I_8x8,
    I_16x16,
    P_8x8,
    P_8x16,
    P_16x8,
)

from ..support import report_pages
from ..support.report_pages import HOSTILE, decoded

webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium (pip install 'h264lite[test-browser]')")

ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--window-size=1280,800",
             "--force-device-scale-factor=1")  # fmt: skip
LAYERS = ("grid", "slices", "partitions", "transform", "modes", "list0", "list1", "skip")
# In the page: hashes of the planes of a frame; what the layers have drawn.
PLANES = """const video = report.streams[0].videos.decoded, picture = await video.get(arguments[0]);
if (!picture) return video.failure;
const digests = [];
for (const k of [0, 1, 2]) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", report.plane(picture, k)));
  digests.push([...digest].map(byte => byte.toString(16).padStart(2, "0")).join(""));
}
return digests;"""
DRAWN = """const app = report.app;
for (const layer of arguments[1]) app.state.layers.add(layer);
if (!await app.go(arguments[0])) return "not shown";
return app.views[0].drawn;"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(60)
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield driver
    driver.quit()


def run(browser, script, *arguments):
    """The value of a script with `await` in the page; an error there fails."""
    whole = f"""const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1);
    const work = (async function () {{ {script} }}).apply(null, given);
    work.then(value => done({{value}}), error => done({{error: error.stack}}));"""
    answer = browser.execute_async_script(whole, *arguments)
    assert "error" not in answer, answer["error"]
    return answer.get("value")


def opened(browser, path):
    """Open a page and wait for its first frame; no error may be on the console."""
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert run(browser, "return report.ready") is True
    quiet(browser)


def quiet(browser):
    assert not [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


def key(browser, *keys):
    for name in keys:
        plain = name.removeprefix("Shift+")
        event = "new KeyboardEvent('keydown', {key: arguments[0], shiftKey: arguments[1], bubbles: true})"
        browser.execute_script(f"document.dispatchEvent({event})", plain, name.startswith("Shift+"))


def state(browser, name):
    return browser.execute_script(f"return report.app.state.{name}")


def until(browser, condition, what):
    """Wait until a condition holds in the page."""
    for _ in range(200):
        if browser.execute_script(f"return {condition}"):
            return
        time.sleep(0.05)
    pytest.fail(f"never: {what}")


def divisions(mbs, mb):
    """Partitions of an inter macroblock, by the decoder's arrays alone."""
    kind = mbs.mb_type[mb]
    if kind in (P_16x8, P_8x16, B_16x8, B_8x16):
        return 2
    if kind not in (P_8x8, B_8x8, B_SKIP, B_DIRECT):
        return 1
    quadrants = [(first, first + 1, first + 4, first + 5) for first in (0, 2, 8, 10)]
    motion = [{(tuple(mbs.mv[mb, :, block].ravel()), tuple(mbs.ref_idx[mb, :, q])) for block in blocks}
              for q, blocks in enumerate(quadrants)]
    if kind in (B_SKIP, B_DIRECT) and len(set.union(*motion)) == 1:
        return 1
    is_direct = [kind in (B_SKIP, B_DIRECT) or mbs.sub_type[mb, q] == 4 for q in range(4)]
    return sum((1 if len(motion[q]) == 1 else 4) if is_direct[q] else (1, 2, 2, 4)[mbs.sub_type[mb, q]] for q in range(4))


def vectors(mbs, mb, direction):
    """Partitions whose motion has that list."""
    if mbs.mb_type[mb] in (P_16x8, B_16x8):
        return int((mbs.ref_idx[mb, direction, [0, 2]] >= 0).sum())
    if mbs.mb_type[mb] in (P_8x16, B_8x16):
        return int((mbs.ref_idx[mb, direction, [0, 1]] >= 0).sum())
    if divisions(mbs, mb) == 1:
        return int(mbs.ref_idx[mb, direction, 0] >= 0)
    one = [mbs.ref_idx[mb, direction, q] >= 0 for q in range(4)]
    quadrants = [(first, first + 1, first + 4, first + 5) for first in (0, 2, 8, 10)]
    count = 0
    for q, blocks in enumerate(quadrants):
        sub, spread = mbs.sub_type[mb, q], len({tuple(mbs.mv[mb, :, block].ravel()) for block in blocks})
        parts = (1 if spread == 1 else 4) if mbs.mb_type[mb] in (B_SKIP, B_DIRECT) or sub == 4 else (1, 2, 2, 4)[sub]
        count += parts * one[q]
    return count


def expected_layers(frame):
    mbs, width = frame.macroblocks, frame.sps.mb_width
    types, slices = mbs.mb_type, mbs.slice_id.reshape(-1, width)
    inter = [mb for mb in range(types.size) if types[mb] > LAST_INTRA]
    shown = [mb for mb in inter if types[mb] not in (P_SKIP, B_SKIP)]
    blocks = 16 * int((types == I_4x4).sum()) + 4 * int((types == I_8x8).sum()) + int((types == I_16x16).sum())
    return {
        "grid": types.size, "skip": int(np.isin(types, (P_SKIP, B_SKIP)).sum()),
        "slices": int((slices[:, 1:] != slices[:, :-1]).sum() + (slices[1:] != slices[:-1]).sum()),
        "partitions": blocks + int((types == I_PCM).sum()) + sum(divisions(mbs, mb) for mb in shown),
        "transform": int(mbs.transform_8x8[~np.isin(types, (P_SKIP, B_SKIP, I_PCM))].sum()), "modes": blocks,
        "list0": sum(vectors(mbs, mb, 0) for mb in inter), "list1": sum(vectors(mbs, mb, 1) for mb in inter),
    }  # fmt: skip


@pytest.mark.parametrize("kind", report_pages.KINDS)
def test_pictures_and_overlays_are_those_of_the_decoder(browser, tmp_path, kind):
    data = report_pages.stream(kind)
    path, _ = report_pages.make(tmp_path, data)
    opened(browser, path)
    frames = decoded(data)
    order = [*range(len(frames)), len(frames) // 2, 0, len(frames) - 1]  # forwards, then jumps
    for n in order:
        expected = [hashlib.sha256(plane.tobytes()).hexdigest() for plane in (frames[n].y, frames[n].u, frames[n].v)]
        assert run(browser, PLANES, n) == expected, n
    for n, frame in enumerate(frames):
        assert run(browser, DRAWN, n, LAYERS) == expected_layers(frame), n
    quiet(browser)


def expected_strengths(frame):
    """bS of an analysed frame, uint8[n, 2, 4, 4]: vertical and horizontal edges, edge, piece."""
    strengths = frame.by_macroblock("strengths").reshape(-1, 2, 4, 4)
    return np.stack([strengths[:, 0].swapaxes(1, 2), strengths[:, 1]], axis=1)


@pytest.mark.parametrize("kind", report_pages.KINDS)
def test_deblocking_strengths_are_those_of_the_decoder(browser, tmp_path, kind):
    path, _ = report_pages.make(tmp_path, report_pages.stream(kind))
    opened(browser, path)
    for n, frame in enumerate(in_display_order(h264lite.analyse(report_pages.stream(kind)))):
        strengths = run(browser, """const stream = report.streams[0], n = arguments[0];
        return [...report.boundaryStrengths(stream, n, await stream.arrays(n))];""", n)  # fmt: skip
        expected = expected_strengths(frame)
        assert np.array_equal(np.reshape(strengths, expected.shape), expected), n
        assert run(browser, DRAWN, n, ["strength"])["strength"] == np.count_nonzero(expected)


@pytest.mark.parametrize("name", ("type", "qp", "bits"))
def test_maps_have_the_colours_of_the_values(browser, tmp_path, name):
    """At the middle of each macroblock; equal values have equal colours, and the ends of the scale those of its legend."""
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    opened(browser, path)
    frame = decoded(report_pages.stream("high"))[4]
    drawn = run(browser, """const app = report.app, view = app.views[0], out = [];
    app.state.opacity = 1; app.state.layers.clear(); app.setMap(arguments[0]); await app.go(4);
    for (let mb = 0; mb < view.arrays.n; mb++) {
      const x = report.place.x + (16 * (mb % 7) + 2) * report.place.scale;
      const y = report.place.y + (16 * Math.floor(mb / 7) + 2) * report.place.scale;
      out.push([...view.context.getImageData(Math.round(x), Math.round(y), 1, 1).data].join());
    }
    return out;""", name)  # fmt: skip
    values = {"type": frame.macroblocks.mb_type, "qp": frame.macroblocks.qp, "bits": frame.macroblocks.bits}[name].tolist()
    colours = {value: {colour for other, colour in zip(values, drawn) if other == value} for value in set(values)}
    assert all(len(some) == 1 for some in colours.values()), colours
    if name != "qp":  # of which the frame may have one value alone
        assert len(set(drawn)) > 2
    legend = browser.find_element("id", "legend").text
    assert (MB_TYPE_NAMES[values[0]] if name == "type" else {"qp": "QP", "bits": "bits a macroblock"}[name]) in legend


def test_keys(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    opened(browser, path)
    last = len(report_pages.clip()) - 1
    indices = [frame.decode_index for frame in decoded(report_pages.stream("high"))]
    coded = sorted(range(last + 1), key=indices.__getitem__)
    for keys, expected in ((["ArrowRight"], 1), (["ArrowRight", "ArrowRight"], 3), (["ArrowLeft"], 2),
                           (["Shift+ArrowRight"], 12), (["End"], last), (["ArrowRight"], last), (["Home"], 0),
                           (["ArrowLeft"], 0)):  # fmt: skip
        key(browser, *keys)
        assert state(browser, "n") == expected, keys
    key(browser, "o")
    assert state(browser, "order") == "coded"
    for place in range(1, 6):
        key(browser, "ArrowRight")
        assert state(browser, "n") == coded[place]
    key(browser, "o", "2")
    assert (state(browser, "order"), state(browser, "map")) == ("display", "qp")
    key(browser, "2", "p", "v")
    assert state(browser, "map") == "none" and set(run(browser, "return [...report.app.state.layers]")) == {"list0"}
    before = browser.execute_script("return report.place.scale")
    key(browser, "+", "+")
    assert browser.execute_script("return report.place.scale") > 1.5 * before
    key(browser, "0")
    assert browser.execute_script("return report.place.scale") == before
    key(browser, "Home", " ")
    until(browser, "report.app.state.n > 3", "it plays")
    key(browser, " ")
    assert browser.find_element("id", "play").text in ("play", "stop")
    until(browser, "document.getElementById('play').textContent === 'play'", "it stops")
    quiet(browser)


def test_clicks_and_the_pointer(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    opened(browser, path)
    frames = decoded(report_pages.stream("high"))
    timeline, canvas = browser.find_element("id", "time"), browser.find_element("css selector", ".view canvas")

    def at(element, x, y):
        box = element.rect
        move = webdriver.ActionChains(browser, duration=0)
        return move.move_to_element_with_offset(element, round(x - box["width"] / 2), round(y - box["height"] / 2))

    for n in (5, 11):
        x = browser.execute_script("const t = report.app.timeline; return (t.x(arguments[0]) + t.x(arguments[0] + 1)) / 2", n)
        at(timeline, x, 80).click().perform()
        until(browser, f"report.app.views[0].n === {n}", f"frame {n} is shown")
        assert f"frame {n}" in browser.find_element("id", "time-tip").text
    mbs, mb = frames[11].macroblocks, 9
    place = browser.execute_script("return [report.place.x, report.place.y, report.place.scale]")
    where = at(canvas, place[0] + (16 * (mb % 7) + 8) * place[2], place[1] + (16 * (mb // 7) + 8) * place[2])
    where.perform()
    tip = browser.find_element("id", "tip").text
    for text in (MB_TYPE_NAMES[mbs.mb_type[mb]], f"{mb}, column 2, row 1", f"bits {mbs.bits[mb]}", f"QP_Y {mbs.qp[mb]}"):
        assert text in tip, tip
    where.click().perform()
    assert state(browser, "mb") == mb and state(browser, "tab") == "macroblock"
    assert MB_TYPE_NAMES[mbs.mb_type[mb]] in browser.find_element("id", "panel").text
    for tab, text in (("frame", "slice_type"), ("totals", "QP"), ("stream", "sequence parameter set 0")):
        browser.find_element("css selector", f"#tabs [data-tab={tab}]").click()
        assert text.lower() in browser.find_element("id", "panel").get_property("textContent").lower()
    for label, condition in (("coding order", "report.app.state.order === 'coded'"), ("▶", "report.app.state.n !== 11")):
        browser.find_element("xpath", f"//button[text()='{label}']").click()
        until(browser, condition, label)
    browser.find_element("css selector", "#tools input[value=modes]").click()
    assert "modes" in run(browser, "return [...report.app.state.layers]")
    quiet(browser)


def test_hostile_texts_are_shown_and_do_nothing(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.hostile_stream(), names=(HOSTILE,))
    opened(browser, path)
    assert HOSTILE.strip() in browser.title + " " and HOSTILE.strip() in browser.find_element("id", "names").text
    for tab in ("macroblock", "frame", "totals", "stream"):
        browser.find_element("css selector", f"#tabs [data-tab={tab}]").click()
    assert HOSTILE in browser.find_element("id", "panel").get_property("textContent")
    assert browser.execute_script("return window.hacked ?? null") is None
    assert browser.execute_script("return document.images.length") == 0
    # the policy stops what a mistake would let through
    browser.execute_script("document.body.insertAdjacentHTML('beforeend', '<img src=x: onerror=window.hacked=3>');"
                           "const box = document.createElement('div'); box.innerHTML = '<svg onload=window.hacked=4></svg>';"
                           "document.body.append(box)")  # fmt: skip
    time.sleep(0.3)
    assert browser.execute_script("return window.hacked ?? null") is None
    browser.get_log("browser")


def test_two_streams_side_by_side(browser, tmp_path):
    class Source:
        def frames(self, seek, count):
            return iter(report_pages.clip())

    streams = report_pages.stream("baseline"), report_pages.stream("high")
    path, _ = report_pages.make(tmp_path, *streams, sources=(Source(), Source()), options=Options())
    opened(browser, path)
    assert run(browser, "return report.app.go(6)") is True
    assert run(browser, "return report.app.views.map(view => view.n)") == [6, 6]
    panel = browser.find_element("id", "panel").text
    meta = report_pages.read(path).meta["streams"]
    mean = [sum(frame["psnr"][0] for frame in stream["frames"]) / len(stream["frames"]) for stream in meta]
    assert f"{mean[0]:.3f}" in panel and f"{mean[1]:.3f}" in panel and f"{abs(mean[1] - mean[0]):.3f}" in panel
    assert len(browser.find_elements("css selector", "#panel svg circle")) == 2 * len(report_pages.clip()) + 2
    key(browser, "2", "x")
    assert "B − A, QP" in browser.find_element("id", "legend").text
    for picture in ("source", "difference", "prediction", "residual", "other", "blank", "decoded"):
        assert run(browser, "return report.app.setPicture(arguments[0])", picture) is True
        assert browser.find_element("css selector", ".note").is_displayed() is False
    mean = run(browser, """await report.app.setPicture("difference");
    const view = report.app.views[0], {width, height} = view.stream;
    const data = view.picture.getContext("2d").getImageData(0, 0, width, height).data;
    let sum = 0;
    for (let k = 0; k < data.length; k += 4) sum += Math.abs(data[k] - 128);
    return sum / data.length;""")  # fmt: skip
    expected = np.abs(decoded(report_pages.stream("baseline"))[6].y.astype(int) - report_pages.clip()[6][0]).mean()
    # 4 times the difference, over 4 channels; the source is coded anew
    assert mean == pytest.approx(expected, rel=0.35)
    drawn = run(browser, """const video = report.streams[0].videos.prediction, picture = await video.get(6);
    return [...report.plane(picture, 0)];""")  # fmt: skip
    frames = h264lite.analyse(report_pages.stream("baseline"), samples=True)
    expected = next(frame for frame in frames if frame.display_index == 6).prediction.y
    assert np.abs(np.reshape(drawn, expected.shape) - expected.astype(int)).mean() < 3
    quiet(browser)


def test_two_streams_of_other_sizes_and_lengths(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"), report_pages.stream("x264"))
    opened(browser, path)
    key(browser, "2", "x", "o", "End")
    until(browser, "report.app.views[1].n === 23", "the last frame of the longer one is shown")
    assert run(browser, "return [report.app.views[0].n, report.app.state.n]") == [len(report_pages.clip()) - 1, 23]
    assert run(browser, "return report.app.setPicture('other')") is True
    for _ in range(12):
        key(browser, "ArrowLeft")
    for tab in ("frame", "macroblock", "totals", "stream", "compare"):
        browser.find_element("css selector", f"#tabs [data-tab={tab}]").click()
    until(browser, "report.app.views.every(view => view.n === report.app.state.n)", "both show the same frame")
    quiet(browser)


def test_data_in_a_folder(browser, tmp_path):
    path, outcome = report_pages.make(tmp_path, report_pages.stream("high"), in_page=9000, name="a b#1%2F?.html")
    assert outcome.outside
    opened(browser, path)
    assert run(browser, DRAWN, 12, LAYERS) == expected_layers(decoded(report_pages.stream("high"))[12])
    quiet(browser)


def test_without_a_decoder_the_overlays_stay(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    hide = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.VideoDecoder"})
    try:
        opened(browser, path)
        assert "WebCodecs" in browser.find_element("css selector", ".note").text
        assert run(browser, DRAWN, 5, LAYERS) == expected_layers(decoded(report_pages.stream("high"))[5])
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", hide)


def test_maps_keep_the_legend_and_lie_over_a_grey_picture(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    opened(browser, path)
    run(browser, "report.app.state.opacity = 0; report.app.state.layers.clear(); await report.app.go(4); return 1;")
    seen = """const view = report.app.views[0], p = report.place;
    const data = view.context.getImageData(Math.round(p.x) + 2, Math.round(p.y) + 2, 60, 60).data;
    let most = 0;
    for (let k = 0; k < data.length; k += 4)
      most = Math.max(most, Math.abs(data[k] - data[k + 1]), Math.abs(data[k] - data[k + 2]));
    return most;"""
    assert run(browser, seen) > 20
    run(browser, "report.app.setMap('qp'); return 1;")
    assert run(browser, seen) <= 2
    run(browser, "report.app.toggle('partitions'); report.app.toggle('list0'); return 1;")
    legend = browser.find_element("id", "legend").get_property("textContent")
    for text in ("QP", "inter", "intra", "list 0, ref_idx 0", "ref_idx 3 and more", "I frame", "B frame"):
        assert text in legend, legend


def test_the_box_at_the_pointer_leaves_the_panel_free(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    opened(browser, path)
    for part in (0.05, 0.5, 0.99):
        right, side = run(browser, """const app = report.app, view = app.views[0], p = report.place;
        const box = view.canvas.getBoundingClientRect();
        const place = {clientX: box.left + p.x + arguments[0] * view.stream.width * p.scale, clientY: box.top + p.y + 5};
        app.hover(view, place);
        const tip = document.getElementById("tip");
        if (tip.hidden) return "no box";
        return [tip.getBoundingClientRect().right, document.getElementById("side").getBoundingClientRect().left];""",
        part)  # fmt: skip
        assert right <= side
    quiet(browser)


def test_the_axis_has_frames_and_seconds(browser, tmp_path):
    path, _ = report_pages.make(tmp_path, report_pages.stream("high"))
    opened(browser, path)
    fps, ticks = run(browser, "return [report.streams[0].fps, report.app.timeline.ticks]")
    assert 2 <= len(ticks) <= 9
    for tick in ticks:
        number, seconds = tick.removesuffix(" s").split(" · ")
        assert abs(int(number) / fps - float(seconds)) <= 0.005
    assert all("s" not in tick for tick in run(browser, "report.app.setOrder('coded'); return report.app.timeline.ticks"))
    quiet(browser)
