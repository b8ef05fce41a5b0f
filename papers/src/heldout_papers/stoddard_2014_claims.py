"""What Stoddard et al. 2014 say of their figures 1 to 5, with their numbers beside ours."""

from __future__ import annotations

from typing import Any

from heldout_papers.registry import Claim
from heldout_papers.stoddard_2014_words import SETS

__all__ = ["SCORES", "TOPS", "claims_1", "claims_2", "claims_3", "claims_4", "claims_5"]

SCORES = {"TC": "total-count", "DC": "difference-count", "IG": "information-gain"}
TOPS = (100, 1_000)
"""Words kept without privacy; the paper does not print how many."""


def claims_1(found: list[dict[str, Any]]) -> list[Claim]:
    value = {(r["data"], r["method"]): r["accuracy"] for r in found}
    datas = list(dict.fromkeys(row["data"] for row in found))

    def selected(data: str, top: int) -> dict[str, float]:
        return {short: value[data, f"{short} {top:,}, no privacy"] for short in SCORES}

    helps = {
        top: sum(max(selected(d, top).values()) > value[d, "all, no privacy"] for d in datas)
        for top in TOPS
    }
    best = {
        top: sum(selected(d, top)["IG"] == max(selected(d, top).values()) for d in datas)
        for top in TOPS
    }
    sampling = sum(value[d, "all, sampled"] > value[d, "all"] for d in datas if (d, "all") in value)
    like = [abs(selected(d, top)["DC"] - value[d, f"PI {top:,}, no privacy"])
            for d in datas for top in TOPS]  # fmt: skip
    ptt = sum(
        value[d, "PTT TC*"] >= max(value[d, "Cluster 2014 TC*"], value[d, "score perturbation TC"])
        for d in datas
    )

    def said(counts: dict[int, int]) -> str:
        return "; ".join(f"{c} of {len(datas)} with {top:,} words" for top, c in counts.items())

    return [
        Claim(
            "Selection helps slightly without privacy",
            "all three data sets",
            said(helps),
            helps[1_000] == len(datas),
            "How many words are kept is not printed: 100 are too few.",
        ),
        Claim(
            "Information gain is the best score without privacy",
            "all three data sets",
            said(best),
            best[1_000] == len(datas),
            "Differences between scores are within the folds' spread.",
        ),
        Claim(
            "The purity index is like the difference count",
            "similar accuracy, not drawn",
            f"{max(like):.3f} apart at most",
            max(like) < 0.05,
            "The purity index counts rows without a word too, and most rows are without it.",
        ),
        Claim(
            "Sampling alone helps at epsilon 1", "both data sets with a bound",
            f"{sampling} of 2", sampling == 2,
        ),
        _headline(value, datas),
        Claim(
            "PTT with TC is the best private selection",
            "all three data sets",
            f"{ptt} of {len(datas)}, but it is not private",
            ptt == len(datas),
            "The printed thresholds are not known.",
        ),
    ]  # fmt: skip


def _headline(value: dict[tuple[str, str], float], datas: list[str]) -> Claim:
    """The paper's headline, by the selection that is private and by those that are not."""
    whole = [data for data in datas if (data, "all") in value]
    gains = {
        name: [value[data, name] - value[data, "all"] for data in whole]
        for name in ("score perturbation TC", "Cluster 2014 TC*", "PTT TC*")
    }
    best = [max(gain) for gain in zip(*gains.values(), strict=True)]
    private = gains["score perturbation TC"]
    return Claim(
        "Selecting features improves a private classifier's misclassification rate by 10 to 15%",
        "10 to 15%",
        "; ".join(
            f"{data} {one:.1%} by a private selection, {other:.1%} by the best"
            for data, one, other in zip(whole, private, best, strict=True)
        ),
        max(private) >= 0.1,
        "The largest gains are of selections that are not private.",
    )


