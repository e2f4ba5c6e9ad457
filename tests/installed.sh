#!/usr/bin/env bash
# Installs this checkout as a user does (pip, with build isolation) into a new environment, encodes and decodes a clip with it from another folder.
#   installed.sh [PYTHON]     about a minute; H264LITE_FATBIN says for which GPUs kernels are compiled, where nvcc is (80)
set -euo pipefail
python="${1:-python3.11}" root="$(cd "$(dirname "$0")/.." && pwd)" folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH NUMBA_CACHE_DIR

"$python" -m venv "$folder/env" 2>/dev/null || virtualenv -q -p "$python" "$folder/env"
(cd "$root" && H264LITE_FATBIN="${H264LITE_FATBIN:-80}" "$folder/env/bin/python" -m pip install -q --disable-pip-version-check .)

cd "$folder"
export PATH="$folder/env/bin:$PATH"
python "$root/samples/make_clip.py" clip_64x48.yuv --size 64x48 --frames 3
h264lite encode clip_64x48.yuv clip.264 --device cpu --quiet --dump-yuv encoded.yuv
h264lite decode clip.264 decoded.yuv
cmp encoded.yuv decoded.yuv
[ "$(stat -c %s decoded.yuv)" = "$(stat -c %s clip_64x48.yuv)" ] || { echo "installed.sh: not all 3 frames were decoded" >&2; exit 1; }
h264lite doctor | grep "^CPU kernels: *compiled"
