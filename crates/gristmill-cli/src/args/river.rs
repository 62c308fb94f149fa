//! The options that make a loader: a configuration file, or directories with the options of the usual graph.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill_engine::config::{MemorySize, Skip};

/// What to read and how to mix it.
#[derive(Debug, Clone, Args)]
pub(crate) struct River {
    /// One CONFIG.toml or CONFIG.textproto, or directories of games; DIR:W gives a directory a weight (a:0.7 b:0.3).
    #[arg(required = true, value_name = "CONFIG|DIR")]
    pub(crate) inputs: Vec<String>,
    /// Keep the newest N games of each directory.
    #[arg(long, value_name = "N", help_heading = "Of directories")]
    pub(crate) pool: Option<u64>,
    /// Shuffle in a reservoir of N positions; 0 for none.
    #[arg(long, value_name = "N", help_heading = "Of directories")]
    pub(crate) reservoir: Option<usize>,
    /// Positions in a batch.
    #[arg(long, value_name = "N", help_heading = "Of directories")]
    pub(crate) batch_size: Option<usize>,
    /// Fraction of a game's positions taken at each use.
    #[arg(long, value_name = "RATE", help_heading = "Of directories")]
    pub(crate) sampling_rate: Option<f32>,
    /// Number of positions taken at each use of a game, instead of a share.
    #[arg(long, value_name = "N", conflicts_with = "sampling_rate", help_heading = "Of directories")]
    pub(crate) position_count: Option<u32>,
    /// Hanse sampling: above 0 draw games by their content, so that each position is as likely as any.
    #[arg(long, value_name = "N", help_heading = "Of directories")]
    pub(crate) hanse_sampling_threshold: Option<u64>,
    /// Exponent of a game's chance [default: 1].
    #[arg(long, value_name = "G", requires = "hanse_sampling_threshold", help_heading = "Of directories")]
    pub(crate) hanse_sampling_gamma: Option<f64>,
    /// What a game's chance is proportional to [default: weight].
    #[arg(long, value_enum, requires = "hanse_sampling_threshold", help_heading = "Of directories")]
    pub(crate) hanse_sampling_form: Option<HanseForm>,
    /// Cache up to N positions of inflated games; with --position-count 1. Changes no batch.
    #[arg(long, value_name = "N", requires = "position_count", help_heading = "Of directories")]
    pub(crate) position_cache: Option<u64>,
    /// Number of passes over the files there are, in order; without it the stream never ends.
    #[arg(long, value_name = "N", help_heading = "Of directories")]
    pub(crate) epochs: Option<u32>,
    /// Also take files that appear later [default: true, with --epochs false].
    #[arg(long, value_name = "BOOL", help_heading = "Of directories")]
    pub(crate) watch: Option<bool>,
    /// Queue (sqs://NAME) to which the bucket of the folder sends its events: find new games as they come.
    #[arg(long, value_name = "QUEUE", help_heading = "Of directories")]
    pub(crate) events: Option<String>,
    /// Wait if a folder has no games yet, instead of ending with an error.
    #[arg(long, conflicts_with_all = ["epochs", "watch", "replay"])]
    pub(crate) wait: bool,
    /// Tensors of a batch, with commas: planes, planes:u8, planes:bits, probs, values, legal, ids, ...
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Of directories")]
    pub(crate) tensors: Option<Vec<String>>,
    /// What to do with the last, partial batch.
    #[arg(long, value_enum, help_heading = "Of directories")]
    pub(crate) last_batch: Option<LastBatch>,
    /// Split the games into named outputs by weight, with commas: train:9,test:1.
    #[arg(long, value_name = "NAME:W", value_delimiter = ',', value_parser = share, help_heading = "Of directories")]
    pub(crate) split: Option<Vec<(String, u64)>>,
    /// What decides the output of a game: the name that it had as a file, or the file that it is in and its number there, as
    /// older versions did [default: name].
    #[arg(long, value_name = "WHAT", value_enum, requires = "split", help_heading = "Of directories")]
    pub(crate) split_by: Option<SplitBy>,
    /// Deal what the first two outputs of --split have together to K folds; without --split these are train and val.
    #[arg(long, value_name = "K", requires = "fold", help_heading = "Of directories")]
    pub(crate) folds: Option<u64>,
    /// The fold, from 0, that is the second of them; the first gets all others.
    #[arg(long, value_name = "I", requires = "folds", help_heading = "Of directories")]
    pub(crate) fold: Option<u64>,
    /// Override fields of the configuration with those of a .toml or .textproto; stages are matched by name.
    #[arg(long, value_name = "FILE")]
    pub(crate) overlay: Option<PathBuf>,
    /// Seed of every random draw [default: random, and printed].
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Distribute the games over N lanes, such as 48, so that several ranks can share the stream.
    #[arg(long, value_name = "N")]
    pub(crate) lanes: Option<u32>,
    /// Rank whose rows to give, from 0.
    #[arg(long, value_name = "R", requires = "world_size")]
    pub(crate) rank: Option<u32>,
    /// How many ranks share each batch.
    #[arg(long, value_name = "N", requires = "rank")]
    pub(crate) world_size: Option<u32>,
    /// Leave out batches A to B - 1; NAME:A..B of several outputs. All others keep their numbers and contents.
    #[arg(long, value_name = "A..B")]
    pub(crate) skip: Vec<Skip>,
    /// Memory limit, such as 2GiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,
    /// What to do with a bad game.
    #[arg(long, value_enum)]
    pub(crate) bad_chunks: Option<BadChunks>,
    /// What to do when a file cannot be read after several tries [default: wait].
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) io_errors: Option<IoErrors>,
    /// Report of bad games, as JSON lines (with --bad-chunks quarantine).
    #[arg(long, value_name = "FILE")]
    pub(crate) quarantine: Option<PathBuf>,
    /// Log of arrivals, as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Ledger of delivered batches, for `gristmill verify-run`.
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// Take the arrivals from the journal of an earlier run.
    #[arg(long, requires = "journal")]
    pub(crate) replay: bool,
    /// Folder of the side index; `off` for none.
    #[arg(long, value_name = "DIR")]
    pub(crate) index: Option<PathBuf>,
}

/// What decides the output of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitBy {
    /// The name that it had as a file.
    Name,
    /// Its file, and its number there.
    File,
}

/// What a game's chance is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HanseForm {
    /// The weight of its positions.
    Weight,
    /// The number of its positions.
    Length,
}

/// What to do with the last, partial batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LastBatch {
    /// A smaller batch.
    Keep,
    /// Nothing.
    Drop,
    /// A full batch with rows of zeros.
    Pad,
}

/// What to do with a bad game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BadChunks {
    /// Count it and continue.
    Skip,
    /// Count it, report it, and continue.
    Quarantine,
    /// End with an error.
    Raise,
}

/// What to do when a file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoErrors {
    /// Wait until it can be read, and warn.
    Wait,
    /// End with an error.
    Raise,
}

/// One part of a split: its name and its weight.
pub(super) fn share(text: &str) -> Result<(String, u64), String> {
    let parts = text.rsplit_once(':').and_then(|(name, weight)| Some((name.to_owned(), weight.parse().ok()?)));
    parts.filter(|(name, _)| !name.is_empty()).ok_or_else(|| "expected NAME:WEIGHT, such as train:9".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_a_name_and_a_weight() {
        assert_eq!(share("train:9"), Ok(("train".into(), 9)));
        assert!(["train", ":9", "train:", "train:x", "train:-1"].into_iter().all(|text| share(text).is_err()));
    }
}
