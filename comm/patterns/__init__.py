"""Communication patterns as equations, destination = f(source, number of ranks).

Panadero et al. call these the general equations of a program's communication: found at a few numbers of ranks, they
give the partners at any other. :mod:`ranksight.comm.patterns.recognition` finds the rules of traced runs.
"""
