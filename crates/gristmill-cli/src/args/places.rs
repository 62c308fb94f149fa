//! The options of the commands that never lose a place: `verify-run` and `xray`.

use std::path::PathBuf;

use clap::Args;

/// `verify-run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill verify-run run.ledger --pack pack\n  \
gristmill verify-run ledgers --pack pack --json | jq .outputs[0].rows\n  \
gristmill verify-run run.ledger --config run.toml")]
pub(crate) struct VerifyRun {
    /// Ledgers, each with those of all ranks beside it (LEDGER.R-of-N), or folders of them.
    #[arg(required = true, value_name = "LEDGER")]
    pub(crate) ledgers: Vec<PathBuf>,
    /// The pack that the run read: its rows are compared with the digests, and missing rows are named.
    #[arg(long, value_name = "PACK")]
    pub(crate) pack: Option<PathBuf>,
    /// The configuration (.toml, .textproto) of the stream that the run read, journal included: it is run again without its
    /// bytes, its frames are held against the digests, and those that lack are named.
    #[arg(long, value_name = "FILE", conflicts_with = "pack")]
    pub(crate) config: Option<PathBuf>,
    /// Name at most N rows; all are counted.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max_rows: usize,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `xray`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill xray --state run.json --pack pack --batch 18342\n  \
gristmill xray --state run.json --pack pack --batch 18342 --row 7 --json\n  \
gristmill xray --config run.toml --batch 18342\n  \
gristmill xray --config run.toml --state run.json --batch 20000 --survey")]
pub(crate) struct Xray {
    /// What a loader saved: of a pack at whatever batch; of a stream at or before the batch, a file, or the folder of all
    /// ranks [default, of streams: their beginning].
    #[arg(long, value_name = "PATH", required_unless_present = "config")]
    pub(crate) state: Option<PathBuf>,
    /// The pack that the rows are of.
    #[arg(long, value_name = "PACK", required_unless_present = "config")]
    pub(crate) pack: Option<PathBuf>,
    /// The configuration (.toml, .textproto) of the stream that the frames are of; `feed --dry-run` prints one.
    #[arg(long, value_name = "FILE", conflicts_with = "pack")]
    pub(crate) config: Option<PathBuf>,
    /// The output of that stream [default: the only one].
    #[arg(long, value_name = "ALIAS", requires = "config")]
    pub(crate) output: Option<String>,
    /// Read games of the stream whose frames were never counted, instead of naming them; the side index keeps the counts.
    #[arg(long, requires = "config")]
    pub(crate) survey: bool,
    /// Do not store the counts of --survey.
    #[arg(long, requires = "survey")]
    pub(crate) dry_run: bool,
    /// The batch, past or future.
    #[arg(long, value_name = "N")]
    pub(crate) batch: u64,
    /// One row of it, from 0 [default: all].
    #[arg(long, value_name = "R")]
    pub(crate) row: Option<usize>,
    /// Number rows as on this rank [default: as over all ranks].
    #[arg(long, value_name = "R", requires = "world_size")]
    pub(crate) rank: Option<u64>,
    /// How many ranks share each batch.
    #[arg(long, value_name = "N", requires = "rank")]
    pub(crate) world_size: Option<u64>,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
