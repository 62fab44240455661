"""Which function: terms, hypotheses, how well each explains the series, and what no function may do."""
