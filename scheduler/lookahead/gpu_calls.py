"""The driver calls of a batch of the lookahead on a GPU, recorded by what the batch holds, and done again for later ones."""

from collections.abc import Sequence

import numpy as np

from ...cpu_simd.bundles import HalfSize, Planes
from ...cuda_src.lookahead.half_size import half_size, sharpness
from ...cuda_src.lookahead.lookahead import (
    SHARPNESS,
    SUM,
    lookahead_both,
    lookahead_camera,
    lookahead_intra,
    lookahead_refine,
    lookahead_search,
)
from ...cuda_src.quantiser.aq_offsets import aq_offsets
from ...cuda_src.runtime.array import Stream
from ...cuda_src.runtime.device import Device, DeviceArray
from ...cuda_src.runtime.recording import HostBuffers, Recording, placeholder_address
from ...cuda_src.source.ac_energy import ac_energies
from ...standard.sample_format import Sample
from .gpu_batch import TABLE, Batch, GpuFrame

MOST_RECORDINGS = 128
WHAT = "the lookahead"  # in messages
RecordingKey = tuple[int, bool, int, int]  # new frames, whether they came on the GPU, pairs, triples


class BatchCalls:
    """One upload, a few launches and one download for each batch, on one stream. The context is current in all calls."""

    def __init__(
        self, gpu: Device, stream: Stream | None, mb_width: int, mb_height: int, shapes: Sequence[tuple[int, ...]],
        quick: bool, aq: tuple[int, int] | None, with_sharpness: bool,
    ) -> None:  # fmt: skip
        """shapes: of the planes that are uploaded; quick, aq, with_sharpness: see GpuCosts."""
        self._gpu, self.stream, self._quick, self._aq = gpu, stream, quick, aq
        self._with_sharpness, (self._height, self._width) = with_sharpness, shapes[0]
        self._mb_width, self._mb_height = mb_width, mb_height
        self._recordings: dict[RecordingKey, Recording] = {}
        # of all frames and batches, whose work follows one after another
        self._planes = [gpu.array(shape, Sample, WHAT) for shape in shapes]
        self._energy, self._aq_offsets = (gpu.array((mb_height * mb_width,), np.int32, WHAT) for _ in range(2))
        self._table = gpu.array(TABLE, np.int64)

    def run(self, batch: Batch, frames: Sequence[GpuFrame], n_pairs: int) -> None:
        """Start a batch: new frames, then pairs, then triples."""
        n_triples = batch.n_rows - len(frames) - n_pairs
        recording_key = len(frames), bool(frames) and frames[0].source is not None, n_pairs, n_triples
        recording = self._recordings.get(recording_key)
        if recording is None:
            self._keep(recording_key, self._record(batch, frames, n_pairs))
        else:
            batch.set_numbers(frames)
            recording.bind(batch.numbers)
            self._gpu.replay(recording)

    def _record(self, batch: Batch, frames: Sequence[GpuFrame], n_pairs: int) -> Recording:
        """All calls of a batch, on placeholders (recording.py) for the arrays of new frames; they are done too."""
        jobs, results = batch.jobs[: batch.n_rows], batch.results[: batch.n_rows]
        host = HostBuffers(jobs, results, batch.event, *[buffer for frame in frames for buffer in frame.host_buffers()])
        addresses = [address for frame in frames for address in frame.addresses()]
        with self._gpu.record_calls(host, addresses) as recording:
            table, stream, height = self._table[: batch.n_rows].put(jobs, self.stream), self.stream, self._mb_height
            for k, frame in enumerate(frames):
                self._enter(frame, k * len(frame.addresses()), table[k])
            of_triples = len(frames) + n_pairs
            if n_pairs:
                self.search(table[len(frames) : of_triples])
            if batch.n_rows > of_triples:
                lookahead_both(table[of_triples:], self._mb_width, height, 0, height, stream)
            table.get(results, stream)
            self._gpu.record(batch.event, stream)
        return recording

    def _enter(self, frame: GpuFrame, first: int, row: DeviceArray) -> None:
        """A new frame in half size, its adaptive quantisation, and its costs by intra prediction, of which `row` of the table
        gets the sum, and how sharp it is.

        first: number of the placeholder for the first of its arrays.
        """
        stream, height, source, energy = self.stream, self._mb_height, frame.source, self._energy
        arrays = [self._placeholder(first + k, array) for k, array in enumerate(frame.arrays)]
        half, intra = HalfSize(*arrays[: len(frame.half)]), arrays[len(frame.half)]
        if source is None:
            planes = [on_gpu.put(plane, stream) for on_gpu, plane in zip(self._planes, frame.planes)]
            luma = planes[0]
            half_size(luma, 0, height, half, stream)
            if self._aq is not None:
                ac_energies(Planes(*planes), energy, stream)
        else:
            assert stream is not None
            read = enumerate((source.planes[0], source.energy), first + len(arrays))
            luma, energy = (self._placeholder(number, array) for number, array in read)
            self._gpu.wait(stream, source.measured)
            half_size(luma, 0, height, half, stream)
        if self._with_sharpness:
            sharpness(luma, self._width, self._height, row[SHARPNESS:], stream)
        if self._aq is not None:
            aq_offsets(energy, *self._aq, self._aq_offsets, arrays[-1], stream)
            self._aq_offsets.get(frame.aq_offsets, stream)
        if source is not None and stream is not None:
            self._gpu.record(source.seen, stream)
        lookahead_intra(half, 0, height, intra, row[SUM:], stream)

    def _placeholder(self, number: int, array: DeviceArray) -> DeviceArray:
        """For an array, of any user of the GPU, that differs between replays of a recording."""
        return DeviceArray(self._gpu, placeholder_address(number), array.shape, array.dtype)

    def _keep(self, recording_key: RecordingKey, recording: Recording) -> None:
        """For later batches of a key."""
        if len(self._recordings) == MOST_RECORDINGS:
            self.drop_recordings()
        self._recordings[recording_key] = recording

    def drop_recordings(self) -> None:
        for recording in self._recordings.values():
            recording.clear()
        self._recordings.clear()

    def search(self, jobs: DeviceArray) -> None:
        """All steps of the motion of jobs."""
        mb_width, mb_height, stream = self._mb_width, self._mb_height, self.stream
        lookahead_camera(jobs, mb_width, mb_height, stream)
        lookahead_search(jobs, mb_width, mb_height, 0, mb_height, self._quick, stream)
        lookahead_refine(jobs, mb_width, mb_height, 0, mb_height, self._quick, stream)

    def upload(self, batch: Batch) -> DeviceArray:
        """The table of a batch on the GPU."""
        return self._table[: batch.n_rows].put(batch.jobs[: batch.n_rows], self.stream)

    def download(self, batch: Batch) -> None:
        """End the calls for a batch."""
        self._table[: batch.n_rows].get(batch.results[: batch.n_rows], self.stream)
        self._gpu.record(batch.event, self.stream)
