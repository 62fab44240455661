"""The sections of the report, in their order; one a file, each with a template of its name."""

from ranksight.reports.html.sections import (
    breakdown,
    calltree,
    communication,
    efficiency,
    evidence,
    expectations,
    front,
    kernels,
    pages,
    platform,
    ranking,
    refused,
    roofline,
    terms,
)
from ranksight.reports.html.sections._section import Section

SECTIONS = (
    Section("front", "Prediction", front.build),
    Section("breakdown", "Where the time goes", breakdown.build),
    Section("efficiency", "Efficiencies", efficiency.build),
    Section("ranking", "Kernels over scale", ranking.build),
    Section("kernels", "Verdicts", kernels.build),
    Section("terms", "Terms of the equation", terms.build),
    Section("roofline", "Roofline", roofline.build),
    Section("calltree", "Call tree", calltree.build),
    Section("pages", "Kernel by kernel", pages.build),
    Section("communication", "Communication", communication.build),
    Section("expectations", "Expectations", expectations.build),
    Section("refused", "Not predicted", refused.build),
    Section("platform", "Platform", platform.build),
    Section("evidence", "Evidence", evidence.build),
)
