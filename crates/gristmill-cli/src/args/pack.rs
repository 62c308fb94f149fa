//! The words of `pack`, `merge` and `values` -> typed options.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gristmill_jobs::shares::Share;

use super::shares::one_of;
use crate::failure::{Failure, Result};

/// A folder of games -> a pack.
#[derive(Debug, Args)]
#[command(
    override_usage = "gristmill pack [OPTIONS] IN OUT",
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong options, 3 done, but games were left out (--skip-bad makes it 0).\n\n\
Examples:\n  gristmill pack games pack\n  \
gristmill pack games pack --append\n  \
gristmill pack games s3://games/pack --append\n  \
gristmill pack games pack --resume\n  \
gristmill pack games pack --share 1/400\n  \
gristmill pack s3://games/june s3://games/pack --share 1/400\n  \
gristmill pack pack --abandon\n  \
gristmill pack logs steps --layout packed46 --shard-rows 100000000"
)]
pub(crate) struct Pack {
    /// IN: folder of data of one kind, at any depth: chess games (.gz, or tars of them); for 2048, pairs of .meta.json(.gz) and
    /// .jsonl.gz; demonstrations (shards or native files). Files of another kind are left out and reported.
    /// OUT: folder of the pack; made if it does not exist. With --abandon OUT stands alone.
    #[arg(value_name = "IN OUT", num_args = 0..)]
    places: Vec<PathBuf>,
    /// IN, as older versions had it.
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "abandon")]
    input: Option<PathBuf>,
    /// OUT, as older versions had it.
    #[arg(long, value_name = "DIR", hide = true)]
    output: Option<PathBuf>,
    /// Worker threads; never changes a byte [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Rows in each file; without it, or with 0, there is one file of all rows, or one for 4000000 positions or steps of other
    /// data.
    #[arg(long, value_name = "N")]
    pub(crate) shard_rows: Option<u64>,
    /// Form of the rows of 2048 [default: aligned48, or that of the pack that is added to].
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) layout: Option<Layout>,
    /// How steps of demonstrations are stored. Without it they are compressed, those that are packed already stay as they are, and
    /// --append stores steps as the job before it [default: zstd].
    #[arg(long, value_name = "CODEC", value_enum)]
    pub(crate) codec: Option<Codec>,
    /// Pack share N of OF, from 1 on, beside OUT: for jobs on many machines, each of which packs some. `gristmill commit OUT`
    /// makes the pack of all; `gristmill shares OUT` lists them.
    #[arg(long, value_name = "N/OF", value_parser = one_of, conflicts_with_all = ["overwrite", "resume", "append", "abandon"])]
    pub(crate) share: Option<Share>,
    /// Replace an existing pack, once the new one is complete.
    #[arg(long, conflicts_with_all = ["resume", "append"])]
    pub(crate) overwrite: bool,
    /// Resume an interrupted job.
    #[arg(long, conflicts_with = "append")]
    pub(crate) resume: bool,
    /// Undo an interrupted job: remove its staged files, and keep the pack as it was before the job.
    #[arg(long, conflicts_with_all = ["overwrite", "resume", "append"])]
    pub(crate) abandon: bool,
    /// Add games that the pack lacks. In a bucket this makes a new version of the pack; readers keep the version that they opened.
    #[arg(long)]
    pub(crate) append: bool,
    /// What to do with a game that cannot be packed. A file that cannot be read always ends the job.
    #[arg(long, value_name = "POLICY", value_enum, default_value = "skip")]
    pub(crate) on_error: OnError,
    /// Exit with 0, not 3, even if games were left out.
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// A rule that weighs chess games, for streams and loaders that sample by it; may be repeated. Names
    /// and numbers of `position_sampling`, such as "diff_focus_q_weight = 6, diff_focus_pol_scale = 2".
    #[arg(long, value_name = "RULE")]
    pub(crate) weigh: Vec<String>,
    /// Rows of 2048 between two points to which a killed job can return [default: 4000000]; refused for other data,
    /// where each file is one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_rows: Option<u64>,
    /// Print what would be packed, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What killed jobs left -> finished, or given up.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 while something is left.\n\nExamples:\n  gristmill recover pack --dry-run\n  gristmill recover pack\n  \
