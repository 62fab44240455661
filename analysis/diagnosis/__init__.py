"""Diagnosis: what bounds each kernel, how it scales, which becomes largest, and what mending it would give."""
