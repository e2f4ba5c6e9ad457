"""One small stream of each entropy coding mode: both decoders show the reconstruction. The quickest whole test there is."""

import pytest

from ..support import round_trip


@pytest.mark.parametrize("options", [{"crf": 24, "bframes": 2}, {"profile": "baseline", "qp": 27}], ids=str)
def test_small_stream(options: dict) -> None:
    """Seven frames with motion, an edge and noise, of a size that no macroblock divides."""
    round_trip.check(round_trip.noise_clip(90, 70, 7, 5), 90, 70, **options)
