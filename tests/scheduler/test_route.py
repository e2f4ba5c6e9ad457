"""Plans and routes: whatever the split and the timing, every device reads what one device would."""

import random
from dataclasses import replace

import pytest
from h264lite.scheduler.accesses import accesses
from h264lite.scheduler.arrays import (
    CURRENT,
    DECODED,
    INTRA_FILL,
    PREVIOUS_FRAME_ARRAYS,
    REFERENCE_ARRAYS,
    RESULTS,
    SECOND_FILL,
    SECOND_RESULTS,
    SOURCES,
    Size,
)
from h264lite.scheduler.hybrid import route as routing
from h264lite.scheduler.hybrid.plan import EXTENDED, SPLITS, SPLITTING, UNSPLIT, WHOLE, Plan, memory_of
from h264lite.scheduler.hybrid.residency import NOTHING
from h264lite.scheduler.hybrid.route import Copy, FrameTraits, Run, engine, route
from h264lite.scheduler.stages import CUDA, STAGES, TABLE

from ..encoder.test_frame_order import specs_of

HEIGHT = 7
SIZE = Size(5, HEIGHT, 48)
GPU = ("cpu", "cuda:0")


# ---- plans
def test_forced_splits():
    for first in range(HEIGHT + 1):
        for whole in (0, 1):
            plan = Plan.split(GPU, HEIGHT, first, whole)
            assert plan.span("full_search", 0) == (0, first) and plan.span("full_search", 1) == (first, HEIGHT)
            assert plan.span("intra", whole) == (0, HEIGHT) and not plan.rows["intra"][1 - whole]
            assert plan.single == {(HEIGHT, 0): "cpu", (0, 1): "cuda:0"}.get((first, whole))
            again = Plan.split(GPU, HEIGHT, first, whole)
            assert plan == again and hash(plan) == hash(again)
    step = Plan.split(GPU, HEIGHT, 0, 1, "step")
    assert step.rows["step_search"] == (HEIGHT, 0) and "full_search" not in step.rows and step.single is None
    assert Plan.split(("cpu",), HEIGHT, HEIGHT, 0).single == "cpu"


@pytest.mark.parametrize(("rows", "words"), (
    ({"full_search": (3, 3)}, "full_search: rows"), ({"full_search": (-1, 8)}, "rows"), ({"intra": (3, 4)}, "does not split"),
    ({"step_search": (0, 7)}, "does not exist for cuda:0"), ({"deblock": (7,)}, "2 devices"), ({"deblock": (0, 0)}, "rows"),
))  # fmt: skip
def test_plans_that_are_refused(rows, words):
    with pytest.raises(ValueError, match=words):
        Plan.complete(GPU, HEIGHT, rows)


def test_every_stage_has_its_rows():
    assert {"step_search", "mode_decision", "rd_decision", "intra"} <= {*UNSPLIT} and not {*UNSPLIT} & {*SPLITS, *EXTENDED}
    with pytest.raises(ValueError, match=r"intra: a step of frames that has no rows in this plan .* How to add a stage"):
        Plan.complete(GPU, HEIGHT, {stage: (0, HEIGHT) for stage in (*SPLITS, "mode_decision")}).spans("intra")
    plan = Plan.split(GPU, HEIGHT, 2, 1)
    assert plan.rows["extend_luma"] == (HEIGHT, HEIGHT) and plan.span("extend_luma", 1) == (0, HEIGHT)
    alone = Plan.complete(GPU, HEIGHT, {stage: (0, HEIGHT) for stage in (*SPLITS, "mode_decision", "intra")})
    assert alone.rows["extend_luma"] == (0, HEIGHT) and alone.single == "cuda:0"


# ---- routes
# What neighbour_vectors writes, but for the vectors of undivided macroblocks, which it reads in other rows
IN_PART = "search_mv", "neighbour_vectors"


def undivided(value):
    """Those of a row."""
    return value[2] if value[0] == IN_PART[0] and len(value) > 2 else value


