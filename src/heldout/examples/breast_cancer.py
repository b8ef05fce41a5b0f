"""Public data (scikit-learn's copy of the Wisconsin set); no private row passes here."""

from typing import Any

import numpy as np


def breast_cancer() -> Any:
    """Scores of a logistic regression on scikit-learn's breast cancer data, as a pyarrow Table.

    Trained on every other sample and scored on the rest, so the 284 rows are a test set.
    Columns: `sample_id`, `malignant` (0 or 1), `risk`.

    >>> breast_cancer().column_names
    ['sample_id', 'malignant', 'risk']
    """
    import pyarrow
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, benign = load_breast_cancer(return_X_y=True)
    malignant = 1 - benign
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(features[::2], malignant[::2])
    risk = np.round(model.predict_proba(features[1::2])[:, 1], 4)
    return pyarrow.table(
        {
            "sample_id": np.arange(1, len(malignant), 2),
            "malignant": malignant[1::2].astype(np.int64),
            "risk": risk,
        }
    )
