"""Encodes the clips of a dataset of Ray Data to MP4 files, some at once: python samples/ray_clips.py out --clips 8

Needs pip install 'h264lite[ray]'. On a cluster: ray job submit -- python samples/ray_clips.py /shared/out
"""

import argparse
from pathlib import Path

import numpy as np


def make_clip(row: dict) -> dict:
    """A row with frames: uint8[24, 120, 160, 3], stripes that move. A dataset of yours decodes or renders them here."""
    t, y, x = np.ogrid[:24, :120, :160]
    grey = (x + 3 * t * (1 + row["id"] % 3) + y // 2) % 256
    return {"frames": np.repeat(grey[..., None], 3, axis=3).astype(np.uint8), "path": f"{row['folder']}/{row['id']:04d}.mp4"}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpus", type=float, default=0, help="of a worker, such as 0.25")
    given = parser.parse_args()
    import h264lite.ray
    import ray

    given.folder.mkdir(parents=True, exist_ok=True)
    rows = [{"id": k, "folder": str(given.folder.resolve())} for k in range(given.clips)]
    encoded = (
        ray.data.from_items(rows)
        .map(make_clip)
        .map_batches(
            h264lite.ray.Encode,
            fn_constructor_kwargs={"target": "path", "fps": 24, "crf": 23, "on_error": "null"},
            concurrency=given.workers,
            num_cpus=1,
            num_gpus=given.gpus,
            batch_size=4,
        )
    )
    for row in encoded.iter_rows():
        print(row["video"] or row["video_error"])


if __name__ == "__main__":
    main()
