#!/usr/bin/env bash
# Installs this checkout as a user does and uses it from other folders: pip with build isolation, a wheel in a second environment,
# caches copied from one to the other, and a user who can write nowhere. Its files are those of git, with new ones.
#   installed.sh [PYTHON]     two minutes; H264LITE_FATBIN says for which GPUs kernels are compiled, where nvcc is (80)
set -euo pipefail
python="${1:-python3.11}" root="$(cd "$(dirname "$0")/.." && pwd)" folder="$(mktemp -d)"
case "$python" in */*) python="$(cd "$(dirname "$python")" && pwd)/$(basename "$python")" ;; esac
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV NUMBA_CACHE_DIR H264LITE_CACHE H264LITE_BACKGROUND_COMPILE H264LITE_KERNELS
export H264LITE_FATBIN="${H264LITE_FATBIN:-80}" PIP_DISABLE_PIP_VERSION_CHECK=1
export XDG_CACHE_HOME="$folder/users"  # this user may have used the same sources before
fail() { echo "installed.sh: $*" >&2; exit 1; }
step() { echo "installed.sh: $*"; }
environment() { "$python" -m venv "$1" 2>/dev/null || virtualenv -q -p "$python" "$1"; }

source="$folder/source"
mkdir "$source"
if git -C "$root" rev-parse --git-dir >/dev/null 2>&1; then
    (cd "$root" && git ls-files -z --cached --others --exclude-standard | while IFS= read -rd '' name; do
        [ ! -e "$name" ] || printf '%s\0' "$name"; done | tar -c --null -T -) | tar -x -C "$source"
else
    cp -r "$root/." "$source"
fi

step "pip install . ($("$python" -V), $("$python" -m pip --version | cut -d' ' -f1,2))"
environment "$folder/one"
(cd "$source" && "$folder/one/bin/python" -m pip install -q .)
mkdir "$folder/work"
cd "$folder/work"
one="$folder/one/bin"
[ "$("$one/h264lite" --version)" = "$("$one/python" -m h264lite --version)" ] || fail "two versions"
if command -v nvcc >/dev/null && [ "$H264LITE_FATBIN" != 0 ]; then
    "$one/python" - <<'PROGRAM' || fail "compiled CUDA kernels of the package are not found"
from h264lite.cuda_src.runtime import compiler
names = compiler.module_names()
paths = [compiler.compiled(name, (8, 0)) for name in names]
assert names and all(path is not None and path.suffix == ".fatbin" for path in paths), paths
assert all(compiler.load_code(name, (8, 0)) == path.read_bytes() for name, path in zip(names, paths))
PROGRAM
fi

step "two first runs at once"
"$one/python" -m h264lite.samples.make_clip clip_64x48.yuv --size 64x48 --frames 3
caches="$folder/caches"
H264LITE_CACHE="$caches" "$one/h264lite" encode clip_64x48.yuv clip.264 --device cpu --dump-yuv encoded.yuv 2>first.log &
H264LITE_CACHE="$caches" "$one/h264lite" encode clip_64x48.yuv same.264 --device cpu --quiet
wait $!
cmp clip.264 same.264
[ "$(grep -c "first run: compiling" first.log)" = 1 ] || fail "the first run did not say that it compiles: $(cat first.log)"

step "h264lite compile, and its caches in another environment"
"$one/h264lite" compile --cpu --cache "$caches"
H264LITE_CACHE="$caches" "$one/h264lite" decode clip.264 decoded.yuv
cmp encoded.yuv decoded.yuv
[ "$(stat -c %s decoded.yuv)" = "$(stat -c %s clip_64x48.yuv)" ] || fail "not all 3 frames were decoded"
H264LITE_CACHE="$caches" "$one/h264lite" doctor | grep "^CPU kernels: *compiled"
environment "$folder/elsewhere/two"
two="$folder/elsewhere/two/bin"
"$two/python" -m pip wheel -q --no-deps -w "$folder/wheels" "$source"
"$two/python" -m pip install -q "$folder"/wheels/*.whl
cp -r "$caches" "$folder/elsewhere/caches"
export H264LITE_CACHE="$folder/elsewhere/caches"
counted() { "$@" 2>&1 | tee counted.log | tail -n 1 | grep -qx "0 compilations" || fail "compiled again: $(cat counted.log)"; }
for options in "" "--preset ultrafast" "--preset placebo" "--me step"; do
    counted "$two/python" "$root/tests/support/count_compilations.py" encode clip_64x48.yuv two.264 --device cpu $options
    [ -n "$options" ] || cmp two.264 clip.264
    counted "$two/python" "$root/tests/support/count_compilations.py" decode two.264 two.yuv
done
counted "$two/python" "$root/tests/support/count_compilations.py" compile --cpu
unset H264LITE_CACHE

if grep -qw avx2 /proc/cpuinfo && [ "$(uname -m)" = x86_64 ]; then
    step "a wheel with the CPU's kernels, of the class of this processor, without Numba and SciPy"
    class="$("$one/python" -c 'from h264lite.jit import wheel_kernels
print([name for name in wheel_kernels.CLASSES if wheel_kernels.has(name, wheel_kernels.processor()[2])][-1])')"
    environment "$folder/three"
    three="$folder/three/bin"
    H264LITE_KERNELS="$class" H264LITE_FATBIN=0 "$one/python" -m pip wheel -q --no-deps -w "$folder/shipped" "$source"
    "$three/python" -m pip install -q "$folder"/shipped/*.whl
    for name in numba scipy; do
        ! "$three/python" -c "import $name" 2>/dev/null || fail "$name is installed"
    done
    export H264LITE_CACHE="$folder/none"
    for options in "" "--preset ultrafast" "--preset placebo" "--me step"; do
        "$three/h264lite" encode clip_64x48.yuv three.264 --device cpu $options
        [ -n "$options" ] || cmp three.264 clip.264
        "$three/h264lite" decode three.264 three.yuv
    done
    [ -z "$(find "$folder/none" -name '*.nb?')" ] || fail "compiled: $(find "$folder/none" -name '*.nb?')"
    "$three/h264lite" doctor | grep "^CPU kernels: *compiled"
    ! H264LITE_SIMD=portable "$three/h264lite" encode clip_64x48.yuv three.264 --device cpu 2>log || fail "kernels from nowhere"
    [ "$(grep -c "pip install 'h264lite\[compile\]'" log)" = 1 ] || fail "no line says what is missing: $(cat log)"
    unset H264LITE_CACHE
fi

# A user who can write neither to the package nor to a home folder; root may write everywhere, so it is another user.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH=/usr/bin:/bin HOME=/nonexistent \
    TMPDIR="$folder/tmp" PYTHONPATH="$packages" "$interpreter" "$@"; }
packages="$("$one/python" -c 'import h264lite; print(h264lite.__path__[0].rpartition("/")[0])')"
interpreter=
for candidate in "$one/python" "/usr/bin/$("$one/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')"; do
    [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups env "$candidate" -c "" 2>/dev/null &&
        interpreter="${interpreter:-$candidate}"
done
if [ -z "$interpreter" ]; then
    step "no other user can be tried here (not root, or Python is in a closed folder)"
    exit
fi
step "a user who can write nowhere"
mkdir -m 1777 "$folder/tmp" "$folder/open"
cd "$folder/open"
nobody -m h264lite encode ../work/clip_64x48.yuv clip.264 --device cpu 2>log || fail "$(cat log)"
cmp clip.264 ../work/clip.264
[ "$(grep -c "are kept in $folder/tmp/h264lite-65534/" log)" = 1 ] || fail "no line names the temporary folder: $(cat log)"
nobody "$root/tests/support/count_compilations.py" encode ../work/clip_64x48.yuv clip.264 --device cpu 2>&1 | tail -n 1 | grep -qx "0 compilations"
nobody -m h264lite doctor >log || fail "$(cat log)"
nobody -c "import h264lite; h264lite.Decoder()"
