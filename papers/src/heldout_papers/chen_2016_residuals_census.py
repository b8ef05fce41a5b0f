"""Income of the census files: the real data of Chen et al., 2016, section III-C 4.

Their 49,436 household heads of the March 2000 survey are not public as such; stored are persons of
the same survey without marital status, and persons of the 2018 community survey with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heldout_papers.chen_2016_residuals_data import Fitted

__all__ = ["ACS", "CPS", "ROWS", "income"]

CPS = "cps_march2000/cps_march2000.parquet"
ACS = "acs2018_gov_census/acs2018_gov_census.parquet"
ROWS = 49_436
_SEED = 2016
_OUTCOME = {CPS: "earn", ACS: "salary"}
_FACTORS = {CPS: ("educ", "sex"), ACS: ("education_level", "marital", "sex")}
_NAMES = {CPS: "CPS 2000", ACS: "ACS 2018"}


def income(data: Path, source: str, *, logarithm: bool = False) -> Fitted:
    """Least squares of income (or its logarithm) on age and indicators, on 49,436 rows at random.

    The logarithm is taken of positive incomes; of all, those that are not negative.
    """
    table = _read(data / source)
    found = table[_OUTCOME[source]].astype(np.float64)
    kept = np.flatnonzero(found > 0 if logarithm else found >= 0)
    chosen = np.random.default_rng(_SEED).permutation(kept)[:ROWS]
    columns = [np.ones(len(chosen)), table["age"][chosen].astype(np.float64)]
    for name in _FACTORS[source]:
        factor = table[name][chosen]
        columns += [(factor == level).astype(np.float64) for level in np.unique(factor)[1:]]
    design = np.stack(columns, axis=1)
    observed = np.log(found[chosen]) if logarithm else found[chosen]
    weights, *_ = np.linalg.lstsq(design, observed, rcond=None)
    outcome = "log income" if logarithm else "income"
    return Fitted(f"{_NAMES[source]}, {outcome}", observed, design @ weights)


def _read(path: Path) -> dict[str, Any]:
    import duckdb

    with duckdb.connect() as connection:
        found = connection.read_parquet(str(path)).fetchnumpy()
    return {name: np.asarray(each) for name, each in found.items()}
