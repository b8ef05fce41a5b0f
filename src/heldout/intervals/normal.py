"""The normal law for arrays, in NumPy alone.

SciPy's `ndtr` and `ndtri` are the same functions. To import them takes twice as long as to import
NumPy, a fifth of what the command needs for curves of a thousand rows, and nothing else there
needs SciPy. A test holds both against it.
"""

import math
from typing import Any, Final

import numpy as np

__all__ = ["normal_quantile", "normal_share"]

_Ratio = tuple[tuple[float, ...], tuple[float, ...]]

# Wichura 1988, algorithm AS 241 (PPND16): numerators and denominators, highest power first.
# fmt: off
_CENTRE: Final[_Ratio] = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)
_TAIL: Final[_Ratio] = (
    (7.74545014278341407640e-4, 0.0227238449892691845833, 0.241780725177450611770,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 0.0151986665636164571966,
     0.148103976427480074590, 0.689767334985100004550, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)
_FAR: Final[_Ratio] = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.00124266094738807843860,
     0.0265321895265761230930, 0.296560571828504891230, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 0.0148753612908506148525, 0.136929880922735805310,
     0.599832206555887937690, 1.0),
)
# ln(erfc(z) / t) + z^2 in powers of 2 t - 1, with t = 2 / (2 + z), highest first: its Chebyshev
# series, computed to 400 bits and cut off where a term is below 1e-16.
_LOGARITHM: Final = (
    6.714920393601979e-12, -1.8902306008944537e-09, 4.013877704214506e-09, 1.1172352263623759e-08,
    -3.9024931626661816e-08, 1.4448658046252676e-09, 1.5307318366323928e-07, -2.495832761719667e-07,
    -1.6817283194044123e-07, 1.2500276612569754e-06, -1.2725805279147717e-06,
    -2.947986876998259e-06, 8.562779099386524e-06, 1.3772664134464417e-07, -3.0187948093951486e-05,
    3.17451797494374e-05, 7.140103219748502e-05, -0.0001743029472030762, -9.373503465815823e-05,
    0.000673678795580235, -0.0001462468629421063, -0.002345812500482853, 0.001758933557766382,
    0.008824938557060623, -0.009872689366388684, -0.0468956102311753, 0.04734330684190441,
    0.6726432239776567, -0.6717940840566923,
)
# fmt: on


def normal_share(places: Any) -> Any:
    """How much of the standard normal law lies below each place of an array.

    >>> normal_share(np.array([-np.inf, -1.0, 0.0, 2.0])).round(6).tolist()
    [0.0, 0.158655, 0.5, 0.97725]
    """
    places = np.asarray(places, dtype=np.float64)
    near = 2 / (2 + np.abs(places) * math.sqrt(0.5))
    tail = near * np.exp(_polynomial(2 * near - 1, _LOGARITHM) - places * places / 2) / 2
    return np.where(places < 0, tail, 1 - tail)


def normal_quantile(shares: Any) -> Any:
    """Where so much of the standard normal law lies below, for an array of shares in (0, 1).

    >>> normal_quantile(np.array([1e-12, 0.158655, 0.5, 0.975])).round(4).tolist()
    [-7.0345, -1.0, 0.0, 1.96]
    """
    shares = np.asarray(shares, dtype=np.float64)
    beside = shares - 0.5
    found = beside * _ratio(0.180625 - beside * beside, _CENTRE)
    outer = np.abs(beside) > 0.425
    depth = np.sqrt(-np.log(np.minimum(shares, 1 - shares)[outer]))
    tail = _ratio(depth - 1.6, _TAIL)
    if (far := depth > 5).any():
        tail[far] = _ratio(depth[far] - 5, _FAR)
    found[outer] = np.copysign(tail, beside[outer])
    return found


def _ratio(at: Any, ratio: _Ratio) -> Any:
    numerator, denominator = ratio
    return _polynomial(at, numerator) / _polynomial(at, denominator)


def _polynomial(at: Any, coefficients: tuple[float, ...]) -> Any:
    value = np.full_like(at, coefficients[0])
    for each in coefficients[1:]:
        value *= at
        value += each
    return value
