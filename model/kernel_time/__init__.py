"""A kernel's time: candidate laws, each with its uncertainty, mixed by how well they predict held-out
configurations."""