class Machine:
    """Memories of rows that only know how they were made; operations in any order that needs and engines allow."""

    def __init__(self, plan, seed):
        self.rng = random.Random(seed)
        self.memories = {m: {} for m in ("cpu", *map(memory_of, plan.devices))}

    def rows(self, memory, key):
        return self.memories[memory].setdefault(key, [("nothing", *key)] * HEIGHT)

    def start(self, n, picture):
        lasting = (*REFERENCE_ARRAYS, *PREVIOUS_FRAME_ARRAYS)
        for name, memory in self.memories.items():
            for key in [key for key in memory if key[1] == CURRENT or key[0] not in lasting]:
                del memory[key]
            for filled in ("qp",) if picture.n_ref else ("qp", *INTRA_FILL):
                memory[filled, CURRENT] = [("filled", n)] * HEIGHT
            if not picture.n_ref1:
                memory |= {(filled, CURRENT): [("filled", n)] * HEIGHT for filled in SECOND_FILL}
            if name == picture.source:
                memory.update({(plane, CURRENT): [(plane, n, row) for row in range(HEIGHT)] for plane in SOURCES})

    def run(self, op, picture):
        memory, done = memory_of(op.device), {}
        uses = accesses(op.stage, op.reference, picture.ref_lists)
        if op.stage in EXTENDED or op.stage == "compact":
            return
        for row in range(op.row0, op.row1):
            contents = [op.stage]
            for use in uses:
                if use.halo_rows is not None:
                    span = range(max(0, row - use.halo_rows[0]), min(HEIGHT, row + use.halo_rows[1] + 1))
                    held = self.rows(memory, use.key)
                    whole = (use.key[0], op.stage) != IN_PART
                    contents += [held[r] if r == row or whole else undivided(held[r]) for r in span]
            done[row] = hash(tuple(contents))
        for use in uses:
            if use.writes:
                held = self.rows(memory, use.key)
                for row, contents in done.items():
                    kept = [undivided(held[row])] if (use.key[0], op.stage) == IN_PART else []
                    held[row] = (use.key[0], contents, *kept)

    def picture(self, n, ops, picture):
        """One picture; returns the results in the host's memory."""
        self.start(n, picture)
        left = list(range(len(ops)))
        done = set()
        while left:
            first = {}
            for index in left:
                first.setdefault(engine(ops[index]), index)
            ready = [index for index in first.values() if done.issuperset(ops[index].needs)]
            index = self.rng.choice(ready)
            op = ops[index]
            if isinstance(op, Run):
                self.run(op, picture)
            elif op.array[0] != "level_index":
                target = self.rows(op.target, op.array)
                target[op.row0 : op.row1] = self.rows(op.source, op.array)[op.row0 : op.row1]
            left.remove(index)
            done.add(index)
        compacted = [memory_of(op.device) for op in ops if isinstance(op, Run) and op.stage == "compact"]
        rows_of = {name: self.rows("cpu", (name, CURRENT)) for name in (*RESULTS, *SECOND_RESULTS, *SOURCES)}
        rows_of["levels"] = self.rows(compacted[0] if compacted else "cpu", ("levels", CURRENT))
        if picture.decoded:
            rows_of |= {name: self.rows("cpu", (name, CURRENT)) for name in DECODED}
        rows_of = {name: list(rows) for name, rows in rows_of.items()}
        for memory in self.memories.values():  # numbers of the next picture
            for name in REFERENCE_ARRAYS:
                kept = [memory.get((name, k), [("nothing", name, k)] * HEIGHT) for k in picture.references_after]
                for key in [key for key in memory if key[0] == name]:
                    del memory[key]
                memory |= {(name, k): rows for k, rows in enumerate(kept)}
            for name in PREVIOUS_FRAME_ARRAYS:
                memory[name, 0] = memory.pop((name, CURRENT), [("nothing", name, CURRENT)] * HEIGHT)
        return rows_of


