"""GRPO on whole episodes, task and exploration rollouts interleaved (paper 001, section 3.3).

`interleave` and `draws` say what a step rolls out, `rollouts` plays it with `run_episode`, `advantages` and `signal` turn
rewards into what is learnt from, `batches` and `loss` make a gradient of it, `learner` holds model, reference and optimiser,
`trainer` is the component that `agentexp train-grpo` runs. A step of our own instead of TRL's `GRPOTrainer`, because an episode
with rewritten prompts gives several rows, and that trainer wants exactly one per rollout.
"""
