"""Audits of the exact samplers: the law, the lattice, and that no two of them share a stream."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from heldout.audit.events import Floats
from heldout.intervals.noise import falls_to
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.ranking.ladder import NoiseLaw
from heldout.kernel.ranking.mechanism import METHODS, choose, sensitivity_for
from heldout.kernel.statistic import Sealed

_REPLACE = Protection(neighbours="replace-one")  # type: ignore[arg-type]
FALSE_ALARM = 1e-5
OFF = 0.03
_WHOLE = "discrete Laplace"
_LATTICE_CHUNK = 25_000


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, and how it came out."""

    name: str
    passed: bool
    result: str

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "passed": self.passed, "found": self.result}


@dataclass(frozen=True)
class Sampler:
    """Draws noise around a value, and the chance that the noise is larger than a distance."""

    name: str
    draw: Callable[[int], Floats]
    survival: Callable[[Floats, float], Floats]  # of the law with its scale times a factor
    step: float  # the lattice it lives on


def _smooth(method: str, rung: int) -> Sampler:
    local = sensitivity_for("auc", protection=_REPLACE, method=method)
    delta = Fraction(1, 100) if method == "boyd-2015-laplace" else None
    law: NoiseLaw = choose(method, epsilon=Fraction(1), local=local, rows=2000, delta=delta)
    step = 2.0**-40

    def draw(count: int) -> Floats:
        return np.array([law.sample(Fraction(0), rung=rung) for _ in range(count)]) * step

    def survival(distance: Floats, factor: float) -> Floats:
        return np.asarray(law.survival(np.full(np.shape(distance), rung), distance / factor))

    return Sampler(f"{method}, rung {rung}", draw, survival, step)


def _discrete(scale: Fraction) -> Sampler:
    def draw(count: int) -> Floats:
        mechanism = DiscreteLaplace(scale=scale, l1_sensitivity=1, dimension=count)
        drawn = mechanism.sample(Sealed(np.zeros(count, dtype=np.int64)))
        return np.asarray(drawn, dtype=np.float64)

    def survival(distance: Floats, factor: float) -> Floats:
        """P(|x| > t) for whole x, at a t that need not be whole."""
        rate = 1 / (factor * float(scale))
        return np.exp(-rate * (np.floor(distance) + 1)) / ((1 + math.exp(-rate)) / 2)

    return Sampler(f"discrete Laplace, scale {scale}", draw, survival, 1.0)


def samplers() -> list[Sampler]:
    """Every exact sampler there is, at a small and at a large parameter."""
    return [
        _discrete(Fraction(3)),
        _discrete(Fraction(2**21, 3)),
        *(_smooth(method, rung) for method in METHODS for rung in (1, 40)),
    ]


def check_law(sampler: Sampler, *, draws: int) -> Check:
    """Accepted as it is, rejected 3% off either way; the tail to one in ten thousand included.

    The sizes of the noise are counted in cells of the law. The score of the scale (the direction
    in which counts move if the scale is a little off) must be as expected, and all cells together
    too. 120,000 draws tell 3% apart for a Cauchy law, which is the hardest.
    """
    noise = np.sort(np.abs(sampler.draw(draws)))
    edges = _edges(sampler)
    counts = np.diff(np.searchsorted(noise, edges, side="right"), prepend=0, append=draws)
    verdicts = [_rejected(sampler, edges, counts, scale) for scale in (1.0, 1 - OFF, 1 + OFF)]
    words = ["rejected" if verdict else "accepted" for verdict in verdicts]
    return Check(
        f"law of {sampler.name}",
        verdicts == [False, True, True],
        f"{words[0]} as claimed, {words[1]} at -3%, {words[2]} at +3% ({draws:,} draws)",
    )


def _rejected(sampler: Sampler, edges: Floats, counts: npt.NDArray[np.int64], scale: float) -> bool:
    from scipy.special import chdtrc, ndtr

    def chances(factor: float) -> Floats:
        beyond = np.concatenate([[1.0], sampler.survival(edges, factor), [0.0]])
        return -np.diff(beyond)

    there, step = chances(scale), 1e-3
    slope = (chances(scale * (1 + step)) - chances(scale * (1 - step))) / (2 * step * there)
    draws = counts.sum()
    score = (counts @ slope) / math.sqrt(draws * (there @ slope**2))
    off = ((counts - draws * there) ** 2 / (draws * there)).sum()
    return bool(2 * ndtr(-abs(score)) < FALSE_ALARM or chdtrc(counts.size - 1, off) < FALSE_ALARM)


def _edges(sampler: Sampler) -> Floats:
    """Borders of about forty cells, from the centre to one in ten thousand."""
    levels = np.concatenate([np.linspace(0.97, 0.03, 32), np.geomspace(0.02, 1e-4, 6)])
    edges = np.array([_quantile(sampler, level) for level in levels])
    return np.unique(np.floor(edges) + 0.5) if sampler.step == 1.0 else edges


