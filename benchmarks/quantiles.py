"""How often the intervals of quantiles cover, beside the clustered bootstrap of the quantile alone.

Log-normal latencies in documents; the truth is known.

    python benchmarks/quantiles.py            # 1,000 draws a line, about 15 minutes
    python benchmarks/quantiles.py --quick    # 40 draws
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import norm

from ragnb import stats

DESIGNS = ((60, 1, 0.0), (200, 1, 0.0), (20, 5, 0.2), (40, 5, 0.3), (20, 30, 0.2))
"""Documents, questions in each, and the intra-document correlation of the logarithms."""


def latencies(
    rng: np.random.Generator, documents: int, questions: int, icc: float, systems: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the document of each question and the latency of each system, which share half of their variance."""
    document = np.repeat(np.arange(documents), questions)
    shared = np.sqrt(icc) * rng.normal(size=documents)[document]
    noise = rng.normal(size=(systems + 1, len(document)))
    own = np.sqrt((1 - icc) / 2) * (noise[0] + noise[1:])
    return document, np.exp(shared + own)


def bootstrap(rng: np.random.Generator, values: np.ndarray, document: np.ndarray, q: float):
    """Return the percentile interval of the clustered bootstrap, by the formula of a textbook."""
    rows = [np.flatnonzero(document == one) for one in np.unique(document)]
    drawn = [
        np.quantile(values[np.concatenate([rows[k] for k in picked])], q)
        for picked in rng.integers(0, len(rows), (200, len(rows)))
    ]
    return np.quantile(drawn, [0.025, 0.975])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    draws = 40 if parser.parse_args().quick else 1000
    rng = np.random.default_rng(20261128)
    print("documents × questions, ICC | quantile | covers, truth above | bootstrap: covers, above")
    print("                           |          | difference covers, false | half: covers")
    for documents, questions, icc in DESIGNS:
        for q in (0.5, 0.95):
            truth = float(np.exp(norm.ppf(q)))
            one, other, same, half = (np.zeros(2) for _ in range(4))
            for _ in range(draws):
                document, (new, old) = latencies(rng, documents, questions, icc, 2)
                found = stats.quantile_interval(old, q, document)
                one += found.low <= truth <= found.high, truth > found.high
                low, high = bootstrap(rng, old, document, q)
                other += low <= truth <= high, truth > high
                apart = stats.quantile_difference(new, old, q, document, resamples=400)
                same += apart.low <= 0 <= apart.high, apart.high < 0
                apart = stats.quantile_difference(new / 2, old, q, document, resamples=400)
                half += apart.low <= -truth / 2 <= apart.high, apart.high < -truth / 2
            shares = [
                f"{100 * count / draws:.1f}" for part in (one, other, same, half) for count in part
            ]
            print(
                f"{documents} × {questions}, {icc:g} | {q} | {shares[0]}, {shares[1]} | {shares[2]}, "
                f"{shares[3]} | {shares[4]}, {shares[5]} | {shares[6]}, {shares[7]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
