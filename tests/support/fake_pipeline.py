"""A pipeline that codes nothing: for tests of what stands around it, without compiling a kernel.

As a program it is the command line with this pipeline in place of the real one:

    python tests/support/fake_pipeline.py encode in.yuv out.264 ...

FAKE_DELAY: seconds a frame takes; FAKE_LAG: frames by which results are late. FAKE_READY:
number of a file that gets a byte when the first frame begins.
"""

import os
import sys
import time
import types

import numpy as np
from h264lite.encoder.errors import InputError
from h264lite.encoder.frame_pipeline import FramePipeline
from h264lite.encoder.frames.source import planes_of
from h264lite.encoder.statistics import SUMMED
from h264lite.scheduler.frames.host_rgb import RgbFrame
from h264lite.standard.macroblock import MB_TYPE_NAMES, I_4x4, P_16x16


class EncodedFrame:
    """What the real one has, for a frame that was only looked at."""

    def __init__(self, index, planes, config):
        self.index = self.coding_index = self.pts = self.dts = index
        self.is_idr = index % config.types.keyint == 0
        self.frame_type = "I" if self.is_idr else "P"
        self.qp = config.rate.i_qp if self.is_idr else config.rate.qp
        self.avg_qp, self.qp_range, self.qp_by = float(self.qp), (self.qp, self.qp), "type"
        self.data = b"frame %06d:" % index + planes[0].tobytes()[:5] + b"\n"
        self.mb_counts = np.zeros(len(MB_TYPE_NAMES), np.int64)
        self.mb_counts[I_4x4 if self.is_idr else P_16x16] = config.coding.n_mb
        self.ssd = (100, 20, 30)
        self.sums, self.transform_8x8 = [0] * len(SUMMED), 0
        self.bits = 8 * len(self.data)
        self.bits_by_kind = (self.bits - 6, 1, 2, 3) if config.coding.bits_by_kind else None
        self.stage_seconds = {"nothing": 0.001}
        self.in_buffer, self.ssim, self.predicted = None, None, 0
        self.reconstruction = tuple(np.pad(p, ((0, h - p.shape[0]), (0, w - p.shape[1])), "edge") for p, h, w in zip(
            planes, (config.coding.output_height, config.coding.output_height // 2, config.coding.output_height // 2),
            (config.coding.output_width, config.coding.output_width // 2, config.coding.output_width // 2)))


class Pipeline(FramePipeline):
    """In place of encoder/pipeline.py."""

    taken = ()

    def __init__(self, config, keep_reconstruction=False, warn=None, trace=None):
        self.config, self.keep = config, keep_reconstruction
        self.count, self.waiting = 0, []
        self.lag = int(os.environ.get("FAKE_LAG", "2"))

    def headers(self):
        return b"headers"

    def request(self, request):
        pass

    def set_bt709(self):
        pass

    def encode(self, source, spec=None, ahead=()):
        if callable(source):
            read, source = source, np.empty(sum(height * width for height, width in self.config.coding.display), np.uint8)
            read(source)
        if isinstance(source, RgbFrame):
            planes, outside = source.planes()
            if outside and source.checked:
                raise InputError("say value_range=(0, 1)")
        else:
            planes = planes_of(source, self.config.coding.display)
        self.count = self.count if spec is None else spec.coding_index
        if ready := os.environ.pop("FAKE_READY", ""):
            os.write(int(ready), b"x")
        time.sleep(float(os.environ.get("FAKE_DELAY", "0")))
        self.waiting.append(EncodedFrame(self.count, planes, self.config))
        self.count += 1
        done, self.waiting = self.waiting[: -self.lag or None], self.waiting[-self.lag :] if self.lag else []
        return done

    def flush(self):
        done, self.waiting = self.waiting, []
        return done

    def close(self):
        self.waiting = []


def take_place(monkeypatch):
    """The encoder finds this module in place of its pipeline, in one test."""
    monkeypatch.setitem(sys.modules, "h264lite.encoder.pipeline", sys.modules[__name__])


def install():
    """The same for a process."""
    module = types.ModuleType("h264lite.encoder.pipeline")
    module.Pipeline, module.EncodedFrame = Pipeline, EncodedFrame
    sys.modules[module.__name__] = module


if __name__ == "__main__":
    install()
    from h264lite.__main__ import main

    sys.path.insert(0, os.path.dirname(__file__))
    from steady import steady_words

    if sys.argv[1:2] == ["encode"]:
        sys.argv[1:] = steady_words(sys.argv[1:])
    sys.exit(main())
