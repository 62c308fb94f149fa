//! The words of `convert` -> typed options. Which of them apply is for the kind of source to decide.

use clap::{Args, ValueEnum};

use super::RecordVersion;
use super::rewrite::Rewriting;

/// Data -> the same data in another form.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill convert games v7 --version 7\n  \
gristmill convert games tars --container tar --games-per-tar 1000\n  \
gristmill convert games.tar loose --container loose --version 6 --lossy\n\n\
Without --version no game is decoded, and each keeps its bytes.")]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
    /// Version of the records [default: what they are].
    #[arg(long, value_name = "V", value_enum, help_heading = "Of chess games")]
    pub(crate) version: Option<RecordVersion>,
    /// Narrow V7 to V6 even where the values that V6 has no room for cannot be computed again.
    #[arg(long, requires = "version", help_heading = "Of chess games")]
    pub(crate) lossy: bool,
    /// Decay per ply of the short-term values that V7 gets [default: 0.8333333].
    #[arg(long, value_name = "X", requires = "version", help_heading = "Of chess games")]
    pub(crate) st_q_theta: Option<f32>,
    /// What the games are put in [default: what they are in].
    #[arg(long, value_name = "C", value_enum, help_heading = "Of chess games")]
    pub(crate) container: Option<Container>,
    /// Most games in each tar that is made [default: 1000].
    #[arg(long, value_name = "N", help_heading = "Of chess games", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) games_per_tar: Option<u32>,
}

/// What games are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Container {
    /// A .gz for each; those of a.tar in a folder a.
    Loose,
    /// Tars; a tar that is there stays one.
    Tar,
}
