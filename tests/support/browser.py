"""Headless Chromium by chromedriver's HTTP interface (WebDriver), without a client library."""

import json
import re
import shutil
import subprocess
import urllib.request

import pytest

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update",
             "--autoplay-policy=no-user-gesture-required"]  # fmt: skip

# In the page: where its element `video` is, and its picture in small
VIDEO_STATE = """async () => {
  const canvas = document.createElement("canvas"); canvas.width = 64; canvas.height = 36;
  const picture = canvas.getContext("2d"); picture.drawImage(video, 0, 0, 64, 36);
  return {time: video.currentTime, ready: video.readyState, width: video.videoWidth, height: video.videoHeight,
          failure: video.error ? video.error.message : "", ended: video.ended,
          pixels: [...picture.getImageData(0, 0, 64, 36).data]};
}"""


def skip_without_chromium():
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")


class Chromium:
    """Shows a page and runs functions of it."""

    def __init__(self, url, profile):
        self._driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        try:
            said = (re.search(r"started successfully on port (\d+)", line) for line in self._driver.stdout)
            port = next(match[1] for match in said if match)
            self._url = f"http://127.0.0.1:{port}/session"
            options = {"args": [*ARGUMENTS, f"--user-data-dir={profile}"], "binary": shutil.which("chromium")}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options}
            session = self._post("", {"capabilities": {"alwaysMatch": wanted}})
            self._url += "/" + session["sessionId"]
            self._post("/timeouts", {"script": 15000})
            self.show(url)
        except BaseException:
            self.close()
            raise

    def _post(self, path, body, method="POST"):
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), head, method=method)
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)["value"]

    def show(self, url):
        self._post("/url", {"url": url})

    def call(self, function, *arguments):
        """What an async function returns, by its name or as an expression."""
        script = (f"const done = arguments[arguments.length - 1]; ({function})(...[...arguments].slice(0, -1))"
                  ".then(done, error => done({error: String(error)}))")  # fmt: skip
        answer = self._post("/execute/async", {"script": script, "args": list(arguments)})
        assert "error" not in answer, answer
        return answer

    def close(self):
        if hasattr(self, "_url"):
            self._post("", {}, "DELETE")
        self._driver.terminate()
        self._driver.wait()
        self._driver.stdout.close()
