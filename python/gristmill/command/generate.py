"""`generate random`: random play in real environments, as shards."""

from __future__ import annotations

import argparse
import secrets
import sys
from dataclasses import replace

from gristmill.command.options import Told, Verbs, verb, whole
from gristmill.command.progress import Progress
from gristmill.demos.collecting import MAX_EPISODE_STEPS, collect_random, place_of
from gristmill.demos.config import EnvData, Groups, load_config
from gristmill.demos.writer import LEVEL
from gristmill.envs.config import BENCHMARKS, EnvConfig, VenvOptions
from gristmill.errors import ConfigError

_EXAMPLES = """\
examples:
  gristmill generate random --env CartPole-v1 random.tar.zst --seed 1
  gristmill generate random --env PongNoFrameskip-v4 --benchmark atari --n-envs 8 out
  gristmill generate random --config demos.toml --n-timesteps-min 250000

Episodes are whole: those that were begun are played to their end. The same seed gives the same bytes.
Without OUT the shards go to <data_root>/data/processed/random/<benchmark>/<task>/random.tar.zst."""


def add_to(verbs: Verbs) -> None:
    """Adds `generate` with its subcommand."""
    parser = verbs.add_parser("generate", help="make data", description="Make data.", allow_abbrev=False)
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    about = "Play in real environments with actions drawn uniformly, and write the episodes as shards."
    random = verb(kinds, "random", about, _run, _EXAMPLES)
    random.add_argument("out", nargs="?", help="X.tar.zst, X.tar, or a folder for random.tar.zst")
    which = random.add_argument_group("which environment")
    which.add_argument(
        "--env", metavar="ID", help="the task: a registered id of Gymnasium, or the name in the benchmark"
    )
    which.add_argument("--benchmark", metavar="NAME", choices=BENCHMARKS, help=", ".join(BENCHMARKS))
    which.add_argument("--config", metavar="FILE", help="TOML with the tables env_cfg, venv_opts and env_data")
    which.add_argument("--n-envs", metavar="N", type=whole(1, 4096), help="environments side by side [default: 2]")
    which.add_argument("--in-process", action="store_true", help="run all in this process instead of one process each")
    much = random.add_argument_group("how much")
    much.add_argument(
        "--n-timesteps-min",
        metavar="N",
        type=whole(1),
        default=100_000,
        help="minimum number of steps [default: 100000]",
    )
    much.add_argument("--seed", metavar="S", type=whole(0, 2**31 - 2), help="seed [default: random, and printed]")
    much.add_argument(
        "--max-episode-steps",
        metavar="N",
        type=whole(1),
        default=MAX_EPISODE_STEPS,
        help="give up when an episode takes longer [default: %(default)s]",
    )
    much.add_argument("--no-infos", action="store_true", help="leave out the infos of the environments")
    form = random.add_argument_group("the shards")
    form.add_argument("--max-frames", metavar="N", type=whole(1), help="start a new shard after N frames")
    form.add_argument(
        "--level", metavar="L", type=whole(1, 22), default=LEVEL, help="of compression, 1 to 22 [default: %(default)s]"
    )
    form.add_argument(
        "--members",
        metavar="HOW",
        choices=("pickle", "npy"),
        default="pickle",
        help="values as pickles, or as .npy and .json: pickle, npy [default: %(default)s]",
    )


def _groups(args: argparse.Namespace) -> Groups:
    """The three groups: of the file, changed by words."""
    if args.env is None and args.config is None:
        raise ConfigError("which environment? give --env ID, --config FILE or both", field="env")
    groups = Groups(EnvConfig(), VenvOptions(), EnvData()) if args.config is None else load_config(args.config)
    env_cfg, venv_opts, env_data = groups
    benchmark = args.benchmark or ("gymnasium" if args.config is None else env_cfg.benchmark_name)
    env_cfg = replace(env_cfg, benchmark_name=benchmark, task_name=args.env or env_cfg.task_name)
    if args.n_envs is not None:
        venv_opts = replace(venv_opts, n_envs=args.n_envs)
    if args.in_process:
        venv_opts = replace(venv_opts, venv_parallel=False)
    return Groups(env_cfg, venv_opts, env_data)


def _run(args: argparse.Namespace) -> Told:
    env_cfg, venv_opts, env_data = _groups(args)
    seed = args.seed
    if seed is None:
        seed = secrets.randbelow(2**31 - 1)
        if not args.quiet:
            sys.stderr.write(f"seed {seed}\n")
    told = {
        "output": [place_of(args.out, env_cfg, env_data)],
        "benchmark": env_cfg.benchmark_name,
        "task": env_cfg.task_name,
        "seed": seed,
        "n_timesteps_min": args.n_timesteps_min,
        "trajectories": None,
        "frames": None,
        "dry_run": args.dry_run,
    }
    of = f"{env_cfg.benchmark_name} {env_cfg.task_name}, seed {seed}"
    with Progress("frames", args.chatty) as progress:
        done = collect_random(
            args.out,
            env_cfg,
            venv_opts,
            env_data,
            n_timesteps_min=args.n_timesteps_min,
            seed=seed,
            infos=not args.no_infos,
            max_episode_steps=args.max_episode_steps,
            max_frames=args.max_frames,
            level=args.level,
            members=args.members,
            overwrite=args.overwrite,
            dry_run=args.dry_run,
            progress=progress,
        )
    if args.dry_run:
        text = f"{told['output'][0]} would hold {args.n_timesteps_min} frames or more of {of}; nothing was written"
        return told, text
    paths = [str(path) for path in done.paths]
    hold = "holds" if len(paths) == 1 else "hold"
    files = paths[0] if len(paths) == 1 else f"{paths[0]} to {paths[-1]} ({len(paths)} files)"
    told.update(output=paths, trajectories=done.episodes, frames=done.steps)
    return told, f"{files} {hold} {done.episodes} trajectories of {done.steps} frames of {of}"