gristmill recover pack --abandon"
)]
pub(crate) struct Recover {
    /// Folder of a pack, or any folder that a command writes to.
    pub(crate) folder: PathBuf,
    /// Undo interrupted jobs where possible, instead of finishing them.
    #[arg(long)]
    pub(crate) abandon: bool,
    /// Print what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What killed jobs left in a bucket, and beside it of shares; files of older versions of a pack there -> removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill clean s3://games/june --dry-run\n  gristmill clean s3://games/june")]
pub(crate) struct Clean {
    /// URL of the pack, folder or report that the jobs wrote.
    #[arg(value_name = "URL")]
    pub(crate) place: PathBuf,
    /// The jobs are dead, although they said within the last ten minutes that they live.
    #[arg(long)]
    pub(crate) dead: bool,
    /// Print what would be removed, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Packs -> one pack.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill merge monday tuesday wednesday --out week\n  \
gristmill merge a b --out ab --delete-inputs")]
pub(crate) struct Merge {
    /// The packs; their rows follow in this order.
    pub(crate) packs: Vec<PathBuf>,
    /// The first pack, as older versions had it.
    #[arg(long, value_name = "DIR", requires = "right", conflicts_with = "packs", hide = true)]
    pub(crate) left: Option<PathBuf>,
    /// The second pack, as older versions had it.
    #[arg(long, value_name = "DIR", requires = "left", conflicts_with = "packs", hide = true)]
    pub(crate) right: Option<PathBuf>,
    /// Folder of the new pack; made if it does not exist.
    #[arg(long, alias = "output", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Worker threads; never changes a byte [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Rows in each file; without it, or with 0, there is one file of all rows.
    #[arg(long, value_name = "N")]
    pub(crate) shard_rows: Option<u64>,
    /// Form of the rows.
    #[arg(long, value_name = "FORM", value_enum, default_value = "aligned48")]
    pub(crate) layout: Layout,
    /// Replace the pack in the output, once the new one is complete.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Delete the input packs, once the new pack is on disk and was read back.
    #[arg(long)]
    pub(crate) delete_inputs: bool,
    /// Print what would be merged, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A pack -> rewards and returns of its rows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill values pack\n  gristmill values pack --gamma 0.99 --overwrite\n  \
gristmill verify pack")]
pub(crate) struct Values {
    /// Folder of the pack, of 48-byte or 46-byte rows.
    pub(crate) pack: PathBuf,
    /// Folder of the values; made if it does not exist [default: the pack].
    #[arg(long, alias = "output", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Discount of the next reward, 0 to 1.
    #[arg(long, value_name = "G", default_value_t = 0.997)]
    pub(crate) gamma: f64,
    /// Factor of reward_scaled; returns use unscaled rewards.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(crate) reward_scale: f64,
    /// Fraction of the return itself in return_scaled, 0 to 1.
    #[arg(long, value_name = "E", default_value_t = 0.001)]
    pub(crate) epsilon: f64,
    /// Worker threads; never changes a byte [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Replace existing values, once the new ones are complete.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Check every row, print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A pack -> checksums of its rows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill checksum pack\n  gristmill checksum pack --overwrite")]
pub(crate) struct Checksum {
    /// Folder of the pack of rows. Packs of whole games have checksums of every game within.
    pub(crate) pack: PathBuf,
    /// Replace existing checksums: for rows that were changed on purpose.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Read every row, print which checksums would be written, and write none.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Pack {
    /// IN, unless a job is given up, and OUT, from words that say them in their order or by name.
    ///
    /// Errors: `Usage` for too few of them, or too many.
    pub(crate) fn places(&self) -> Result<(Option<&Path>, &Path)> {
        let mut said = self.places.iter();
        let input = if self.abandon { None } else { self.input.as_ref().or_else(|| said.next()) };
        let output = self.output.as_ref().or_else(|| said.next());
        match (input, output, said.next()) {
            (input, Some(output), None) if input.is_some() != self.abandon => {
                Ok((input.map(PathBuf::as_path), output))
            }
            _ => Err(Failure::Usage(
                "expected the folder of the games and that of the pack: gristmill pack IN OUT; with --abandon that of the \
                 pack alone"
                    .to_owned(),
            )),
        }
    }
}

/// Forms of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// 48 bytes, as NumPy aligns them.
    #[value(name = "aligned48")]
    Aligned,
    /// 46 bytes, byte for byte as existing packs have them.
    #[value(name = "packed46")]
    Packed,
}

/// How steps of demonstrations are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    /// Compressed by Zstandard.
    Zstd,
    /// As they are: several times as large, and read without unpacking.
    Raw,
}

/// What to do about a game that cannot be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// Leave it out; the manifest says so.
    Skip,
    /// Leave it out, and list it in quarantine.jsonl of the pack.
    Quarantine,
    /// End with an error; --resume continues from there.
    Raise,
}
