"""Runs inside Extra-P's own environment: models series from a JSON file, writes its answers to another.

Called as ``python extrap_worker.py INPUT OUTPUT``; imports nothing of this project. Input:
``{"groups": [{"parameters": [...], "points": n x m, "values": s x n x r with nulls, "targets": k x m, "negative": allow
negative exponents}]}``; output: for every group ``values`` (s x k, null where Extra-P gave no model), ``formulas``,
``exponents`` (s x m pairs of polynomial and logarithmic exponent, see :func:`leading`, at the last target), ``cpu``
(seconds in the modeller alone) and once ``version``, ``peak`` (bytes, of the process).
"""

import json
import math
import sys
import time
import warnings

import extrap
import numpy as np
from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.experiment import Experiment
from extrap.entities.measurement import Measurement
from extrap.entities.metric import Metric
from extrap.entities.parameter import Parameter
from extrap.modelers.model_generator import ModelGenerator

METRIC = Metric("metric")


def experiment_of(group):
    """An Extra-P experiment of the series that have values at all points they are asked for."""
    experiment = Experiment()
    for name in group["parameters"]:
        experiment.add_parameter(Parameter(name))
    experiment.add_metric(METRIC)
    coordinates = [Coordinate(*point) for point in group["points"]]
    for coordinate in coordinates:
        experiment.add_coordinate(coordinate)
    for number, series in enumerate(group["values"]):
        callpath = Callpath(f"series{number}")
        experiment.add_callpath(callpath)
        for coordinate, values in zip(coordinates, series, strict=True):
            present = [value for value in values if value is not None]
            if present:
                experiment.add_measurement(Measurement(coordinate, callpath, METRIC, present))
    return experiment


def leading(function, parameters, target):
    """For every parameter the exponents (polynomial, logarithm) in the term of it that is largest at the target."""
    exponents = [[0.0, 0.0] for _ in range(parameters)]
    sizes = [-1.0] * parameters
    for term in function.compound_terms:
        pairs = getattr(term, "parameter_term_pairs", None)
        parts = [(0, term)] if pairs is None else pairs
        value = term.coefficient
        found = {}
        for index, part in parts:
            here = found.setdefault(index, [0.0, 0.0])
            for simple in part.simple_terms:
                power = float(simple.exponent)
                logarithm = simple.term_type == "logarithm"
                here[logarithm] += power
                value *= (math.log2(target[index]) if logarithm else target[index]) ** power
        for index, here in found.items():
            if abs(value) > sizes[index]:
                sizes[index], exponents[index] = abs(value), here
    return exponents


def answer(group):
    """Model one group of series over the same points."""
    targets = [tuple(map(float, point)) for point in group["targets"]]
    experiment = experiment_of(group)
    start = time.process_time()
    generator = ModelGenerator(experiment)
    modeler = generator.modeler
    getattr(modeler, "single_parameter_modeler", modeler).allow_negative_exponents = bool(group.get("negative"))
    generator.model_all()
    cpu = time.process_time() - start
    many = len(group["parameters"])
    values, formulas, exponents = [], [], []
    for number in range(len(group["values"])):
        model = generator.models.get((Callpath(f"series{number}"), METRIC))
        if model is None:
            values.append([None] * len(targets))
            formulas.append(None)
            exponents.append(None)
            continue
        function = model.hypothesis.function
        grid = np.array(targets)[:, 0] if many == 1 else np.array(targets).T
        predicted = np.broadcast_to(np.asarray(function.evaluate(grid), dtype=float), (len(targets),)).tolist()
        values.append([value if math.isfinite(value) else None for value in predicted])
        formulas.append(str(function))
        exponents.append(leading(function, many, targets[-1]))
    return {"values": values, "formulas": formulas, "exponents": exponents, "cpu": cpu}


def refused(group, error):
    """The answer where Extra-P raises."""
    empty = [None] * len(group["values"])
    values = [[None] * len(group["targets"]) for _ in empty]
    return {
        "values": values,
        "formulas": empty,
        "exponents": empty,
        "cpu": 0.0,
        "error": f"{type(error).__name__}: {error}",
    }


def peak():
    """Largest resident memory of this process since it was started, in bytes; NaN where that is not known."""
    try:
        with open("/proc/self/status", encoding="ascii") as stream:
            return next(float(line.split()[1]) * 1024 for line in stream if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return math.nan


def main():
    """Answer the groups of the input file one after another."""
    warnings.simplefilter("ignore")
    with open(sys.argv[1], encoding="utf-8") as stream:
        groups = json.load(stream)["groups"]
    answers = []
    for group in groups:
        try:
            answers.append(answer(group))
        except Exception as error:  # whatever Extra-P raises is its answer to this group
            answers.append(refused(group, error))
    result = {
        "version": extrap.__version__,
        "python": sys.version.split()[0],
        "peak": peak(),
        "groups": answers,
    }
    with open(sys.argv[2], "w", encoding="utf-8") as stream:
        json.dump(result, stream)


if __name__ == "__main__":
    main()