def random_plan(rng, devices):
    """Any split of any stage, and whole stages anywhere."""
    count, rows = len(devices), {}
    for stage in SPLITTING:
        likely = (0, 1, HEIGHT // 2, HEIGHT - 1, HEIGHT, rng.randrange(HEIGHT + 1))
        cuts = sorted(rng.choice(likely) for _ in range(count - 1))
        rows[stage] = tuple(b - a for a, b in zip([0, *cuts], [*cuts, HEIGHT]))
    for stage in WHOLE:
        one = rng.randrange(count)
        rows[stage] = tuple(HEIGHT * (k == one) for k in range(count))
    if rng.random() < 0.3:  # done twice instead of copied
        rows["interpolate"] = (HEIGHT,) * count
    return Plan.complete(devices, HEIGHT, rows)


def pictures(ref, keyint, count, **more):
    for n in range(count):
        yield n, FrameTraits(SIZE, min(n % keyint, ref), ref, **more)


@pytest.mark.half
@pytest.mark.parametrize("devices", (GPU, ("cuda:0", "cpu"), ("cpu", "cpu:1"), ("cuda:0", "cpu", "cuda:1")), ids=str)
@pytest.mark.parametrize(("ref", "keyint"), ((1, 20), (3, 20), (2, 3)))
@pytest.mark.parametrize("by_cost", (False, True))
def test_any_split_in_any_order_is_one_device(devices, ref, keyint, by_cost):
    """by_cost: decisions by cost, and frames with weights and a repeated reference."""
    for seed in range(6):
        rng = random.Random(100 * seed + ref)
        plan = random_plan(rng, devices)
        one, many, valid = Plan.split(("cpu",), HEIGHT, HEIGHT, 0, "fsbm", 6 * by_cost, by_cost), Machine(plan, seed), NOTHING
        alone, nothing = Machine(one, 0), NOTHING
        source = rng.choice(["cpu", memory_of(devices[0])])
        for n, plain in pictures(ref, keyint, 7, decoded=bool(seed % 2), source=source, subme=6 * by_cost, cabac=by_cost):
            weighted = rng.choice(((), (0,), (1,), (0, 1))) if by_cost and plain.n_ref else ()
            picture = replace(plain, weighted=weighted, duplicates=int(1 in weighted))
            if rng.random() < 0.2:
                plan = random_plan(rng, devices)  # a new plan in the middle
            ops, valid = route(plan, picture, valid)
            ops_alone, nothing = route(one, replace(picture, source="cpu"), nothing)
            pictured, expected = many.picture(n, ops, picture), alone.picture(n, ops_alone, replace(picture, source="cpu"))
            for name, rows in expected.items():
                assert pictured[name] == rows, f"seed {seed}, picture {n}, {name}, rows {plan.rows}"


B_SIZE = replace(SIZE, has_b_frames=True)


def b_pictures(pyramid, by_cost, **more):
    """Of specs: (number, kind) of frames of a stream with B frames, I frames that are no IDR frames among them."""
    held = ()
    for spec in specs_of(12, bframes=3, b_pyramid=pyramid, ref=2, keyint=9):
        held = () if spec.is_idr else held
        numbers = {index: k for k, index in enumerate(held)} | {spec.coding_index: CURRENT}
        entries = tuple(numbers[k] for k in (*spec.list0, *spec.list1))
        yield spec.coding_index, FrameTraits(
            B_SIZE, spec.n_ref, 0, is_idr=spec.is_idr, subme=6 * by_cost, cabac=by_cost, n_ref1=spec.n_ref1,
            is_reference=spec.is_reference, entries=entries, after=tuple(numbers[k] for k in spec.references_after), **more,
        )  # fmt: skip
        held = spec.references_after


@pytest.mark.half
@pytest.mark.parametrize("devices", (GPU, ("cuda:0", "cpu"), ("cuda:0", "cpu", "cuda:1")), ids=str)
@pytest.mark.parametrize("pyramid", ("none", "normal", "dyadic"))
@pytest.mark.parametrize("by_cost", (False, True))
def test_b_frames_in_any_split_in_any_order(devices, pyramid, by_cost):
    for seed in range(4):
        rng = random.Random(100 * seed + len(pyramid))
        plan = random_plan(rng, devices)
        one, many = Plan.split(("cpu",), HEIGHT, HEIGHT, 0, "fsbm", 6 * by_cost, by_cost, True), Machine(plan, seed)
        alone, valid, nothing, b_frames = Machine(one, 0), NOTHING, NOTHING, 0
        source = rng.choice(["cpu", memory_of(devices[0])])
        for n, picture in b_pictures(pyramid, by_cost, decoded=bool(seed % 2), source=source):
            if rng.random() < 0.2:
                plan = random_plan(rng, devices)
            ops, valid = route(plan, picture, valid)
            ops_alone, nothing = route(one, replace(picture, source="cpu"), nothing)
            pictured, expected = many.picture(n, ops, picture), alone.picture(n, ops_alone, replace(picture, source="cpu"))
            for name, rows in expected.items():
                assert pictured[name] == rows, f"seed {seed}, picture {n}, {name}, rows {plan.rows}"
            b_frames += {"mode_decision_b", "explicit_motion"} <= {op.stage for op in ops if isinstance(op, Run)}
        assert b_frames >= 6


@pytest.mark.parametrize("what", ("needs", "copies", "halo"))
def test_the_machine_finds_what_is_missing(monkeypatch, what):
    """A route without its needs, without some copies or with too small a halo is found out."""
    plan, one = Plan.split(GPU, HEIGHT, 3, 1), Plan.split(("cpu",), HEIGHT, HEIGHT, 0)
    differ = 0
    for seed in range(10):
        many, alone, valid, nothing = Machine(plan, seed), Machine(one, 0), NOTHING, NOTHING
        for n, picture in pictures(1, 20, 3):
            if what == "halo":
                monkeypatch.setattr(routing._Route, "_rows", lambda self, halo_rows, row0, row1: (row0, row1))
                routing.route.cache_clear()
            ops, valid = route(plan, picture, valid)
            if what == "needs":
                ops = tuple(replace(op, needs=()) for op in ops)
            if what == "copies":
                without = [isinstance(op, Copy) and op.array[0] == "rec_y" for op in ops]
                ops = tuple(replace(op, row1=op.row0) if left_out else op for op, left_out in zip(ops, without))
            monkeypatch.undo()
            routing.route.cache_clear()
            ops_alone, nothing = route(one, picture, nothing)
            differ += many.picture(n, ops, picture) != alone.picture(n, ops_alone, picture)
    assert differ


def steady(plan, ref=1, **more):
    valid, seen = NOTHING, []
    for _, picture in pictures(ref, 99, 6, **more):
        seen.append(valid)
        ops, valid = route(plan, picture, valid)
    assert valid == seen[-1], "nothing repeats"
    return ops


def copied(ops, source):
    """Rows that leave a memory, by array."""
    by_array = {}
    for op in ops:
        if isinstance(op, Copy) and op.source == source:
            by_array[op.array] = by_array.get(op.array, 0) + op.row1 - op.row0
    return by_array


def test_only_rows_that_the_other_side_lacks():
    ops = steady(Plan.split(GPU, HEIGHT, 2, 1))
    up, down = copied(ops, "cpu"), copied(ops, "cuda:0")
    assert up["source_y", CURRENT] == HEIGHT and up["search_cost", 0] == 2 and up["luma", CURRENT] == 2 and up["half", 0] == 2
    assert down["half", 0] == HEIGHT - 2 and down["luma", CURRENT] == HEIGHT - 2 and ("source_y", CURRENT) not in down
    assert down["rec_y", CURRENT] == 3  # intra is on the GPU, and deblocking looks a row further
    assert down["level_index", CURRENT] == HEIGHT and ("levels", CURRENT) not in down and up["levels", CURRENT] == 2
    assert all(op.row0 < op.row1 and op.bytes > 0 for op in ops if isinstance(op, Copy))


def test_what_shares_memory_copies_nothing():
    ops = steady(Plan.split(("cpu", "cpu:slow"), HEIGHT, 3, 0), ref=2)
    assert not [op for op in ops if isinstance(op, Copy)]
    assert {op.device for op in ops} == {"cpu", "cpu:slow"}
    runs = {(op.stage, op.device, op.reference): op for op in ops}
    intra = next(n for n, op in enumerate(ops) if op.stage == "intra")
    assert intra in runs["mark_skipped", "cpu:slow", -1].needs or intra in runs["deblock", "cpu:slow", -1].needs


def test_all_on_the_gpu_crosses_once():
    ops = steady(Plan.complete(GPU, HEIGHT, {stage: (0, HEIGHT) for stage in (*SPLITS, "mode_decision", "intra")}))
    assert set(copied(ops, "cpu")) == {(name, CURRENT) for name in SOURCES}
    planned = [stage for stage in TABLE if stage.only != CUDA and not (stage.deferred or stage.unplanned)]
    written = {name for stage in planned for name in stage.written}
    assert set(copied(ops, "cuda:0")) == {(name, CURRENT) for name in (*written.intersection(RESULTS), "level_index")}
    assert "mb_type" in written and "qp" not in written


def test_stages_of_a_picture():
    ops = steady(Plan.split(("cpu",), HEIGHT, HEIGHT, 0), ref=3)
    names = [op.stage for op in ops]
    assert names.count("full_search") == 3 and names.count("intra_estimate") == 1 and "step_search" not in names
    assert all(STAGES[name] for name in names) and [op.step for op in ops] == sorted(op.step for op in ops)
