"""Laws of kernels' times, one a file, and their mixture by how well they predict held-out configurations."""