def claims_2(found: list[dict[str, Any]]) -> list[Claim]:
    value = {row["method"]: row["accuracy"] for row in found}
    tests = ("score perturbation TC", "Cluster 2014 TC*", "PTT TC*")
    said = ", ".join(f"{name} {value[name]:.3f}" for name in (*tests, "all, sampled", "all"))
    return [
        Claim(
            "The same trends: selection is better than all words sampled",
            "graph",
            said,
            all(value[name] > value["all, sampled"] for name in tests),
        ),
        Claim(
            "PTT with TC above clustering with TC above score perturbation with TC",
            "graph",
            said,
            value[tests[2]] >= value[tests[1]] >= value[tests[0]],
            "PTT is not private, and few folds.",
        ),
    ]


def claims_3(found: list[dict[str, Any]], thresholds: tuple[int, ...]) -> list[Claim]:
    value = {(row["method"], row["threshold"]): row["F1"] for row in found}
    printed = ("PTT*", "NoisyCut*", "Cluster 2014*", "score perturbation")
    best = sum(
        value["PTT*", each] >= max(value[name, each] for name in printed) for each in thresholds
    )
    low, high = thresholds[0], thresholds[-1]

    def ends(name: str) -> str:
        return f"{name} {value[name, low]:.2f} and {value[name, high]:.2f}"

    return [
        Claim(
            "PTT has the best F1 at all thresholds",
            f"{len(thresholds)} of {len(thresholds)}",
            f"{best} of {len(thresholds)}, but it is not private",
            best == len(thresholds),
        ),
        Claim(
            "Score perturbation and NoisyCut are worse at low thresholds, clustering at high ones",
            "graph",
            f"at {low} and {high}: " + "; ".join(ends(name) for name in printed[1:]),
            all(value[n, low] < value[n, high] for n in ("NoisyCut*", "score perturbation"))
            and value["Cluster 2014*", low] > value["Cluster 2014*", high],
            "Clusters of counts after ten words of a message are kept miss what the threshold "
            "asks of all words; where the paper's centres start is not printed.",
        ),
    ]


def claims_4(found: list[dict[str, Any]]) -> list[Claim]:
    value = {(r["data"], r["epsilon"], r["method"]): r["accuracy"] for r in found}
    best = {
        (data, epsilon): max(
            value[data, epsilon, name]
            for name in ("score perturbation TC", "Cluster 2014 TC*", "PTT TC*")
        )
        - value[data, epsilon, "majority"]
        for data in SETS
        for epsilon in ("1", "0.1")
    }
    said = "; ".join(
        f"{data} {best[data, '1']:.3f} above it at epsilon 1, {best[data, '0.1']:.3f} at 0.1"
        for data in SETS
    )
    return [
        Claim(
            "On TWITTER and REUTERS accuracy comes near the majority classifier's at epsilon 0.1",
            "graph",
            said,
            all(best[data, "0.1"] < 0.6 * best[data, "1"] for data in ("TWITTER", "REUTERS")),
            "On REUTERS the frequent words alone tell earnings apart, and PTT finds them at 0.1.",
        )
    ]


def claims_5(split: list[dict[str, Any]], rate: list[dict[str, Any]]) -> list[Claim]:
    def best(rows: list[dict[str, Any]], data: str) -> tuple[Any, dict[Any, float]]:
        value = {row["x"]: row["accuracy"] for row in rows if row["data"] == data}
        return max(value, key=value.__getitem__), value

    shares = {data: best(split, data)[0] for data in ("TWITTER", "SMS")}
    rates = {data: best(rate, data) for data in ("TWITTER", "SMS")}
    low = [value[1] < value[place] - 0.005 for place, value in rates.values()]
    return [
        Claim(
            "An even split is the best",
            "0.5 on both data sets",
            "; ".join(f"{data} {share}" for data, share in shares.items()),
            set(shares.values()) == {0.5},
            "The curve is flat between 0.3 and 0.7: within the spread of the folds.",
        ),
        Claim(
            "A low sampling rate hurts",
            "both data sets",
            "; ".join(
                f"{data}: r = 1 {value[1]:.3f}, best r = {place} {value[place]:.3f}"
                for data, (place, value) in rates.items()
            ),
            all(low),
            "Few folds; see the note.",
        ),
    ]
