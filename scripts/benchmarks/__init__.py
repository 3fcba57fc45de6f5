"""What `scripts/bench.py` measures, one module per section. Every number stands beside a floor of the same run."""
