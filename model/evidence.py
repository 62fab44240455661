"""The method of each answer of a model: measurements, and the equation where it is not a function of the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ranksight.core.experiment import WHOLE
from ranksight.core.units import counted
from ranksight.model.application.breakdown import Refined
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.laws.law import FUNCTION, LAWS, code_of

MOST = 4
"""Texts at most in the method of a sum."""
MANY = 1000.0
"""Samples that are not worth a word."""


def starts() -> dict[str, str]:
    """Codes of methods, and how their evidence begins; of several laws the one of largest weight counts."""
    laws = {code_of(law): f"{law} " for law in LAWS if law != FUNCTION}
    return {"sum": "sum of ", **laws, "function": "function of ", "power": "law of power"}


def codes_of(evidence: NDArray[np.object_]) -> NDArray[np.object_]:
    """The code (:func:`starts`) of the method behind each text, in the shape of `evidence`; empty where none is."""
    texts, known = evidence.reshape(-1).tolist(), starts()
    codes = {
        text: next((code for code, start in known.items() if text.startswith(start)), "")
        for text in dict.fromkeys(texts)
    }
    return np.array([codes[text] for text in texts], dtype=object).reshape(evidence.shape)


def evidence_of_series(fitted: Fitted, provenance: Mapping[str, str], refined: Refined) -> NDArray[np.object_]:
    """The method behind each series at each configuration, (s, k)."""
    texts_of_series = [
        f"function of {counted(count, 'configuration')}{_of_samples(few)}, {name} {provenance.get(name, 'measured')}"
        for name, count, few in zip(fitted.metrics, fitted.count.tolist(), fitted.samples.tolist(), strict=True)
    ]
    evidence = np.empty(refined.said.value.shape, dtype=object)
    evidence[:] = np.array(texts_of_series, dtype=object).reshape(-1, 1)
    for index, where, texts, by_function in refined.methods:
        texts = np.where(by_function, np.where(texts == "", "", texts + ": ") + evidence[index], texts)
        evidence[index] = np.where(where, texts, evidence[index])
    return evidence


def _of_samples(number: float) -> str:
    """How many samples each configuration has, where values are made of samples."""
    return f" of about {number:.2g} samples" if number < MANY else ""


def evidence_of_sum(texts: NDArray[np.object_], kernels: Sequence[str], outside: bool) -> NDArray[np.object_]:
    """What the program's value of one metric (k,) comes from, given what each series (s, k) comes from; `outside` says
    that it is the sum of kernels and the time outside them although its own was measured."""
    parts = np.array([kernel != WHOLE for kernel in kernels], dtype=bool)
    if not parts.all() and not (outside and parts.any()):
        return np.asarray(texts[list(kernels).index(WHOLE)], dtype=object)
    texts = texts[parts]
    more = " and the time outside them" if outside else ""
    evidence = np.empty(texts.shape[1], dtype=object)
    # Consecutive configurations mostly have the same method.
    new = np.ones(texts.shape[1], dtype=bool)
    new[1:] = (texts[:, 1:] != texts[:, :-1]).any(axis=0)
    for k in np.flatnonzero(new):
        different = list(dict.fromkeys(texts[:, k].tolist()))[:MOST]
        evidence[k] = f"sum of {counted(len(texts), 'kernel')}{more}: {'; '.join(different)}"
    return np.asarray(evidence[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))])
