"""When a device that the plan leaves idle is asked again how fast it is, and for what. Pure: seconds are told.

Models that were wrong at the start, or measured while the machine did something else, would keep a device idle for ever.
So now and then it takes a few rows of one picture. What that costs is measured, as what the picture and the next one took
longer than usual, and may be SHARE of the encode's time; while answers confirm the plan, it is asked more and more rarely.
"""

from .plan import SPLITS, Plan

SHARE = 0.005  # of the time, at most, besides the last probe
PART = 16  # one row of so many, of each stage that splits
LOADING = 0.5  # seconds: reckoned for a device that has to load its kernels first
LEAST = 8  # a probe is reckoned to cost one part of so many of a picture at least
MOST = 64  # times as rarely, after many confirmations
WINDOW = 2  # pictures: the probe, and the one that gathers behind it what the working device lacks
_WEIGHT = 0.1  # of a picture in the average


class Probing:
    """The account: time earns, probes spend."""

    def __init__(self, share: float = SHARE) -> None:
        self.share = share
        self.usual = 0.0  # seconds from picture to picture, without probes
        self.cost = 0.0  # of the last probe, seconds
        self.balance = self.since = 0.0
        self.rarely = 1  # factor of the interval

    def passed(self, seconds: float) -> None:
        """A picture without a probe."""
        self.usual = self.usual + _WEIGHT * (seconds - self.usual) if self.usual else seconds
        self._earn(seconds)

    def paid(self, seconds: float) -> None:
        """The WINDOW of a probe took so long."""
        spent = max(0.0, seconds - WINDOW * self.usual)
        self.cost = max(spent, self.usual / LEAST)
        self._earn(seconds)
        self.balance -= spent
        self.since = 0.0

    def _earn(self, seconds: float) -> None:
        self.balance += self.share * seconds
        self.since += seconds

    def due(self, loaded: bool) -> bool:
        """Whether the next picture may be a probe. loaded: the device has its kernels."""
        expected = max(self.cost, self.usual / LEAST) if self.cost else self.usual
        expected = expected if loaded else max(expected, LOADING)
        return 0 < expected <= self.balance and self.share * self.since >= self.rarely * expected

    def confirmed(self) -> None:
        """The plan stays as it is, or comes back."""
        self.rarely = min(MOST, 2 * self.rarely)

    def changed(self) -> None:
        """There is another plan."""
        self.rarely = max(1, self.rarely // 2)


def idle_devices(plan: Plan) -> list[int]:
    """Devices without rows of any stage that splits."""
    return [k for k in range(len(plan.devices)) if not any(rows[k] for stage, rows in plan.rows.items() if stage in SPLITS)]


def probe(plan: Plan, k: int) -> Plan | None:
    """The plan of one picture in which idle device k takes a few rows of every stage that splits; None if there are none."""
    height = plan.mb_height
    few, rows = max(1, height // PART), {}
    for stage, mine in plan.rows.items():
        given = list(mine)
        if stage in SPLITS and sum(mine) == height:
            donor = max(range(len(mine)), key=lambda j: mine[j])
            if mine[donor] > few:
                given[donor] -= few
                given[k] += few
        rows[stage] = tuple(given)
    made = Plan.complete(plan.devices, height, rows)
    return made if made != plan else None
