"""Questions asked of a fitted model: diagnosis, phases, expectations, planning, comparison."""
