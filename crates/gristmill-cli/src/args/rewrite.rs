//! The words of the commands that write chess games again: what they share, and `rescore`, `filter` and `split`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill_jobs::shares::Share;

use super::demos::Written;
use super::river::share;
use super::shares::one_of;

/// From where to where.
#[derive(Debug, Args)]
pub(crate) struct Rewriting {
    /// A file, or a folder with everything below it.
    pub(crate) path: PathBuf,
    /// Folder to write to: new, empty, or left by an earlier run of the same command, which then resumes. Of
    /// demonstrations the file: .tar.zst, .tgz, .tar, .npz.
    pub(crate) out: PathBuf,
    /// At most N threads (rows of 2048 and demonstrations take one); never changes a byte [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Write share N of OF, from 1 on, beside OUT: for jobs on many machines, each of which takes some of the files. `gristmill
    /// commit OUT` writes OUT of all; `gristmill shares OUT` lists them. Of chess games, and of demonstrations with
    /// --files-per-shard.
    #[arg(long, value_name = "N/OF", value_parser = one_of)]
    pub(crate) share: Option<Share>,
    /// Read and check everything, print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Games -> the same games with better targets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill rescore games rescored --syzygy tables/3-4-5,tables/6\n  \
gristmill rescore games.tar out --syzygy tables --deblunder-threshold 0.10 --deblunder-width 0.06\n  \
gristmill rescore games out --new-input-format 4 --dry-run --json\n\n\
The same command resumes an interrupted run. Without --syzygy it uses no tablebases.")]
pub(crate) struct Rescore {
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
    /// Directories of Syzygy tables, with commas or by giving the option again.
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pub(crate) syzygy: Vec<PathBuf>,
    /// Accept missing or damaged tables: positions that need them stay unchanged and are counted.
    #[arg(long, requires = "syzygy")]
    pub(crate) allow_missing_tables: bool,
    /// Temperature of the policy; above 1 flattens it.
    #[arg(long, value_name = "T", default_value_t = 1.0)]
    pub(crate) dist_temp: f32,
    /// Added to each probability before the temperature; negative prunes rare moves.
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) dist_offset: f32,
    /// Probability to share among the moves that win fastest by the tablebase, before the temperature.
    #[arg(long, value_name = "X", default_value_t = 0.0, requires = "syzygy")]
    pub(crate) dtz_boost: f32,
    /// Input format to convert to: 1, 2, 3, 4, 5, 132 or 133 [default: that of the game].
    #[arg(long, value_name = "F")]
    pub(crate) new_input_format: Option<u32>,
    /// Loss of value by the move played that makes it a blunder.
    #[arg(long, value_name = "Q", requires = "deblunder_width")]
    pub(crate) deblunder_threshold: Option<f32>,
    /// Width around the threshold within which a blunder counts in part.
    #[arg(long, value_name = "Q", requires = "deblunder_threshold")]
    pub(crate) deblunder_width: Option<f32>,
    /// Decay of the short-term values of V7 per ply.
    #[arg(long, value_name = "X", default_value_t = 0.833_333_3)]
    pub(crate) st_q_theta: f32,
    /// Directory of games whose policies replace those of the frames that follow the same moves.
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Leave V6 records V6, and write older ones as V6.
    #[arg(long)]
    pub(crate) keep_v6: bool,
    /// Quirks of the lc0 rescorer to reproduce, with commas; docs/guide/rescoring.md lists them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) compat: Vec<String>,
}

/// Games -> those that break no rule.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gristmill filter games good\n  gristmill filter games good --rules policy_sum,nan\n  \
gristmill filter games good --rules=-plies_left --dry-run --json\n\n\
Games that are kept are kept byte for byte. docs/format/chess-rules.md lists the rules."
)]
pub(crate) struct Filter {
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
    /// Names of rules, with commas: `all`, `default`, or single ones; `-NAME` takes one away (write --rules=-NAME).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "default", allow_hyphen_values = true)]
    pub(crate) rules: Vec<String>,
}

/// What a split goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The name that the game had as a file, wherever it lies now.
    Name,
    /// Name of the file that it lies in, and its number there, as older versions did.
    File,
    /// The positions of the game.
    Content,
}

/// Games -> folders.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill split games parts --into train:9,test:1\n  \
gristmill split games.tar parts --into train:80,validation:10,test:10\n  \
gristmill split demos.tar.zst parts --into train:9,test:1\n  \
gristmill split games fold-2 --into train:9,val:0,test:1 --folds 5 --fold 2\n\n\
A game goes where a loader's --split puts it, by a published hash of the name that it had\n\
as a file (docs/format/split.md), so that loose, in a tar or in a pack it is on one side;\n\
a trajectory of demonstrations, loose or packed, by that of its shard and its number there.")]
pub(crate) struct Split {
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
    /// Folders below OUT and their weights, with commas: train:9,test:1.
    #[arg(long, value_name = "NAME:W", value_delimiter = ',', value_parser = share, required = true)]
    pub(crate) into: Vec<(String, u64)>,
    /// What decides where a game goes. By content a game, its copies and its mirror image go to one folder. Chess only.
    #[arg(long, value_name = "WHAT", value_enum, default_value = "name")]
    pub(crate) by: By,
    /// Deal what the first two folders have together to K folds: the second gets the fold that --fold names, the first all others.
    #[arg(long, value_name = "K", requires = "fold")]
    pub(crate) folds: Option<u64>,
    /// Which fold, from 0.
    #[arg(long, value_name = "I", requires = "folds")]
    pub(crate) fold: Option<u64>,
    /// How new shards of demonstrations hold their values [default: pickle].
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) members: Option<Written>,
    /// Make shards of each N files of demonstrations, instead of one of all files.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) files_per_shard: Option<u64>,
}
