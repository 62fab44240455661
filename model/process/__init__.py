"""One process for every series: a mean of few terms, times a Gaussian process, times noise."""
