"""A scalability study of an MPI library: benchmark, expectations, and how to run them (README.md)."""
