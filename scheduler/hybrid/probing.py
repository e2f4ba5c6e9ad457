"""Probes: when an idle device of the plan is measured again, and with which rows. Pure: times are arguments.

Models that were wrong at the start, or measured under other load, would keep a device idle for ever. So from time to time it
takes a few rows of one frame. The cost of a probe is the time by which this frame and the next take longer than usual, and
is limited to SHARE of the encode. While results confirm the plan, probes become rarer.
"""

from .plan import SPLITTING, Plan

SHARE = 0.005  # maximum share of time for probes, without the last probe
ROWS_DIVISOR = 16  # a probe takes 1 / ROWS_DIVISOR of the rows of each stage that splits
LOADING = 0.5  # seconds: expected minimum cost if the device must load its kernels
LEAST = 8  # expected minimum cost of a probe: 1 / LEAST of a frame
MOST_INTERVAL_FACTOR = 64  # maximum of `rarely`
WINDOW = 2  # frames: the probe, and the next, which copies rows that the working device lacks
_WEIGHT = 0.1  # of a frame in the average


class Probing:
    """The account of probes: encoding time earns, probes spend."""

    def __init__(self, share: float = SHARE) -> None:
        self.share = share
        self.usual = 0.0  # average seconds a frame, without probes
        self.cost = 0.0  # of the last probe, seconds
        self.balance = self.since = 0.0
        self.interval_factor = 1  # factor of the interval

    def passed(self, seconds: float) -> None:
        """Note a frame without a probe."""
        self.usual = self.usual + _WEIGHT * (seconds - self.usual) if self.usual else seconds
        self._earn(seconds)

    def paid(self, seconds: float) -> None:
        """Note the seconds of the WINDOW frames of a probe."""
        spent = max(0.0, seconds - WINDOW * self.usual)
        self.cost = max(spent, self.usual / LEAST)
        self._earn(seconds)
        self.balance -= spent
        self.since = 0.0

    def _earn(self, seconds: float) -> None:
        self.balance += self.share * seconds
        self.since += seconds

    def due(self, loaded: bool) -> bool:
        """Whether the next frame may be a probe. loaded: the device has its kernels."""
        expected = max(self.cost, self.usual / LEAST) if self.cost else self.usual
        expected = expected if loaded else max(expected, LOADING)
        return 0 < expected <= self.balance and self.share * self.since >= self.interval_factor * expected

    def confirmed(self) -> None:
        """The plan stays, or an earlier one returns: double the interval."""
        self.interval_factor = min(MOST_INTERVAL_FACTOR, 2 * self.interval_factor)

    def changed(self) -> None:
        """There is a new plan: halve the interval."""
        self.interval_factor = max(1, self.interval_factor // 2)


def idle_devices(plan: Plan) -> list[int]:
    """Indices of devices without rows of any stage that splits."""
    split = [rows for stage, rows in plan.rows.items() if stage in SPLITTING]
    return [k for k in range(len(plan.devices)) if not any(rows[k] for rows in split)]


def probe(plan: Plan, k: int) -> Plan | None:
    """The plan of one frame in which idle device k takes a few rows of each stage that splits; None if none are free."""
    height = plan.mb_height
    few, rows = max(1, height // ROWS_DIVISOR), {}
    for stage, rows_before in plan.rows.items():
        probe_rows = list(rows_before)
        if stage in SPLITTING and sum(rows_before) == height:
            donor = max(range(len(rows_before)), key=lambda j: rows_before[j])
            if rows_before[donor] > few:
                probe_rows[donor] -= few
                probe_rows[k] += few
        rows[stage] = tuple(probe_rows)
    probe_plan = Plan.complete(plan.devices, height, rows)
    return probe_plan if probe_plan != plan else None
