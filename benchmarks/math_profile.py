"""Where the time of the math recipe goes: a profile of Engine.score over real rollouts.

    python -m rewarden.benchmarks.math_profile [--rows 20000] [--top 40] [--by tottime]

The process is profiled alone: work in pool workers shows as waiting. Profiling makes Python calls dearer than C ones,
so read it as an order, not as seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats

import rewarden

from . import data


def main() -> None:
    """Print the dearest functions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--by", choices=["tottime", "cumtime", "ncalls"], default="tottime")
    options = parser.parse_args()
    data.require()
    rollouts = [rewarden.Rollout(completion=c, reference=r) for c, r in data.stream(options.rows)]
    with rewarden.Engine("math", workers=2, cache=None) as engine:
        engine.warm()
        engine.score(rollouts[:500])
        profile = cProfile.Profile()
        profile.runcall(engine.score, rollouts)
    pstats.Stats(profile).sort_stats(options.by).print_stats(options.top)


if __name__ == "__main__":
    main()
