"""Who talks to whom, as equations: destination = f(source, number of ranks), one rule a file.

Panadero et al. call these the general equations of a program's communication: found at a few numbers of ranks, they
tell the partners at any other. :mod:`ranksight.comm.patterns.recognition` finds the rules behind what was traced.
"""
