"""Learning to explore: SFT on MAP trajectories, interleaved GRPO, and the training of a thinker (extra `train`)."""
