//! The words of `convert` -> typed options. Which of them apply is for the kind of source to decide.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::RecordVersion;
use super::demos::Demos;
use super::rewrite::Rewriting;

/// Data -> the same data in another form.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill convert games v7 --version 7\n  \
gristmill convert games tars --container tar --games-per-tar 1000\n  \
gristmill convert games.binpack boards.bf\n  \
gristmill convert games.tar loose --container loose --version 6 --lossy\n  \
gristmill convert selfplay rows --to exponents\n  \
gristmill convert pack rows --to exponents --join pack/annotations\n  \
gristmill convert legacy pack --to aligned48\n  \
gristmill convert magical/move-to-region demos.tar.zst --benchmark magical --task MoveToRegion-Demo-v0\n  \
gristmill convert demos.tar.zst small.tgz --n-traj 5 --sample --seed 797821\n  \
gristmill convert demos.tar.zst demos.npz\n\n\
Without --version no game of chess is decoded, and each keeps its bytes.\n\n\
To and from Minari data sets, and rows of 2048 to Parquet or Arrow, by way of the Python package:\n  \
gristmill convert demos.tar.zst mine/pong-v0 --to minari-hdf5\n  gristmill convert mine/pong-v0 demos.tar.zst\n  \
gristmill convert selfplay columns --to parquet\n  gristmill convert mine.hdf5 mine.tar.zst --fields obs=states,acts=actions\n  gristmill convert --to minari-hdf5 --help")]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
    /// Drop what the new form cannot hold: values of V7 that cannot be computed again, fields of rows.
    #[arg(long)]
    pub(crate) lossy: bool,
    #[command(flatten)]
    pub(crate) chess: Chess,
    #[command(flatten)]
    pub(crate) g2048: G2048,
    #[command(flatten)]
    pub(crate) demos: Demos,
}

/// What converts games of chess.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of chess games")]
pub(crate) struct Chess {
    /// Version of the records [default: unchanged].
    #[arg(long, value_name = "V", value_enum)]
    pub(crate) version: Option<RecordVersion>,
    /// Decay per ply of the short-term values that V7 gets [default: 0.8333333].
    #[arg(long, value_name = "X", requires = "version")]
    pub(crate) st_q_theta: Option<f32>,
    /// Container of the games [default: unchanged].
    #[arg(long, value_name = "C", value_enum)]
    pub(crate) container: Option<Container>,
    /// Maximum number of games in each new tar [default: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) games_per_tar: Option<u32>,
}

/// What converts rows of 2048.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of folders of 2048 rows: packs, self-play, legacy packs, exponents")]
pub(crate) struct G2048 {
    /// Form of the new rows, or of games of chess. Done by the Python package, which has options of its own: parquet, arrow.
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) to: Option<To>,
    /// Join the fields of these rows by game and step: a folder, or FOLDER/NAME for its files NAME.npy and
    /// NAME-DIGITS.npy. Only with --to exponents.
    #[arg(long, value_name = "PATH", requires = "to")]
    pub(crate) join: Vec<PathBuf>,
    /// Leave out steps that any --join input lacks.
    #[arg(long, requires = "join")]
    pub(crate) inner: bool,
    /// Fill fields that the form needs and the data lacks: move 255, no values, seed 0, score 0.
    #[arg(long, requires = "to")]
    pub(crate) defaults: bool,
    /// Number runs from 0; column original_id of table runs keeps the old ids.
    #[arg(long, requires = "to")]
    pub(crate) renumber: bool,
    /// Rows in each file; without it there is one file of all rows (of self-play: a million in each).
    #[arg(long, value_name = "N", requires = "to", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) shard_rows: Option<u64>,
    /// Replace the output once the new rows or demonstrations are complete.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// What games are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Container {
    /// A .gz for each; those of a.tar in a folder a.
    Loose,
    /// Tars; an existing tar stays one.
    Tar,
}

/// Form of the new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// A pack of 48-byte rows.
    Aligned48,
    /// A pack of 46-byte rows.
    Packed46,
    /// Self-play, version 1.
    SelfPlay,
    /// A legacy expectimax pack.
    Legacy,
    /// Boards as exponents, by game and step, with all that is known of each step.
    Exponents,
    /// Games of chess as records of version 6.
    V6,
    /// Games of chess as records of version 7.
    V7,
    /// Games of chess as one text of their moves. OUT.pgn says it, too.
    Pgn,
    /// Positions of chess as one text, a line for each. OUT.fen says it, too.
    Fen,
    /// Positions of a binpack as boards of bulletformat. OUT.bf, OUT.bullet and OUT.bulletformat say it, too.
    Bulletformat,
    /// Positions of a binpack or its pack, or boards, as Stockfish's binpack. OUT.binpack says it, too.
    Binpack,
}
