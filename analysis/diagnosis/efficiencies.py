"""Efficiencies after the POP method: where the processor time goes that more ranks do not turn into speed.

With C the mean computing time of all ranks, I what the busiest rank computes beyond it, M the messages' time, O that
outside of kernels and messages (T_others: start, files, halted cycles) and T = C + I + M + O,

    parallel efficiency = load balance x communication efficiency x outside efficiency,
    C / T = C / (C + I) x (C + I) / (C + I + M) x (C + I + M) / T,
    computation scaling = instruction scaling x IPC scaling x frequency scaling,
    global efficiency = parallel efficiency x computation scaling,

the scaling factors relative to the first configuration: work there over work here, summed over ranks in strong and a
rank's in weak scaling; IPC here over IPC there (Rosas, Gimenez and Labarta, "Scalability prediction for fundamental
performance factors", Supercomputing Frontiers and Innovations 1 (2014) 4; POP Centre of Excellence).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.kind import Kind
from ranksight.core.experiment import WHOLE

HALF = 0.5
"""Part of the imbalance that must be outside of kernels for their times to give the balance of load."""


def table(line: Evidence, kind: Kind) -> pd.DataFrame:
    """Efficiencies at each rank count of `line`, relative to its first.

    Columns: ``ranks``, ``global``, ``parallel``, ``load_balance``, ``communication``, ``outside`` (part of the time
    that is kernels and messages), ``computation_scaling`` (NaN where they are unknown), ``instruction_scaling``,
    ``ipc_scaling`` (NaN where instructions were not counted), ``frequency_scaling`` (1: a model knows one clock),
    ``ipc``. Where `kind` is unknown, the global and those of computation and instructions are NaN; where an imbalance
    has no answer, those that divide computing from it.
    """
    separate = line.separate
    computing, imbalance = line.mean[separate].sum(axis=0), line.lost[separate].sum(axis=0)
    messages = line.communication[separate].sum(axis=0)
    whole = computing + imbalance + messages
    times = line.ranks if kind == "strong" else np.full(len(line.ranks), 1.0 if kind == "weak" else np.nan)
    counted = separate & np.isfinite(line.instructions).all(axis=1)
    work = (line.instructions * line.having)[counted].sum(axis=0)
    instructions = work if counted.any() else np.full(len(whole), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        balance = computing / (computing + imbalance)
        communication = (computing + imbalance) / whole
        outside = whole / (whole + line.others)
        scaling = computing[0] * times[0] / (computing * times)
        executed = instructions[0] * times[0] / (instructions * times)
        rate = instructions / (computing * line.frequency)
        ipc = (instructions / computing) / (instructions[0] / computing[0])
    overall = balance * communication * outside * scaling
    # What the mean rank computes is not known without the imbalance.
    balance, scaling, ipc, rate = (np.where(line.settled, each, np.nan) for each in (balance, scaling, ipc, rate))
    # Where most of the waiting is inside of kernels, their times do not separate it.
    balance = balance if (imbalance > 0).any() and line.together >= HALF else np.full(len(whole), np.nan)
    communication = communication if (messages > 0).any() else np.full(len(whole), np.nan)
    # The time of a whole program is computing only as far as it can be separated from waiting.
    single = line.kernels == (WHOLE,) and np.isnan(balance).all() and np.isnan(communication).all()
    scaling = np.full(len(whole), np.nan) if single else scaling
    return pd.DataFrame(
        {
            "ranks": line.ranks,
            "global": overall,
            "parallel": balance * communication * outside,
            "load_balance": balance,
            "communication": communication,
            "outside": outside if len(line.broken.others.value) else np.full(len(whole), np.nan),
            "computation_scaling": scaling,
            "instruction_scaling": executed,
            "ipc_scaling": ipc,
            "frequency_scaling": np.where(np.isfinite(ipc), 1.0, np.nan),
            "ipc": rate,
        }
    )
