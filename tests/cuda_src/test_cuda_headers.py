"""Headers that are generated from Python for the kernels, and that no number is said again beside them."""

import re
from importlib import import_module

import pytest
from h264lite.cuda_src.runtime import compiler, headers

ROOT = compiler.HERE.parent
TYPED = re.compile(r"^constexpr (?:unsigned |int |long |short |uint8_t )+([A-Z][^;{(]*(?:\([^;{]*)?);", re.MULTILINE)


def numbers_of_kernels(text, known):
    """{name: value} of the numbers that a CUDA source types itself, those that Python can evaluate."""
    values = {}
    for constants in TYPED.findall(text):
        for name, value in re.findall(r"(\w+) = ((?:[^,(]|\([^)]*\))*)", constants):
            plain = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)(?:u|ull)\b", r"\1", value.replace("/", "//"))
            try:
                values[name] = eval(plain, {"__builtins__": {}}, known | values)
            except (NameError, SyntaxError, TypeError):
                continue
    return {name: value for name, value in values.items() if isinstance(value, int)}


def numbers_of_python():
    """{name: {value: files}} of the integers that files of kernels and launchers have by names in capitals."""
    files_by_number = {}
    names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in sorted(ROOT.glob("cpu_simd/*.py"))]
    for name in [*names, *(f"cuda_src/{launcher}" for launcher in headers.LAUNCHERS)]:
        for constant, value in vars(import_module(f"h264lite.{name.replace('/', '.')}")).items():
            if re.fullmatch("_?[A-Z][A-Za-z0-9_]*", constant) and isinstance(value, int):
                files_by_number.setdefault(constant.lstrip("_"), {}).setdefault(int(value), []).append(name)
    return files_by_number


def test_no_number_is_typed_for_the_cpu_and_for_the_gpu():
    """Kernels have the numbers of their launchers, and those of the algorithm, by generated headers."""
    python, twice = numbers_of_python(), []
    known = {name: value for text in (header() for header in headers.GENERATED.values())
             for name, value in ((n, int(v)) for n, v in re.findall(r"constexpr int (\w+) = (-?\d+);", text))}
    for path in sorted(compiler.HERE.glob("**/*.cu*")):
        if path.suffix in (".cu", ".cuh"):
            name = path.relative_to(ROOT).as_posix()
            for constant, value in numbers_of_kernels(path.read_text(), known).items():
                if value in python.get(constant, {}):
                    twice.append(f"{name}: {constant} = {value}, as in {', '.join(python[constant][value])}")
    assert not twice, "\n".join(twice)


def test_tables_are_generated():
    text = headers.tables_header()
    assert "ALPHA[52]" in text and "constexpr int P_SKIP = 8;" in text and "ZIGZAG_4x4_DIGITS" in text


def test_decisions_are_generated():
    """And typed in no file of the GPU again."""
    texts = [header() for file, header in headers.GENERATED.items() if file.startswith("decisions/")]
    names = [name for text in texts for name in re.findall(r"constexpr int (\w+) = ", text)]
    assert len(set(names)) == len(names)
    assert {"BITS_INTRA", "REFINE_MARGIN_8x4", "RDO_BIT", "COARSE_SCALE", "MOST_HIDDEN"} <= set(names)
    typed = re.compile(rf"constexpr [^;]*\b({'|'.join(names)}) = |^(?:\w+, )*({'|'.join(names)})(?:, \w+)* = ", re.MULTILINE)
    for path in [*compiler.HERE.glob("**/*.cu*"), *compiler.HERE.glob("**/*.py")]:
        assert not typed.search(path.read_text()), path


def test_a_launcher_is_the_source_of_its_header():
    from h264lite.cuda_src.search import full_search, search_centre

    text = headers.GENERATED["search/search_centre_launch.cuh"]()
    numbers = {name: int(value) for name, value in re.findall(r"constexpr int (\w+) = (\d+);", text)}
    assert numbers == {name: vars(search_centre)[name] for name in ("WARPS", "WIDE", "HIGH", "WORDS", "ROWS")}
    assert f"constexpr int DOWN_LARGE = {full_search.DOWN_LARGE};" in headers.GENERATED["search/full_search_launch.cuh"]()


@pytest.mark.parametrize("name", compiler.module_names())
def test_kernels_are_compiled_anew_when_a_number_changes(name, monkeypatch):
    """The text of each header that a kernel file includes is part of its key, and NVRTC gets it."""
    included = set(compiler.sources(name)) & headers.GENERATED.keys()
    keys = {compiler.module_key.__wrapped__(name)}
    for file in included:
        with monkeypatch.context() as patch:
            patch.setitem(headers.GENERATED, file, lambda: "// another number\n")
            assert compiler.sources(name)[file] == "// another number\n"
            keys.add(compiler.module_key.__wrapped__(name))
    assert len(keys) == 1 + len(included)


def test_all_headers_are_written(tmp_path):
    include = compiler.write_headers(tmp_path)
    written = {path.relative_to(include).as_posix(): path.read_text() for path in include.glob("**/*.cuh")}
    assert written == {file: header() for file, header in headers.GENERATED.items()}