def _quantile(sampler: Sampler, level: float) -> float:
    return falls_to(lambda at: float(sampler.survival(np.array(at), 1.0)), level, start=1e-9)


LatticeJob = tuple[str, int, int]
LatticeCounts = tuple[str, int, npt.NDArray[np.int64]]


def lattice_jobs(releases: int) -> list[LatticeJob]:
    """So many answers, in parts that are done apart."""
    counts = {law: releases // (4 * len(METHODS)) for law in METHODS}
    counts[_WHOLE] = (releases - 2 * sum(counts.values())) // 2
    return [
        (law, side, min(_LATTICE_CHUNK, count - start))
        for law, count in counts.items()
        for start in range(0, count, _LATTICE_CHUNK)
        for side in (0, 1)
    ]


def lattice_check(parts: Sequence[LatticeCounts]) -> Check:
    """Every answer is a whole number of public steps, and no residue tells the data apart.

    Noise of every law on values that lie between lattice points, in two data sets; the lowest four
    bits of the lattice number must be uniform for each law on both. Half of the answers are of the
    discrete Laplace law, which is behind most releases, the others of the laws of real numbers.
    """
    counts: dict[tuple[str, int], Any] = {}
    for law, side, some in parts:
        counts[law, side] = counts.get((law, side), 0) + some
    off = sum(int(own[16]) for own in counts.values())
    least = min(_uniform(own[:16]) for own in counts.values())
    return Check(
        "lattice",
        off == 0 and least > FALSE_ALARM,
        f"{sum(own.sum() for own in counts.values()):,} answers of {len(counts) // 2} laws on "
        f"two data sets, {off} off the lattice, lowest bits uniform (least of {len(counts)} "
        f"p-values {least:.3f})",
    )


def lattice_job(job: LatticeJob) -> LatticeCounts:
    """Counts of the lowest four bits, and of answers that are not whole numbers of steps."""
    name, side, count = job
    if name == _WHOLE:
        wide = DiscreteLaplace(scale=Fraction(2**21, 3), l1_sensitivity=1, dimension=count)
        drawn: Any = wide.sample(Sealed(np.full(count, side, dtype=np.int64)))
        if drawn.dtype == np.int64:  # whole numbers, all of them
            return name, side, np.bincount(drawn & 15, minlength=17)
        drawn = drawn.tolist()
    else:
        local = sensitivity_for("auc", protection=_REPLACE, method=name)
        delta = Fraction(1, 100) if name == "boyd-2015-laplace" else None
        law = choose(name, epsilon=Fraction(1), local=local, rows=2000, delta=delta)
        value = (Fraction(1, 3), Fraction(2, 3) + Fraction(1, 2**50))[side]
        drawn = [law.sample(value, rung=50) for _ in range(count)]
    lowest = [number & 15 if type(number) is int else 16 for number in drawn]
    return name, side, np.bincount(lowest, minlength=17)


def _uniform(counts: npt.NDArray[np.int64]) -> float:
    from scipy.special import chdtrc

    expected = counts.sum() / counts.size
    return float(chdtrc(counts.size - 1, ((counts - expected) ** 2 / expected).sum()))


_CODE = "from heldout.audit.samplers import fresh; print(*fresh(8))"


def fresh(count: int) -> list[int]:
    """Answers so fine that two equal ones mean a shared stream."""
    local = sensitivity_for("auc", protection=_REPLACE)
    law = choose("piecewise-laplace", epsilon=Fraction(1), local=local, rows=2000)
    wide = DiscreteLaplace(scale=Fraction(2**50), l1_sensitivity=1, dimension=count)
    whole = wide.sample(Sealed(np.zeros(count, dtype=np.int64)))
    return [*(law.sample(Fraction(1, 2), rung=1) for _ in range(count)), *whole.tolist()]


def check_streams(*, threads: int = 4, forks: int = 4, restarts: int = 2) -> Check:
    """Threads, forked children and fresh processes: no answer comes twice."""
    seen = list(fresh(8))
    with ThreadPoolExecutor(threads) as pool:
        for drawn in pool.map(fresh, [8] * threads):
            seen += drawn
    for _ in range(forks):
        seen += _in_a_fork()
    for _ in range(restarts):
        done = subprocess.run(
            [sys.executable, "-c", _CODE], capture_output=True, text=True, check=True
        )
        seen += [int(number) for number in done.stdout.split()]
    twice = len(seen) - len(set(seen))
    counted = f"{len(seen)} answers of {threads} threads, {forks} forks and {restarts} restarts"
    return Check("streams", twice == 0, f"{counted}, {twice} twice")


def _in_a_fork() -> list[int]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, " ".join(map(str, fresh(8))).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return [int(number) for number in text.split()]


def check_law_at(place: int, draws: int) -> Check:
    """The law of one sampler, by its place among all."""
    return check_law(samplers()[place], draws=draws)
