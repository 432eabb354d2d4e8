"""What condition and category explain of the speedups: a linear mixed model (extra `analysis`)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from experiments.analysis.interval import Interval
from experiments.analysis.statistics import holm
from problems.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

FEWEST_OF_A_CATEGORY = 2
OTHER = "other"


class Term(BaseModel):
    """A fixed effect."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    ratio: Interval
    """exp of the coefficient: a factor on the speedup."""
    chance: float
    """Of Wald's test."""
    holm: float
    """The same, corrected for the number of terms beside the first one, which is no question."""


class MixedModel(BaseModel):
    """log speedup ~ condition * category, with the problem as a random effect.

    A problem without a faster kernel has the same value, 0, under all conditions. So residuals are
    not of one size, and intervals of the conditions are narrower than they should be.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    model: str
    """The language model (or writer) whose kernels these are."""
    formula: str
    base: str
    """The condition that the others are compared with: the plan's first."""
    observations: int
    problems: int
    terms: tuple[Term, ...] = ()
    """Empty where the fit failed or did not converge."""
    problem_sd: float | None = None
    """Standard deviation of log speedup between problems, beyond their categories."""
    residual_sd: float | None = None
    fixed_share: float | None = None
    """Share of the variance that condition and category explain: marginal R2 (Nakagawa and
    Schielzeth 2013, Methods in Ecology and Evolution 4:133)."""
    note: str = ""
    """What must be known to believe it; empty: it converged."""


def fit_mixed_model(model: str, table: pd.DataFrame) -> MixedModel:
    """Fit by restricted maximum likelihood.

    `table`: a row a condition, problem and seed, with `log_speedup` (at least 0: eager is kept),
    `condition` (the first one is what the others are compared with), `category`, `problem`.
    Categories of one problem are put together as `other`: they could not be told from it. Raises
    `UsageError` without statsmodels.
    """
    try:
        from statsmodels.formula.api import mixedlm
    except ImportError as error:
        raise UsageError(
            "the mixed model needs statsmodels; pip install 'kernel-refinery[analysis]'"
        ) from error
    sizes = table.groupby("category")["problem"].nunique()
    rare = table["category"].isin(sizes.index[sizes < FEWEST_OF_A_CATEGORY])
    table = table.assign(category=table["category"].mask(rare, OTHER))
    first = table["condition"].iloc[0]
    factors = {"condition": f"C(condition, Treatment({first!r}))", "category": "C(category, Sum)"}
    varied = [name for name in factors if table[name].nunique() > 1]
    formula = f"log_speedup ~ {' * '.join(factors[name] for name in varied) or '1'}"
    nothing = MixedModel(
        model=model,
        base=first,
        formula=f"log speedup ~ {' * '.join(varied) or '1'} + (1 | problem)",
        observations=len(table),
        problems=table["problem"].nunique(),
    )
    if table["log_speedup"].nunique() == 1:
        return nothing.model_copy(update={"note": "all values are equal: nothing to explain"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = mixedlm(formula, table, groups=table["problem"]).fit(reml=True)
        except (np.linalg.LinAlgError, ValueError, ZeroDivisionError) as error:
            return nothing.model_copy(update={"note": f"it could not be fitted ({error})"})
    said = str(caught[0].message).partition("\n")[0] if caught else ""
    if not fit.converged:
        note = "it did not converge, so it says nothing"
        return nothing.model_copy(update={"note": f"{note} ({said})" if said else note})
    between, residual = float(fit.cov_re.iloc[0, 0]), float(fit.scale)
    explained = float(np.var(fit.model.exog @ fit.fe_params.to_numpy()))
    bounds, names = fit.conf_int(), list(fit.fe_params.index)
    chances = [float(fit.pvalues[name]) for name in names]
    mean = f"{first}{', mean over categories' * ('category' in varied)}"
    terms = tuple(
        Term(
            name=_plain(str(name), mean),
            ratio=Interval(
                value=float(np.exp(fit.fe_params[name])),
                low=_finite(np.exp(bounds.loc[name, 0])),
                high=_finite(np.exp(bounds.loc[name, 1])),
            ),
            chance=chance,
            holm=corrected,
        )
        for name, chance, corrected in zip(
            names, chances, [chances[0], *holm(chances[1:])], strict=True
        )
    )
    return nothing.model_copy(
        update={
            "terms": terms,
            "problem_sd": float(np.sqrt(max(between, 0.0))),
            "residual_sd": float(np.sqrt(residual)),
            "fixed_share": explained / (explained + between + residual),
            "note": f"read its intervals with care ({said})" if said else "",
        }
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain(name: str, mean: str) -> str:
    """`C(condition, Treatment('refine G+E'))[T.sample]:C(category, Sum)[S.norm]` in words."""
    if name == "Intercept":
        return mean
    parts = (part.partition("[")[2].rstrip("]")[2:] for part in name.split("]:"))
    return " in ".join(parts)
