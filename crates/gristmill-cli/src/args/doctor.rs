//! The words of `doctor` -> typed options.

use std::path::PathBuf;

use clap::Args;

use super::page::Page;

/// A path -> a report on its data.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill doctor games\n  gristmill doctor games --html report.html\n  \
gristmill doctor ~/.minari/datasets/D4RL/door/human-v2\n  gristmill doctor mine.hdf5 --fields obs=states,acts=actions\n  \
gristmill doctor new --held-out old --json | jq -r '.findings[] | [.check, .count] | @tsv'")]
pub(crate) struct Doctor {
    /// A file, a pack, a Minari data set, arrays of one's own, or a folder of them.
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Data that must share no game with it, such as the other side of a split; may be given again.
    #[arg(long, value_name = "PATH")]
    pub(crate) held_out: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Of arrays of one's own (.npz, pickle, .npy, HDF5, Parquet): obs=observations,acts=actions.
    #[arg(long, value_name = "FIELD=NAME,...")]
    pub(crate) fields: Option<String>,
    /// The interpreter that reads Minari data sets and arrays [default: GRISTMILL_PYTHON, or that beside the command].
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Worker threads; never changes what is found [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
