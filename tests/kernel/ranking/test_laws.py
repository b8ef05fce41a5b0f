"""The noise laws: their privacy on worst neighbours, and the exact sampler against them."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.chances import error_quantile, mean_absolute_error

from heldout.errors import ArgumentError
from heldout.kernel.events import price
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.exact import LATTICE, draw_on_lattice
from heldout.kernel.ranking import ladder as ladder_module
from heldout.kernel.ranking.ladder import (
    Cauchy,
    CauchyBoyd2015,
    LaplaceBoyd2015,
    NoiseLaw,
    PiecewiseLaplace,
    PolynomialTail,
    _scales,
    build,
)
from heldout.kernel.ranking.mechanism import (
    METHODS,
    choose,
    choose_polynomial_tail,
    sensitivity_for,
)
from heldout.kernel.ranking.sensitivity import RungSensitivity, SmoothSensitivity

REPLACE = Protection(neighbours="replace-one")
UNIT = Protection(neighbours="replace-one", unit=True, rows_per_unit=4)
AREA = sensitivity_for("auc", protection=REPLACE)
PRECISION = sensitivity_for("average-precision", protection=REPLACE)
RUNGS = [*range(40), 100, 254, 255, 256, 257, 258, 259, 260, 500, 1999, 2047, 2048, 2049, 9000]


def worst_ratio(log_density: Any, local: RungSensitivity, rungs: list[int]) -> float:
    """The largest |log density ratio| over adjacent rungs, shifts up to the local sensitivity
    and a fine grid of outputs. `log_density(rung, distance)` is that of the noise."""
    worst = 0.0
    for rung in rungs:
        for other in (rung, rung + 1):
            shift = local.upper(other)
            near = np.linspace(-4, 4, 801) * shift
            far = np.geomspace(shift, 1e4, 300)
            outputs = np.concatenate([near, far, -far])
            here = log_density(rung, np.abs(outputs))
            for move in (shift, -shift, shift / 3, 0.0):
                there = log_density(other, np.abs(outputs - move))
                worst = max(worst, float(np.max(np.abs(here - there))))
    return worst


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1", "4"])
@pytest.mark.parametrize("local", [AREA, PRECISION], ids=["auc", "average-precision"])
def test_piecewise_laplace_never_exceeds_epsilon_and_comes_within_two_percent(
    local: RungSensitivity, epsilon: str
) -> None:
    ladder = build(Fraction(epsilon), local, 2048)

    def log_density(rung: int, distance: Any) -> Any:
        return ladder.log_density(np.full(distance.shape, rung), distance)

    worst = worst_ratio(log_density, local, RUNGS)
    assert 0.98 * float(Fraction(epsilon)) <= worst <= float(Fraction(epsilon)) * (1 + 1e-9)


@pytest.mark.parametrize("local", [AREA, PRECISION], ids=["auc", "average-precision"])
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_smooth_noise_never_exceeds_epsilon_and_the_polynomial_tail_comes_within_two_percent(
    local: RungSensitivity, epsilon: str
) -> None:
    size = Fraction(epsilon)
    laws = [
        choose_polynomial_tail(epsilon=size, local=local, rung=300),
        PolynomialTail(local=local, a=size / 2, beta=size / 2, nu=Fraction(3, 2)),
        Cauchy(local=local, a=size / 2, beta=size / 2),
        Cauchy(local=local, a=size * 4 / 5, beta=size / 5),
    ]
    for law in laws:
        # The worst case of the theorem: the smooth sensitivity changes by exp(beta) and the
        # value by the local sensitivity, both in full. The Cauchy shape never pays both at one
        # output, so its price is not attained; nu at most 2 pays at the centre only.
        worst = 0.0
        beta, a = float(law.smoothing), float(law.sharpness)
        z = np.concatenate([np.linspace(-12, 12, 4801), np.geomspace(12, 1e6, 400)])
        for change in (-beta, 0.0, beta):
            larger = math.exp(change)
            for shift in (-a, 0.0, a):
                moved = (z + shift * min(1.0, larger)) / larger
                ratio = law.log_density(z) - law.log_density(moved) + change
                worst = max(worst, float(np.max(np.abs(ratio))))
        assert worst <= float(size) * (1 + 1e-9)
        if law.smoothing <= Fraction(1, 50) and isinstance(law, PolynomialTail) and law.nu > 2:
            assert worst >= 0.98 * float(size)


@pytest.mark.parametrize("local", [AREA, PRECISION], ids=["auc", "average-precision"])
def test_the_smooth_sensitivity_of_neighbours_differs_by_the_factor_it_may(
    local: RungSensitivity,
) -> None:
    for beta in (Fraction(1, 50), Fraction(1, 3)):
        values = [
            SmoothSensitivity(local=local, beta=beta, rung=rung).approximate()
            for rung in range(400)
        ]
        steps = np.abs(np.diff(np.log(values)))
        assert steps.max() <= float(beta) * (1 + 1e-9)
        assert all(value >= local.upper(rung) for rung, value in enumerate(values))


def test_a_ladder_that_is_a_little_too_low_fails_its_exact_test() -> None:
    ladder = build(Fraction(1, 2), AREA, 512)
    assert ladder.certify()
    for step in (1, 2, 5, 30, 200):
        lowered = list(ladder.scales)
        lowered[step:] = [scale * (1 - 1e-6) for scale in lowered[step:]]
        assert not replace(ladder, scales=tuple(lowered)).certify()
    assert not replace(ladder, epsilon=Fraction(49, 100)).certify()


def test_a_ladder_that_fails_its_exact_test_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_low(*arguments: Any) -> list[float]:
        return [scale * (1 - 1e-6) for scale in _scales(*arguments)]

    monkeypatch.setattr(ladder_module, "_scales", too_low)
    with pytest.raises(ArithmeticError, match="exact test"):
        build.__wrapped__(Fraction(1, 2), AREA, 512)  # beside the cache


def test_units_of_k_rows_are_rows_at_a_kth_of_the_class() -> None:
    units = sensitivity_for("auc", protection=UNIT)
    assert units.rung(positives=403, negatives=9000) == 100
    assert [units.upper(rung) for rung in range(50)] == [AREA.upper(rung) for rung in range(50)]


LAWS: list[NoiseLaw] = [
    PiecewiseLaplace(epsilon=Fraction(1, 2), local=AREA, top=2048),
    PiecewiseLaplace(epsilon=Fraction(1, 20), local=PRECISION, top=2048),
    PolynomialTail(local=AREA, a=Fraction(1, 2), beta=Fraction(1, 20), nu=Fraction(4)),
    PolynomialTail(local=AREA, a=Fraction(1, 2), beta=Fraction(1, 20), nu=Fraction(3, 2)),
    Cauchy(local=AREA, a=Fraction(1, 4), beta=Fraction(1, 4)),
    CauchyBoyd2015(local=AREA, epsilon=Fraction(1)),
    LaplaceBoyd2015(local=PRECISION, epsilon=Fraction(1), delta=Fraction(1, 100)),
]


def drawn_noise(law: NoiseLaw, rung: int, draws: int) -> Any:
    source = random.Random(f"{law} {rung}")
    centre = Fraction(2, 7)
    points = (
        law.sample(centre, rung=rung, randomness=source.randbytes) * LATTICE - centre
        for _ in range(draws)
    )
    return np.array([float(point) for point in points])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.describe()["name"]))
@pytest.mark.parametrize(
    "rung", [0, *(pytest.param(r, marks=pytest.mark.slow) for r in (1, 6)), 300]
)
def test_the_exact_sampler_has_the_stated_law(law: NoiseLaw, rung: int) -> None:
    draws = 2500
    noise = drawn_noise(law, rung, draws)
    assert abs(np.mean(noise > 0) - 0.5) < 4 * 0.5 / math.sqrt(draws)
    tails = np.sort(law.survival(np.full(draws, rung), np.abs(noise)))
    grid = (np.arange(draws) + 0.5) / draws
    # Kolmogorov-Smirnov at 1% over all 28 cases together, so 0.04% for each.
    assert np.max(np.abs(tails - grid)) * math.sqrt(draws) < 2.08


@pytest.mark.slow
@pytest.mark.parametrize("law", [LAWS[0], LAWS[2]], ids=["piecewise Laplace", "polynomial tail"])
def test_a_scale_three_percent_off_is_rejected(law: NoiseLaw) -> None:
    """-ln of the tail has mean 1 and deviation 1; a wrong scale moves its mean."""
    rung, draws = 300, 40_000
    noise = np.abs(drawn_noise(law, rung, draws))

    def accepts(scale: float) -> bool:
        tails = law.survival(np.full(draws, rung), noise * scale)
        return bool(abs(np.mean(-np.log(tails)) - 1) < 3.6 / math.sqrt(draws))

    assert accepts(1.0)
    assert not accepts(0.97)
    assert not accepts(1.03)


def test_every_output_is_a_whole_number_of_lattice_points() -> None:
    for law in LAWS:
        for lattice in (LATTICE, Fraction(1, 1000), Fraction(3)):
            assert isinstance(law.sample(Fraction(1, 3), rung=50, lattice=lattice), int)


def test_the_sampler_asks_for_more_bits_until_rounding_is_certain() -> None:
    asked = []

    def mostly_zero(size: int) -> bytes:
        asked.append(size)
        return bytes(size) if len(asked) < 4 else bytes([77] * size)

    law = LAWS[0]
    point = law.sample(Fraction(1, 2), rung=10, randomness=mostly_zero)
    assert len(asked) >= 4  # a uniform that may be 0 has an unbounded quantile
    assert point < 0
    halves = iter([b"\x80" + bytes(11), *[bytes(8)] * 2, *[bytes([1] * 8)] * 9])
    nearest = draw_on_lattice(
        lambda uniform: uniform, lattice=Fraction(1), randomness=lambda _: next(halves)
    )
    assert nearest == 1  # exactly one half so far: only later bits decide


@pytest.mark.parametrize("method", METHODS)
def test_every_method_spends_exactly_epsilon(method: str) -> None:
    epsilon = Fraction(7, 10)
    delta = Fraction(1, 10**6) if method == "boyd-2015-laplace" else None
    for metric in ("auc", "average-precision", "auc-difference"):
        local = sensitivity_for(metric, protection=REPLACE, method=method)
        law = choose(method, epsilon=epsilon, local=local, rows=2000, delta=delta)
        assert price(law.event()).epsilon == epsilon
        assert price(law.event()).delta == (delta or 0)


def test_the_default_is_the_most_accurate_and_near_the_floor() -> None:
    for n, epsilon, most in ((100, "1", 1.05), (1000, "0.1", 1.05), (1000, "1", 1.02)):
        size = Fraction(epsilon)
        for local in (AREA, PRECISION):
            errors = {
                method: mean_absolute_error(
                    choose(method, epsilon=size, local=local, rows=2 * n, smaller_class=n), rung=n
                )
                for method in ("piecewise-laplace", "polynomial-tail", "cauchy")
            }
            assert min(errors, key=lambda name: errors[name]) == "piecewise-laplace"
            assert errors["piecewise-laplace"] < most * local.upper(n) / float(size)


def test_an_error_quantile_is_where_the_tail_is() -> None:
    for law in LAWS:
        for level in (0.5, 0.95):
            reach = error_quantile(law, rung=80, level=level)
            assert float(law.survival(80, reach)) == pytest.approx(1 - level, rel=1e-6)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="epsilon must lie"):
        PiecewiseLaplace(epsilon=Fraction(0), local=AREA, top=10)
    with pytest.raises(ArgumentError, match="nu more than 1"):
        PolynomialTail(local=AREA, a=Fraction(1), beta=Fraction(1), nu=Fraction(1))
    with pytest.raises(ArgumentError, match="delta must be given"):
        choose("cauchy", epsilon=Fraction(1), local=AREA, rows=10, delta=Fraction(1, 2))
    with pytest.raises(ArgumentError, match="delta must be given"):
        choose("boyd-2015-laplace", epsilon=Fraction(1), local=AREA, rows=10)
    with pytest.raises(ArgumentError, match="proof of 2015"):
        LaplaceBoyd2015(local=AREA, epsilon=Fraction(4), delta=Fraction(1, 100))
    with pytest.raises(ArgumentError, match="method must be"):
        choose("laplace", epsilon=Fraction(1), local=AREA, rows=10)
    with pytest.raises(ArgumentError, match="metric must be"):
        sensitivity_for("f1", protection=REPLACE)
    with pytest.raises(ArgumentError, match="rows_per_unit must be 1"):
        sensitivity_for("average-precision", protection=UNIT, method="boyd-2015-cauchy")
