"""samples/live_http.py: a browser plays what it serves while it is made, and a page that is closed ends its encoder."""

import threading
import time
import urllib.request

import numpy as np
import pytest
from h264lite.samples import live_http

from .support.browser import VIDEO_STATE, Chromium, skip_without_chromium
from .support.waiting import wait_for


@pytest.fixture
def serve():
    """Starts a server; its address."""
    servers = []

    def start(*arguments):
        http = live_http.server(0, *arguments)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        servers.append(http)
        return f"http://127.0.0.1:{http.server_address[1]}/"

    yield start
    for http in servers:
        http.shutdown()
        http.server_close()


def encoders():
    """Threads that serve a video."""
    return [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]


def test_each_frame_is_sent_at_once(serve):
    """Also without a browser: the type, boxes, as many frames as asked for; frames come as they are made."""
    with urllib.request.urlopen(serve(0.1) + "live.mp4", timeout=300) as answer:
        answer.read()  # kernels are loaded
    begin = time.monotonic()
    with urllib.request.urlopen(serve(1.0) + "live.mp4", timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith('video/mp4; codecs="avc1.')
        first = answer.read(1000)
        early = time.monotonic() - begin
        data = first + answer.read()
    assert first[4:8] == b"ftyp" and data.count(b"moof") == data.count(b"mdat") == live_http.FPS
    assert time.monotonic() - begin > 0.9 and time.monotonic() - begin - early > 0.3
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(serve(1.0) + "other")


def test_a_page_that_is_closed_ends_its_encoder(serve):
    before = len(encoders())
    with urllib.request.urlopen(serve() + "live.mp4", timeout=60) as answer:
        assert len(answer.read(5000)) == 5000 and len(encoders()) == before + 1
    wait_for(lambda: len(encoders()) == before)


def test_a_browser_plays_it(serve, tmp_path):
    """The time advances with the clock, pictures move, nothing fails; at the end it ends."""
    skip_without_chromium()
    browser = Chromium(serve(6.0), tmp_path)
    try:
        states, clock = [], []
        wait_for(lambda: browser.call(VIDEO_STATE)["time"] > 0.3)
        for _ in range(3):
            states.append(browser.call(VIDEO_STATE))
            clock.append(time.monotonic())
            time.sleep(0.7)
        for state in states:
            assert (state["width"], state["height"], state["failure"]) == (live_http.WIDTH, live_http.HEIGHT, "")
            assert state["ready"] >= 2
        for earlier, later in ((0, 1), (1, 2)):
            spent = clock[later] - clock[earlier]
            assert states[later]["time"] - states[earlier]["time"] < spent + 0.6
            change = np.abs(np.subtract(states[later]["pixels"], states[earlier]["pixels"]))
            assert states[later]["time"] > states[earlier]["time"] + 0.2 and change.mean() > 5
        wait_for(lambda: browser.call(VIDEO_STATE)["ended"])
        assert abs(browser.call(VIDEO_STATE)["time"] - 6) < 0.1
    finally:
        browser.close()
