"""Training a thinker for a frozen actor (TTExplore, paper 2605.24828; its figure 3 is lost, see the documentation).

`strong` brings trajectories that succeeded, `subtasks` divides them where the score rises, `data` keeps the sub-tasks that the
actor fails and makes a thinking node of each, `coldstart` collects thoughts that helped, `training` learns from thoughts that
are tried out. `episode` and `player` restore a world to a node by replaying actions, and compare every answer on the way.
"""
