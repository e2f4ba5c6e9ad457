"""Rules of the house: sizes of files and functions, docstrings, imports, documentation, ruff and mypy."""

import ast
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("jit", "standard", "sound", "mp4", "cpu_simd", "cuda_src", "scheduler", "encoder", "decoder", "analysis",
            "reader", "report", "cluster", "cli")
# Bottom to top: what each folder may import of ours, by folder or file.
MAY_IMPORT = {
    "jit": {"jit"},
    "standard": {"standard"},
    "sound": {"standard", "sound"},
    "mp4": {"standard", "sound", "mp4"},
    "cpu_simd": {"jit", "standard", "cpu_simd"},
    "cuda_src": {"jit", "standard", "cuda_src", "cpu_simd.layout", "cpu_simd.decisions", "cpu_simd.cabac_typical",
                 "cpu_simd.bundles"},
    "scheduler": {"jit", "standard", "cpu_simd", "cuda_src", "scheduler"},
    "encoder": {"jit", "standard", "sound", "mp4", "cpu_simd", "scheduler", "encoder"},
    "decoder": {"jit", "standard", "decoder"},
    "analysis": {"jit", "standard", "mp4", "decoder", "analysis"},
    "reader": {"standard", "mp4", "encoder.errors", "encoder.settings", "decoder", "reader"},
    "report": {"standard", "encoder", "decoder", "analysis", "report"},
    "cluster": {"scheduler", "encoder", "cluster"},
    "cli": {"jit", "mp4", "scheduler", "cuda_src", "encoder", "decoder", "analysis", "report", "cluster", "cli"},
}
LONGEST_FILE = 500  # lines of code, so that no prose is squeezed; tables are exempt
LONGEST_FUNCTION, LONGEST_KERNEL = 60, 90  # lines
SHORTEST_FILE = 30  # lines; but launchers, each beside its .cu, and packages' __init__
SHORT = {
    "__main__.py": "an entry point",
    "version.py": "read by setup.cfg",
    "extras/ray.py": "the module h264lite.ray",
    "scheduler/context_warmup.py": "what a worker process imports before all else",
    "standard/macroblock.py": "a table that all rooms share",
    "standard/sample_format.py": "names that all rooms share",
    "cpu_simd/decisions/adaptation.py": "numbers by stage: an edit compiles what reads them",
    "cpu_simd/decisions/common.py": "the same",
    "cpu_simd/decisions/lookahead.py": "the same",
    "cpu_simd/simd/vector_type.py": "imports Numba, and so only where kernels are compiled",
    "cpu_simd/wavefront.py": "shared by stages that do not import each other",
}
TABLES = ("tables", "cabac_contexts")
LONG_FUNCTIONS = {  # up to LONGEST_KERNEL; so are tests
    "cpu_simd/": "a kernel sets up a dozen buffers and walks the macroblocks: a part would take all of them",
    "encoder/settings/config.py": "from_options: a check after another",
    "benchmarks/cuda_stages.py": "a call of each stage",
    "tests/": "a scene is told in one piece",
}
MOST_PARAMETERS = 12  # more are a bundle (cpu_simd/bundles.py), or a smaller function


def tracked() -> list[str]:
    """Files of the repository and new ones that git does not ignore, by git, or by a walk without git."""
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return sorted(name for name in listed.split("\n") if name and (ROOT / name).exists())
    except (OSError, subprocess.CalledProcessError):
        hidden = re.compile(r"(^|/)(\.(?!ci|gitignore)[^/]*|__pycache__|out|build|dist|[^/]*\.egg-info)(/|$)")
        names = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
        return sorted(name for name in names if not hidden.search(name))


FILES = tracked()
PYTHON = [name for name in FILES if name.endswith(".py")]
SOURCES = [name for name in PYTHON if name.split("/")[0] in PACKAGES]


