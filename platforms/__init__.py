"""Machine descriptions: topology, clock, caches, latencies, bandwidths, network; loading and calibration."""
