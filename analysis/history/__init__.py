"""How the kernels of a program changed over many experiments: commits, dates, compilers."""
