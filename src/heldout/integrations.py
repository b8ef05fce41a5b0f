"""Answers for other tools: MLflow, and the registry of deployments of differential privacy.

Both take what was released, so they are free: they read no row and charge nothing.
"""

import json
import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from heldout.arguments import shown
from heldout.errors import ArgumentError, MissingDependency
from heldout.intervals.measure import Release

__all__ = ["log_to_mlflow", "registry_entry"]

Answer = Release | Mapping[str, Any]
"""A release, or its JSON."""


def log_to_mlflow(answer: Answer, *, prefix: str = "heldout", step: int | None = None) -> None:
    """Log an answer to the active MLflow run: values, intervals, price, receipt, the whole JSON.

    A measure that noise hides is logged without a value, since a chart would show it as one.

    Parameters
    ----------
    answer
        A release, or its `as_dict()`.
    prefix
        What the names of metrics begin with: `heldout.AUC`, `heldout.AUC.low`, `heldout.AUC.high`.
    step
        The step of the metrics, as in `mlflow.log_metric`.
    """
    try:
        import mlflow
    except ImportError:
        raise MissingDependency(
            "Logging to MLflow requires mlflow. Install it with: pip install mlflow"
        ) from None
    content = _read(answer)
    metrics: dict[str, float] = {}
    for name, measure in content["measures"].items():
        key = f"{prefix}.{re.sub(r'[^-_./ 0-9a-zA-Z]', '_', name)}"  # the characters it takes
        if measure["informative"]:
            low, high = measure["interval"]
            metrics |= {key: measure["value"], f"{key}.low": low, f"{key}.high": high}
    mlflow.log_metrics(metrics, step=step)
    price = {f"{prefix}.{name}": amount for name, amount in content["loss"].items()}
    receipt = content["receipt"]["hash"]
    mlflow.set_tags(
        {
            f"{prefix}.kind": content["kind"],
            f"{prefix}.receipt": receipt,
            f"{prefix}.neighbours": content["protection"]["neighbours"],
            **price,
        }
    )
    mlflow.log_dict(content, f"{prefix}-{content['kind']}-{receipt[:12]}.json")


def registry_entry(
    answer: Answer,
    *,
    name: str,
    curator: str,
    use: str,
    region: str,
    published: date,
    author: str,
    sector: str | None = None,
    sources: str | None = None,
) -> dict[str, Any]:
    """Describe an answer as an entry of the Differential Privacy Deployments Registry, tier 2.

    The price, the unit, the neighbours and the mechanism come from the answer; who publishes it and
    why must be said. Save it as JSON, which is YAML too: a draft for the registry's review.

    Parameters
    ----------
    answer
        A release, or its `as_dict()`.
    name, curator, use, region
        What is published, by whom, for which use, and the region whose data or laws are meant.
    published
        The day of publication.
    author
        Who fills out the entry.
    sector
        Such as Healthcare or Government.
    sources
        Links to the page of the answer, or to a paper.
    """
    if not isinstance(published, date):
        raise ArgumentError(f"published must be a datetime.date, got {shown(published)}.")
    content = _read(answer)
    loss, protection = content["loss"], content["protection"]
    basic = {
        "name": name,
        "data_curators": [curator],
        "intended_use": use,
        "data_product_type": "Summary statistics",
        "data_product_region": region,
        "description": f"{content['kind']} of a model on rows that nobody may see: "
        + "; ".join(_described(*item) for item in content["measures"].items()),
        "publication_date": published.isoformat(),
    }
    if sector is not None:
        basic["data_product_sector"] = sector
    administrative: dict[str, Any] = {
        "registry_authors": [author],
        "notes": f"heldout receipt {content['receipt']['hash']}, "
        f"claim {content['claim']}, whose proof is in the repository of heldout.",
    }
    if sources is not None:
        administrative["sources"] = sources
    slug = re.sub(r"[^a-z0-9]+", "-", f"{name} {curator} {published.year}".lower()).strip("-")
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": _variant(loss),
                "unprotected_quantities": _unprotected(protection),
            },
            "privacy_loss": {
                "privacy_unit": _unit(protection),
                "privacy_unit_details": _adjacent(protection),
                "privacy_parameters": {
                    name: float(Fraction(amount)) for name, amount in loss.items() if amount != "0"
                },
            },
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release",
                "release_type_details": "A ledger books the price before noise is drawn, and "
                "refuses what exceeds the budget of the rows.",
                "data_source_type": "Static",
                "access_type": "Interactive",
            },
            "accounting": {"composition": "Sequential; exact rational sums in the ledger."},
            "implementation": {
                "mechanisms": f"{content['mechanism']['name']}, sampled exactly on a public "
                "lattice by heldout, so that no floating-point number of private origin exists "
                "before the noise."
            },
            "administrative": administrative,
        },
    }


def _read(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Release):
        content: Mapping[str, Any] = answer.as_dict()
    else:
        content = answer if isinstance(answer, Mapping) else {}
    absent = {"kind", "measures", "loss", "protection", "receipt", "claim"} - set(content)
    if absent:
        raise ArgumentError(
            f"answer must be a release or its JSON; it lacks {', '.join(sorted(absent))}. Pass "
            "what session.auc(...) returns, or the file of `heldout ask ... --json`."
        )
    plain: dict[str, Any] = json.loads(json.dumps(content))
    return plain


def _described(name: str, measure: Mapping[str, Any]) -> str:
    if not measure["informative"]:
        return f"{name}: no information at this price"
    low, high = measure["interval"]
    return (
        f"{name} {measure['value']:.4g} ({measure['level']:.0%} interval {low:.4g} to {high:.4g})"
    )


def _variant(loss: Mapping[str, str]) -> str:
    if "rho" in loss:
        return "Zero-concentrated DP"
    return "Pure DP" if loss.get("delta", "0") == "0" else "Approximate DP"


def _unit(protection: Mapping[str, Any]) -> str:
    if not protection["unit"]:
        return "One row"
    most = protection["rows_per_unit"]
    return f"One {protection['unit_name']} with all its rows, of which at most {most} count"


def _adjacent(protection: Mapping[str, Any]) -> str:
    one = "one unit's rows" if protection["unit"] else "one row"
    if protection["neighbours"] == "replace-one":
        return f"Adjacent tables differ by replacing {one}."
    if protection["neighbours"] == "add-remove":
        return f"Adjacent tables differ by adding or removing {one}."
    return f"Adjacent tables differ in the outcome of {one}; all other columns are public."


def _unprotected(protection: Mapping[str, Any]) -> str:
    if protection["row_count_is_public"]:
        return "The number of rows, and what the custodian declared of the columns."
    return "What the custodian declared of the columns."
