"""What a job in shares costs on many machines, simulated: `python bench/shares.py [--shares 100000] [--json]`.

Plays `gristmill pack --share N/OF` on every processor of every machine, and then `gristmill commit` on one: sizes of
shares vary, some machines are slow, machines are lost and come back, shares fail. Each attempt lists all inputs. Prints
where the processor time went, what was done in the shared folder, and how long the commit takes. The same options give
the same numbers. `--table` and `--costs` print the tables of docs/design/2026-11-25-past-one-machine.md, which says how
the defaults were measured.
"""

import argparse
import dataclasses
import heapq
import itertools
import json
import math
import random
import sys
from collections import deque

#: Attempts for each share, on average, after which a job counts as one that does not end.
MOST = 100

#: Seconds between two renewals of a lease.
RENEWED = 5


@dataclasses.dataclass(frozen=True)
class Job:
    """A job, the machines that run it, and what a unit costs. Rates of loss are for each machine and hour."""

    positions: float = 1e12
    shares: int = 100_000
    inputs: float = 180_000
    machines: int = 100
    processors: int = 16
    position_us: float = 25
    listing_us: float = 17
    spread: float = 0.0
    slow: float = 0.0
    slowness: float = 3.0
    lost: float = 0.0
    away: float = 600
    noticed: float = 30
    failing: float = 0.0
    operations: int = 464
    commit_operations: int = 68
    input_bytes: float = 180
    game_positions: float = 106
    position_bytes: float = 73.6
    index_bytes: float = 63
    row_bytes: float = 108
    row_us: float = 7
    file_positions: float = 4e6
    entry_bytes: float = 127
    note_bytes: float = 85
    copied: float = 500e6
    seed: int = 1


@dataclasses.dataclass(frozen=True)
class Made:
    """What came of a job: times in seconds by the clock, and processor seconds until the last share is done."""

    seconds: float
    ideal: float
    attempts: int
    lost: int
    work: float
    repeated: float
    listing: float
    idle: float
    away: float
    operations: int
    listed: float
    commit: float
    rows: float
    metadata_bytes: float
    manifest_bytes: float
    noted_bytes: float


@dataclasses.dataclass(slots=True)
class Attempt:
    """A share that runs: since when, for how long, how much of that lists inputs, and whether it fails in the end."""

    share: int
    since: float
    lasts: float
    lists: float
    fails: bool


