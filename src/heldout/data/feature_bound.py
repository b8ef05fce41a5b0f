"""At most so many features a row: a rule for each row alone."""

from typing import Any

import numpy as np

__all__ = ["bounded", "mixed"]


def bounded(matrix: Any, most: int) -> Any:
    """The same rows with at most `most` features each; which ones stay is as good as random.

    Claim:       neighbours stay neighbours: row i of the result depends on row i alone, and has
                 at most `most` entries.                              [claim: features-per-row]
    Neighbours:  replace-one and add-remove, by row or by unit.
    Sensitivity: a feature's place in the queue is a hash of the feature and of the set of features
                 of its own row; no other row, label or random number takes part.
    Numerics:    exact, modulo 2^64.
    Refuses:     nothing.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 3.2 (sampling); proofs.
    Cost:        a sort of the entries of the rows that are over the bound.

    >>> from scipy.sparse import csr_array
    >>> bounded(csr_array(np.ones((2, 5), dtype=np.int8)), 3).sum(axis=1).tolist()
    [3, 3]
    """
    from scipy.sparse import csr_array

    matrix = csr_array(matrix)
    sizes = np.diff(matrix.indptr)
    if not (sizes > most).any():
        return matrix
    row = np.repeat(np.arange(matrix.shape[0]), sizes)
    feature = mixed(matrix.indices.astype(np.uint64))
    own = np.zeros(matrix.shape[0], dtype=np.uint64)
    np.add.at(own, row, feature)
    queue = mixed(feature ^ mixed(own)[row])
    # Within a row by its queue; the feature's number decides where two hashes agree.
    order = np.lexsort((matrix.indices, queue, row))
    place = np.arange(len(order)) - matrix.indptr[:-1][row[order]]
    kept = np.sort(order[place < most])
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    return csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def mixed(number: Any) -> Any:
    """SplitMix64's last step: close numbers come out far apart."""
    with np.errstate(over="ignore"):
        number = (number + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return number ^ (number >> np.uint64(31))
