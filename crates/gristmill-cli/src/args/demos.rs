//! The words of `convert` for demonstrations -> typed options.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill_format::demo::shard::Members;

use super::pictures::Colors;

/// Options that convert demonstrations. The name of OUT decides the new form.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of demonstrations: shards, MAGICAL, dm_control, Atari, Procgen, imitation")]
pub(crate) struct Demos {
    /// TOML with the tables env_cfg and env_data. Where PATH is a folder without demonstrations, the paths of env_data are
    /// below it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Benchmark of the native files: atari, dm_control, gymnasium, magical, minecraft or procgen.
    #[arg(long, value_name = "NAME")]
    pub(crate) benchmark: Option<String>,
    /// The task, for the metadata of the shard.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Preprocessing of MAGICAL's two views; an empty name keeps them unchanged [default: LoResCHW4E].
    #[arg(long, value_name = "NAME")]
    pub(crate) magical_preproc: Option<String>,
    /// Leave out the steps of MAGICAL whose action is 0.
    #[arg(long)]
    pub(crate) remove_null_actions: bool,
    /// Frames in an observation [default: dm_control 3, procgen 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) frame_stack: Option<u32>,
    /// Read native files as the loaders of the originals did, faults included (docs/format/demonstrations.md).
    #[arg(long)]
    pub(crate) compat: bool,
    /// Take the first N trajectories that have an end.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) n_traj: Option<u64>,
    /// Draw the N trajectories at random instead.
    #[arg(long, requires = "n_traj")]
    pub(crate) sample: bool,
    /// Put the trajectories into a random order.
    #[arg(long)]
    pub(crate) shuffle: bool,
    /// Seed of --sample and --shuffle [default: random, and printed].
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Start a new shard with the first trajectory after N frames.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_frames: Option<u64>,
    /// Make a shard of each N files, in the folder OUT, instead of one of all files.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) files_per_shard: Option<u64>,
    /// How shards hold their values: as pickles, or as .npy and .json, which readers take that trust no pickle
    /// [default: pickle].
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) members: Option<Written>,
    /// Level of compression: of .tar.zst 1 to 22 [default: 12], of .tgz 1 to 9, of .npz 0 (none) to 9 [default: 6].
    #[arg(long, value_name = "L")]
    pub(crate) level: Option<u32>,
    /// Number of discrete actions [default: magical 18, procgen 15, else that of the data].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "action_bounds")]
    pub(crate) n_actions: Option<u32>,
    /// Lowest and highest value of an action [default: dm_control -1:1, else none].
    #[arg(long, value_name = "LOW:HIGH", value_parser = bounds, allow_hyphen_values = true)]
    pub(crate) action_bounds: Option<(f64, f64)>,
    /// Lowest and highest value of an observation [default: those of whole numbers, else none].
    #[arg(long, value_name = "LOW:HIGH", value_parser = bounds, allow_hyphen_values = true)]
    pub(crate) obs_bounds: Option<(f64, f64)>,
    /// Colours of the frames [default: atari gray, else rgb].
    #[arg(long, value_name = "C", value_enum)]
    pub(crate) color_space: Option<Colors>,
}

/// How the values of a shard are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Written {
    /// As pickles, which older readers of demonstrations expect.
    Pickle,
    /// Arrays as .npy, everything else as .json: what Hugging Face's loader and webdataset with WDS_SECURE=1 take.
    Npy,
}

impl From<Written> for Members {
    fn from(word: Written) -> Members {
        match word {
            Written::Pickle => Members::Pickle,
            Written::Npy => Members::Npy,
        }
    }
}

impl Demos {
    /// The name of an option that was said, if any was.
    pub(crate) fn said(&self) -> Option<&'static str> {
        let options = [
            ("--config", self.config.is_some()),
            ("--benchmark", self.benchmark.is_some()),
            ("--task", self.task.is_some()),
            ("--magical-preproc", self.magical_preproc.is_some()),
            ("--remove-null-actions", self.remove_null_actions),
            ("--frame-stack", self.frame_stack.is_some()),
            ("--compat", self.compat),
            ("--n-traj", self.n_traj.is_some()),
            ("--sample", self.sample),
            ("--shuffle", self.shuffle),
            ("--seed", self.seed.is_some()),
            ("--max-frames", self.max_frames.is_some()),
            ("--files-per-shard", self.files_per_shard.is_some()),
            ("--members", self.members.is_some()),
            ("--level", self.level.is_some()),
            ("--n-actions", self.n_actions.is_some()),
            ("--action-bounds", self.action_bounds.is_some()),
            ("--obs-bounds", self.obs_bounds.is_some()),
            ("--color-space", self.color_space.is_some()),
        ];
        options.into_iter().find(|(_, said)| *said).map(|(name, _)| name)
    }
}

/// Two numbers, the lower first.
fn bounds(text: &str) -> Result<(f64, f64), String> {
    let parts = text.split_once(':').map(|(low, high)| (low.parse(), high.parse()));
    match parts {
        Some((Ok(low), Ok(high))) if low < high => Ok((low, high)),
        _ => Err("expected two numbers such as -1:1, the lower first".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_two_numbers_in_order() {
        assert_eq!(bounds("-1:1.5"), Ok((-1.0, 1.5)));
        assert!(["1", "2:1", "a:b", "nan:1", ":"].into_iter().all(|text| bounds(text).is_err()));
    }
}