class World:
    """The machines of a job, event by event. Draws depend on the seed and a number, not on what came before."""

    def __init__(self, job: Job) -> None:
        self.job, self.now, self.order = job, 0.0, itertools.count()
        sizes = random.Random(f"sizes {job.seed}")
        each = job.positions / job.shares * job.position_us / 1e6
        self.work = [each * self.size(sizes) for _ in range(job.shares)]
        speeds = random.Random(f"speeds {job.seed}")
        self.slow = [job.slowness if speeds.random() < job.slow else 1.0 for _ in range(job.machines)]
        self.losses = [random.Random(f"losses {job.seed} {machine}") for machine in range(job.machines)]
        # A machine that was lost has another life: what began in an earlier one does not end.
        self.life = [0] * job.machines
        self.running: list[dict[int, Attempt]] = [{} for _ in range(job.machines)]
        self.waiting = deque(range(job.shares))
        self.tries = [0] * job.shares
        self.free: deque[tuple[int, int]] = deque()
        self.events: list[tuple[float, int, str, int, int]] = []
        self.done = self.attempts = self.lost = self.idle = self.gone = 0
        self.idled = self.was_away = self.worked = self.listing = self.repeated = self.leases = 0.0

    def size(self, draws: random.Random) -> float:
        """How much of an even part a share has: 1 on average, log-normal."""
        spread = self.job.spread
        return math.exp(draws.gauss(0, spread) - spread * spread / 2) if spread else 1.0

    def put(self, after: float, what: str, one: int, life: int = 0) -> None:
        """Something comes after some seconds."""
        heapq.heappush(self.events, (self.now + after, next(self.order), what, one, life))

    def run(self) -> None:
        """Runs until all shares are done."""
        for machine in range(self.job.machines):
            self.come(machine)
        while self.done < self.job.shares:
            self.begin()
            time, _, what, one, life = heapq.heappop(self.events)
            self.idled += self.idle * (time - self.now)
            self.was_away += self.gone * (time - self.now)
            self.now = time
            if what == "end":
                self.end(one % self.job.machines, life, one // self.job.machines)
            elif what == "lose":
                self.lose(one)
            elif what == "come":
                self.gone -= self.job.processors
                self.come(one)
            else:
                self.waiting.append(one)

    def come(self, machine: int) -> None:
        """A machine is there, until it is lost."""
        self.idle += self.job.processors
        self.free.extend([(machine, self.life[machine])] * self.job.processors)
        if self.job.lost:
            self.put(self.losses[machine].expovariate(1) * 3600 / self.job.lost, "lose", machine)

    def begin(self) -> None:
        """Free processors take the shares that wait."""
        job = self.job
        while self.waiting and self.free:
            machine, life = self.free.popleft()
            if life != self.life[machine]:
                continue
            share, number = self.waiting.popleft(), self.attempts
            if number > MOST * job.shares:
                raise SystemExit(f"{number} attempts at {job.shares} shares: machines are lost before a share is done")
            draws = random.Random(f"tries {job.seed} {share} {self.tries[share]}") if job.failing else None
            fails = draws is not None and draws.random() < job.failing
            lists = job.inputs * job.listing_us / 1e6 * self.slow[machine]
            lasts = lists + self.work[share] * self.slow[machine]
            if draws is not None and fails:
                lasts *= draws.random()
            self.running[machine][number] = Attempt(share, self.now, lasts, min(lists, lasts), fails)
            self.put(lasts, "end", number * job.machines + machine, life)
            self.idle -= 1
            self.attempts += 1
            self.tries[share] += 1

    def end(self, machine: int, life: int, number: int) -> None:
        """An attempt ends, unless its machine was lost meanwhile."""
        if life != self.life[machine]:
            return
        attempt = self.running[machine].pop(number)
        self.spent(attempt, attempt.lasts, whole=not attempt.fails)
        if attempt.fails:
            self.waiting.append(attempt.share)
        else:
            self.done += 1
        self.idle += 1
        self.free.append((machine, life))

    def lose(self, machine: int) -> None:
        """A machine is lost with what runs there; others take that when it is noticed."""
        running = self.running[machine].values()
        for attempt in running:
            self.spent(attempt, self.now - attempt.since, whole=False)
            self.put(self.job.noticed, "wait", attempt.share)
        self.idle -= self.job.processors - len(running)
        self.gone += self.job.processors
        self.running[machine] = {}
        self.life[machine] += 1
        self.lost += 1
        self.put(self.job.away, "come", machine)

    def spent(self, attempt: Attempt, seconds: float, *, whole: bool) -> None:
        """Counts the processor time of an attempt."""
        lists = min(attempt.lists, seconds)
        self.listing += lists
        self.leases += seconds // RENEWED
        if whole:
            self.worked += seconds - lists
        else:
            self.repeated += seconds - lists


def simulated(job: Job) -> Made:
    """Runs the shares, then counts what the commit of all of them does."""
    world = World(job)
    world.run()
    games, files = job.positions / job.game_positions, math.ceil(job.positions / job.file_positions)
    # Each file that is closed notes all files before it.
    noted = job.note_bytes * files * (files + 1) / 2
    return Made(
        seconds=world.now,
        ideal=job.positions * job.position_us / 1e6 / (job.machines * job.processors),
        attempts=world.attempts,
        lost=world.lost,
        work=world.worked,
        repeated=world.repeated,
        listing=world.listing,
        idle=world.idled,
        away=world.was_away,
        operations=int(world.attempts * job.operations + world.leases) + job.shares * job.commit_operations,
        listed=world.attempts * job.inputs,
        # The database is written once, and once more in order.
        commit=(job.positions * job.position_bytes + noted + 2 * games * job.row_bytes) / job.copied
        + games * job.row_us / 1e6,
        rows=games,
        metadata_bytes=games * job.row_bytes,
        manifest_bytes=files * job.entry_bytes,
        noted_bytes=noted,
    )


#: The worlds of the table: what is said of each, and how it differs from the one before all of them.
WORLDS: dict[str, dict[str, float]] = {
    "nothing goes wrong": {},
    "shares uneven (spread 0.3)": {"spread": 0.3},
    "1 machine in 20 three times as slow": {"slow": 0.05},
    "a machine is lost every 100 h": {"lost": 0.01},
    "a machine is lost every hour": {"lost": 1.0},
    "1 attempt in 100 fails": {"failing": 0.01},
    "all of these, lost every hour": {"spread": 0.3, "slow": 0.05, "lost": 1.0, "failing": 0.01},
    "the same, 10 000 shares": {"spread": 0.3, "slow": 0.05, "lost": 1.0, "failing": 0.01, "shares": 10_000},
    "100 000 shares, 10 million inputs": {"inputs": 1e7},
    "10 000 shares, 10 million inputs": {"inputs": 1e7, "shares": 10_000},
}


def table(job: Job) -> None:
    """Prints a line for each world."""
    columns = "hours,ideal,attempts,lost,work,repeated,listing,idle,away,operations,listed"
    sys.stdout.write(f"| {' | '.join(['', *columns.split(',')])} |\n|---|{'---:|' * (columns.count(',') + 1)}\n")
    for name, differs in WORLDS.items():
        made = simulated(dataclasses.replace(job, **differs))  # type: ignore[arg-type]
        all_of_it = job.machines * job.processors * made.seconds
        parts = [made.work, made.repeated, made.listing, made.idle, made.away]
        shown = [f"{made.seconds / 3600:.2f}", f"{made.ideal / 3600:.2f}", str(made.attempts), str(made.lost)]
        shown += [f"{100 * part / all_of_it:.1f} %" for part in parts]
        shown += [f"{made.operations / 1e6:.0f} M", f"{made.listed:.1e}"]
        sys.stdout.write(f"| {' | '.join([name, *shown])} |\n")
        sys.stdout.flush()


#: Positions of the jobs whose costs are shown; each share has a million or more, each input a gigabyte.
SIZES = (1e9, 1e10, 1e11, 1e12)


def costs(job: Job) -> None:
    """Prints what jobs of several sizes cost, one column for each."""
    made = []
    for positions in SIZES:
        shares = int(min(positions / 1e6, 100_000))
        one = dataclasses.replace(job, positions=positions, shares=shares, inputs=positions * job.input_bytes / 1e9)
        at = {machines: simulated(dataclasses.replace(one, machines=machines)) for machines in (1, 10, 100)}
        made.append((one, at[100], at))
    rows: dict[str, list[str]] = {
        "games": [f"{all_.rows:.1e}" for _, all_, _ in made],
        "inputs of 1 GB": [f"{one.inputs:.0f}" for one, _, _ in made],
        "shares": [str(one.shares) for one, _, _ in made],
        "bytes of inputs": [size(one.positions * one.input_bytes) for one, _, _ in made],
        "bytes of the pack": [size(one.positions * one.position_bytes) for one, _, _ in made],
        "chunk files": [str(math.ceil(one.positions / one.file_positions)) for one, _, _ in made],
        "`metadata.db`": [size(all_.metadata_bytes) for _, all_, _ in made],
        "`manifest.json`": [size(all_.manifest_bytes) for _, all_, _ in made],
        "memory of each process that opens it": [size(all_.rows * one.index_bytes) for one, all_, _ in made],
        "processor hours, packing": [hours(all_.work) for _, all_, _ in made],
        "processor hours, listing": [hours(all_.listing) for _, all_, _ in made],
        "requests of listing, if inputs lie in a bucket": [
            f"{one.shares * math.ceil(one.inputs / 1000):.0f}" for one, _, _ in made
        ],
        "calls on the folder of shares": [f"{all_.operations:.1e}" for _, all_, _ in made],
        "requests to send the pack to a bucket": [
            f"{one.positions * one.position_bytes / (16 << 20):.1e}" for one, _, _ in made
        ],
        **{
            f"hours of all shares, {machines} machine{'s' * (machines > 1)}": [
                hours(at[machines].seconds) for _, _, at in made
            ]
            for machines in (1, 10, 100)
        },
        "hours of the commit": [hours(all_.commit) for _, all_, _ in made],
        "bytes that the commit notes on its progress": [size(all_.noted_bytes) for _, all_, _ in made],
    }
    heads = [f"10^{math.log10(positions):.0f}" for positions in SIZES]
    sys.stdout.write(f"| {' | '.join(['', *heads])} |\n|---|{'---:|' * len(heads)}\n")
    for name, cells in rows.items():
        sys.stdout.write(f"| {' | '.join([name, *cells])} |\n")


def size(count: float) -> str:
    """Bytes for people."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count / 1e3:.3g} kB"


def hours(seconds: float) -> str:
    """Hours, with as many digits as help."""
    return f"{seconds / 3600:.0f}" if seconds >= 360_000 else f"{seconds / 3600:.2g}"


def lines(job: Job, made: Made) -> None:
    """Prints what came of one job."""
    all_of_it = job.machines * job.processors * made.seconds
    sys.stdout.write(f"last share   {made.seconds / 3600:.2f} h, ideal {made.ideal / 3600:.2f} h\n")
    sys.stdout.write(f"attempts     {made.attempts} at {job.shares} shares, {made.lost} machines lost\n")
    for name in ("work", "repeated", "listing", "idle", "away"):
        part = getattr(made, name)
        sys.stdout.write(f"{name:12} {part / 3600:.1f} processor hours, {100 * part / all_of_it:.1f} %\n")
    sys.stdout.write(f"operations   {made.operations} on the folder of shares, {made.listed:.3g} inputs listed\n")
    sys.stdout.write(f"commit       {made.commit / 3600:.2f} h, {made.noted_bytes:.3g} bytes of notes\n")
    sys.stdout.write(f"metadata.db  {made.rows:.3g} rows, {made.metadata_bytes:.3g} bytes\n")
    sys.stdout.write(f"manifest     {made.manifest_bytes:.3g} bytes\n")


def main(words: list[str] | None = None) -> None:
    """Simulates what the options say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    says = {
        "positions": "of all shares",
        "shares": "of the job",
        "inputs": "files that each attempt lists",
        "machines": "that run shares",
        "processors": "of each machine; each runs one share",
        "position_us": "microseconds of a processor to pack a position",
        "listing_us": "microseconds to list an input",
        "spread": "of sizes of shares: sigma of a log-normal distribution",
        "slow": "part of the machines that are slow",
        "slowness": "how many times as long a slow machine takes",
        "lost": "losses of each machine in an hour",
        "away": "seconds until a lost machine is back",
        "noticed": "seconds until shares of a lost machine begin again",
        "failing": "part of the attempts that fail by themselves",
        "operations": "calls of the system on the folder of shares for each attempt",
        "commit_operations": "such calls of the commit for each share",
        "input_bytes": "bytes of a position in the inputs",
        "game_positions": "positions of a game",
        "position_bytes": "bytes of a packed position",
        "index_bytes": "bytes of memory that a process needs for a game of an open pack",
        "row_bytes": "bytes of a game in metadata.db",
        "row_us": "microseconds of the commit for a game",
        "file_positions": "positions of a chunk file",
        "entry_bytes": "bytes of a chunk file in the manifest",
        "note_bytes": "bytes of a chunk file in the note of a job's progress",
        "copied": "bytes a second that the commit copies",
        "seed": "of all that is drawn",
    }
    for field in dataclasses.fields(Job):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=field.type, default=field.default, help=says[field.name])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--table", action="store_true", help="several worlds, a line for each")
    parser.add_argument("--costs", action="store_true", help="several sizes, a column for each")
    given = vars(parser.parse_args(words))
    is_json, is_table, is_costs = given.pop("json"), given.pop("table"), given.pop("costs")
    job = Job(**given)
    if min(job.shares, job.machines, job.processors) < 1 or not 0 <= job.failing < 1:
        parser.error("expected at least one share, machine and processor, and less than all attempts that fail")
    if not all(0 <= number < math.inf for number in dataclasses.astuple(job)) or not min(
        job.game_positions, job.file_positions, job.copied
    ):
        parser.error("expected numbers from 0 on, and some positions in a game and a file, and bytes a second")
    if is_table:
        table(job)
    elif is_costs:
        costs(job)
    elif is_json:
        sys.stdout.write(json.dumps(dataclasses.asdict(simulated(job))) + "\n")
    else:
        lines(job, simulated(job))


if __name__ == "__main__":
    main()
