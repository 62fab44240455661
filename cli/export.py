"""Write measurements or a model in the format of another tool."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ranksight.cli._project import experiment_here
from ranksight.cli._saying import say
from ranksight.core.errors import UsageError, meant
from ranksight.core.files import check_output, write_output
from ranksight.core.units import some_of


def run(args: argparse.Namespace) -> int:
    """Export; 0 when the file is written."""
    from ranksight.reports.exporting import FORMATS, Exported, incomplete
    from ranksight.reports.terminal import Table, Text, show

    if args.list_formats:
        rows = [[name, text] for name, (text, _) in FORMATS.items()]
        show(Table(["format:word", "holds:text"], rows))
        return 0
    source = args.source or experiment_here()
    if args.form is None or source is None:
        raise UsageError("ranksight export: a format and what to export are needed", "ranksight export csv EXPERIMENT")
    if args.form not in FORMATS and str(source) in FORMATS:
        args.form, source = str(source), Path(args.form)
    if args.form not in FORMATS:
        remedy = f"{meant(args.form, FORMATS)} 'ranksight export --list-formats' names all".strip()
        raise UsageError(f"ranksight export: no format is named {args.form!r}", remedy)
    if args.output is not None:
        check_output(args.output, args.force)
    elif args.form in ("parquet", "netcdf"):
        raise UsageError(f"ranksight export: {args.form} is not text", "name a file with -o")
    metrics = tuple(args.metric)
    experiment, model = None, None
    if source.is_dir():
        from ranksight.core.experiment import read

        experiment = read(source)
    else:
        from ranksight.model.fitted_model import Model

        model = Model.load(source)
    exported = Exported(experiment, model, metrics)
    written = FORMATS[args.form][1](exported)
    if args.form == "extrap" and not args.quiet and (missing := incomplete(exported)):
        say(
            f"note: not measured at every configuration, as Extra-P needs it, and left out: {some_of(missing)}; "
            "'ranksight export csv' writes all"
        )
    if args.output is None:
        sys.stdout.write(str(written))
        return 0
    write_output(args.output, written)
    if not args.quiet:
        show(Text(f"written: {args.output}", hanging=0))
    return 0
