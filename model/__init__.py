"""Functions and their search, resource metrics, blocking factors, the BSP sum and its uncertainty."""
