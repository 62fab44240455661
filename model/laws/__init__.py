"""Laws of kernels' times, and their mixture by how well they predict held-out configurations."""
