"""The application's time: the sum over kernels, communication and imbalance, with its uncertainty."""