def tree(name):
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def functions(name):
    return [node for node in ast.walk(tree(name)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def code_lines(name):
    """Lines that are neither empty nor a comment of their own; docstrings do not count either."""
    lines = [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    prose = {k for k, line in enumerate(lines) if not line or line.startswith(("#", "//"))}
    if name.endswith(".py"):
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                prose.update(range(node.lineno - 1, node.end_lineno))
    return len(lines) - len(prose)


def test_files_are_short():
    long = {name: lines for name in FILES if name.endswith((".py", ".cu", ".cuh")) and not name.startswith("tests/")
            and not any(part in name for part in TABLES)
            if (lines := code_lines(name)) > LONGEST_FILE}
    assert not long


def test_files_are_not_tiny():
    """A piece of another file, by its subject, belongs into that; those that stand alone have a reason."""
    own = [name for name in PYTHON if name in SOURCES or "/" not in name or name.startswith("extras/")]
    tiny = {name for name in own if len((ROOT / name).read_text().splitlines()) < SHORTEST_FILE
            and not name.endswith("__init__.py") and not (ROOT / name).with_suffix(".cu").exists()}
    assert tiny == SHORT.keys(), "into the file that uses it, or a reason in SHORT"


def test_twins_lie_in_folders_of_one_name():
    """A stage's function is folder/file.function on both devices."""
    places = {top: {name.split("/")[-1]: name.split("/")[1:-1] for name in SOURCES if name.startswith(f"{top}/")}
              for top in ("cpu_simd", "cuda_src")}  # fmt: skip
    both = {name for name in places["cpu_simd"].keys() & places["cuda_src"].keys() if name != "__init__.py"}
    assert len(both) > 20 and not [name for name in both if places["cpu_simd"][name] != places["cuda_src"][name]]


def test_files_for_8_bits_alone_are_listed():
    """docs/kernels.md has the files whose first lines say that other samples need a second form of them."""
    noted = {name for name in FILES if name.split("/")[0] in PACKAGES and name.endswith((".py", ".cu", ".cuh"))
             and re.search(r"^(//|#) Samples of 8 bits only: ", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)}
    listed, docs = set(), (ROOT / "docs/kernels.md").read_text(encoding="utf-8")
    for folder, *cells in re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", docs, re.MULTILINE):
        tops = ("" if folder == "`decoder/`" else "cpu_simd/", "cuda_src/")
        listed |= {top + folder.strip("`") + name for top, cell in zip(tops, cells) for name in cell.split(", ")
                   if re.fullmatch(r"\w+\.(py|cuh?)", name)}
    assert noted == listed and len(noted) > 60


def test_functions_are_short():
    most = {name: LONGEST_KERNEL if name.startswith(tuple(LONG_FUNCTIONS)) else LONGEST_FUNCTION for name in PYTHON}
    long = [f"{name}:{node.lineno} {node.name}" for name in PYTHON for node in functions(name)
            if node.end_lineno - node.lineno > most[name]]
    assert not long


def test_functions_have_few_parameters():
    long = []
    for name in (name for name in PYTHON if not name.startswith("tests/")):
        for node in functions(name):
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if len(parameters) > MOST_PARAMETERS:
                long.append(f"{name}:{node.lineno} {node.name}")
    assert not long


def test_files_say_what_they_are_for():
    assert not [name for name in PYTHON if not (ast.get_docstring(tree(name)) or "").split("\n")[0].strip()]


def test_longer_functions_have_docstrings():
    missing = []
    for name in SOURCES:
        module = tree(name)
        classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
        for node in (*module.body, *(inner for owner in classes for inner in owner.body)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                if node.end_lineno - node.lineno > 12 and not ast.get_docstring(node):
                    missing.append(f"{name}:{node.lineno} {node.name}")
    assert not missing


def imported(name):
    """(line, dotted path as parts) of everything of ours that a file imports, what only types need too."""
    package = name.split("/")[:-1]
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) + 1 - node.level], *(node.module.split(".") if node.module else [])]
            yield from ((node.lineno, [*base, alias.name]) for alias in node.names)
        dynamic = isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module"
        if dynamic and isinstance(node.args[0], ast.Constant):
            words = node.args[0].value
            level = len(words) - len(words.lstrip("."))
            yield node.lineno, [*package[: len(package) + 1 - level], *words.lstrip(".").split(".")]


def test_imports_are_relative_and_run_upwards_only():
    wrong = []
    for name in SOURCES:
        package = name.split("/")[0]
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "h264lite":
                wrong.append(f"{name}:{node.lineno} absolute import of {node.module}")
            if isinstance(node, ast.Import) and any(part.name.split(".")[0] == "h264lite" for part in node.names):
                wrong.append(f"{name}:{node.lineno} absolute import")
        wrong += [f"{name}:{line} {package} imports {other[0]}" for line, other in imported(name)
                  if other[0] in MAY_IMPORT and not {other[0], ".".join(other[:2])} & MAY_IMPORT[package]]
    assert not wrong


def test_imports_run_in_no_circle():
    files = {name.removesuffix(".py").replace("/", "."): name for name in SOURCES}
    arrows = {me: {".".join(what[:k]) for _, what in imported(name) for k in (len(what), len(what) - 1)} & files.keys()
              for me, name in files.items()}
    while ends := {me for me, others in arrows.items() if not others & arrows.keys() - {me}}:
        arrows = {me: others for me, others in arrows.items() if me not in ends}
    assert not arrows, f"circles among {sorted(arrows)}"


def test_benchmarks_and_samples_import_each_other_by_the_package():
    """Else `python -m h264lite.benchmarks.NAME` of an installed package finds nothing."""
    wrong = []
    for name in PYTHON:
        folder = name.rpartition("/")[0]
        if folder in ("benchmarks", "samples"):
            for node in ast.walk(tree(name)):
                names = [part.name for part in node.names] if isinstance(node, ast.Import) else (
                    [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
                wrong += [f"{name}:{node.lineno} {other}" for other in names if f"{folder}/{other}.py" in PYTHON]
    assert not wrong


def test_no_kernel_is_parallel_or_inexact():
    wrong = []
    for name in SOURCES:
        for node in ast.walk(tree(name)):
            risky = isinstance(node, ast.keyword) and node.arg in ("parallel", "fastmath")
            if risky and ast.unparse(node.value) != "False":
                wrong.append(f"{name}:{node.lineno} {node.arg}")
    assert not wrong


# Files that are imported when a kernel is compiled; the decoder loads its kernels by Numba
IMPORT_NUMBA = {
    "jit/dispatchers.py", "jit/interfaces.py", "jit/numba_cache.py", "jit/parts.py", "cpu_simd/simd/vector_type.py",
}  # fmt: skip


def test_loading_a_kernel_imports_no_numba():
    """Intrinsics are those of jit/intrinsics.py; see jit/numba_free.py."""
    importers = {name for name in SOURCES for node in tree(name).body
             if isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0)
             for module in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
             if module.partition(".")[0] in ("numba", "llvmlite")}  # fmt: skip
    assert importers == IMPORT_NUMBA


def names_of(program):
    """The names of a program of docs/."""
    return runpy.run_path(str(ROOT / "docs" / program))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_list_of_files_is_current():
    assert read("docs/files.md") == names_of("make_files.py")["text"](FILES), "run make docs"


def test_every_file_says_in_one_sentence_what_it_is_for():
    program = names_of("make_files.py")
    assert not [name for name in FILES if program["is_listed"](name) and not program["first_line"](name)]


def test_the_door_is_short():
    """What a newcomer reads first; figures, lists of files and history have other places."""
    lines = {name: len(read(name).splitlines()) for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")}
    assert lines["README.md"] <= 90 and lines["ARCHITECTURE.md"] <= 150 and lines["CHANGELOG.md"] <= 60, lines


def test_architecture_names_every_room():
    text = read("ARCHITECTURE.md")
    assert not [name for name in (*PACKAGES, "samples", "benchmarks", "papers", "docs", "tests") if f"`{name}/`" not in text]


def test_the_readme_says_what_the_program_says():
    """Exit codes and extras of the README are those of the program."""
    text = read("README.md")
    for words in ("make encode", "make test", "Not supported", "130", "patent", "h264lite.Encoder"):
        assert words in text, words


def test_the_readme_has_the_measured_times():
    text = read("README.md")
    assert names_of("make_times.py")["text"](text) == text, "run make docs"


PAGES = [name for name in FILES if name.endswith(".md")]
# x264, p8x8 and iec61966-2-1 are names; 352x288 is two numbers, 8.4.1 one
NAME, NUMBER = re.compile(r"(?<!\w)[A-Za-z_][\w-]*"), re.compile(r"\d+(?:[.,]\d+)*")
MOST_FIGURES = 8  # one line in so many may have four numbers or more


def figures(text):
    """(lines with four numbers or more, all lines), without blocks of code and the targets of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in re.sub(r"\]\([^)]*\)", "", text).splitlines() if line.strip()]
    return sum(len(NUMBER.findall(NAME.sub("", line))) >= 4 for line in lines), len(lines)


def test_pages_explain_and_leave_figures_to_data():
    """Measurements are rows of benchmarks/results; a page has the one that matters."""
    diaries = {name: counts for name in PAGES if name.startswith("docs/") or "/" not in name
               if (counts := figures(read(name)))[0] * MOST_FIGURES > counts[1]}
    assert not diaries
    assert figures("On 2026-11-22 it took 5, 6, 7.1 ms\nof `1 2 3 4`\n\n8.4.1 and 352x288, x264 at 12.5") == (3, 3)
    assert figures("x264, p8x8, H264LITE_1 and 1 2 3\n```\n1 2 3 4\n```\n[3](4.md) 1 2\n") == (0, 2)


def anchors(text):
    """What headings can be linked to as, as GitHub makes it."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def dead_links(page, text):
    """Relative links and anchors of a page that lead nowhere."""
    plain = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", plain):
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        to = (ROOT / page).parent / path if path else ROOT / page
        if not to.exists():
            yield f"{page}: {target}"
        elif anchor and anchor not in anchors(to.read_text(encoding="utf-8")):
            yield f"{page}: {target}, no such heading"


def test_links_lead_somewhere():
    assert not [dead for page in PAGES for dead in dead_links(page, read(page))]
    assert len([*dead_links("README.md", "[a](none.md) [b](README.md#none) [c](#licence-and-patents) `[d](none)`")]) == 2


def test_pages_that_the_code_names_are_there():
    named = re.compile(r"(?<![\w/])(?:docs|benchmarks/results)/[\w/.-]*\w")
    sources = [name for name in FILES if name.endswith((".py", ".cu", ".cuh", ".js", ".toml", ".md")) or name == "Makefile"]
    dead = [f"{name}: {page}" for name in sources if name != "tests/test_house.py"
            for page in named.findall(read(name)) if not (ROOT / page).exists()]
    assert not dead


def tool(*words, **environment):
    if importlib.util.find_spec(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed (pip install -e '.[dev]')")
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_ruff_is_content():
    tool("ruff", "check", "--quiet", *PYTHON)


UNFORMATTED = {"encoder/settings/options.py", "encoder/settings/presets.py", "encoder/settings/tunes.py"}  # tables


def test_ruff_formats_the_product():
    tool("ruff", "format", "--check", "--quiet", *(name for name in SOURCES if name not in UNFORMATTED))


SHAPES = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def holds_rows(statement):
    """Whether it is a table of several lines, or has one, or is a function with its signature."""
    shapes = [node for node in ast.walk(statement) if isinstance(node, SHAPES) and node.end_lineno > node.lineno]
    return bool(shapes) or isinstance(statement, ast.FunctionDef)


def test_what_the_formatter_leaves_alone_are_tables_and_signatures():
    wrong = []
    for name in (name for name in SOURCES if name not in UNFORMATTED):
        statements = [node for node in ast.walk(tree(name)) if isinstance(node, ast.stmt)]
        for number, line in enumerate(read(name).splitlines(), 1):
            if line.endswith("# fmt: skip"):
                around = [node for node in statements if node.lineno <= number <= node.end_lineno]
                if not holds_rows(max(around, key=lambda node: node.lineno)):
                    wrong.append(f"{name}:{number}")
    assert not wrong


def test_mypy_is_content(tmp_path):
    (tmp_path / "h264lite").symlink_to(ROOT)  # the package's name is its folder's
    words = [part for package in (*PACKAGES, "papers.kernels", "compat") for part in ("-p", f"h264lite.{package}")]
    tool("mypy", "--cache-dir", str(tmp_path / "cache"), *words, MYPYPATH=str(tmp_path))
