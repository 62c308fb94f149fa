//! The options of the commands that never lose a place: `verify-run` and `xray`.

use std::path::PathBuf;

use clap::Args;

/// `verify-run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill verify-run run.ledger --pack pack\n  \
gristmill verify-run ledgers --pack pack --json | jq .outputs[0].rows")]
pub(crate) struct VerifyRun {
    /// Ledgers, each with those of all ranks beside it (LEDGER.R-of-N), or folders of them.
    #[arg(required = true, value_name = "LEDGER")]
    pub(crate) ledgers: Vec<PathBuf>,
    /// The pack that the run read: its rows are held against the digests, and those that lack are named.
    #[arg(long, value_name = "PACK")]
    pub(crate) pack: Option<PathBuf>,
    /// Name at most so many rows; all are counted.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max_rows: usize,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `xray`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill xray --state run.json --pack pack --batch 18342\n  \
gristmill xray --state run.json --pack pack --batch 18342 --row 7 --json")]
pub(crate) struct Xray {
    /// A state that a loader of the rows of a pack saved, at whatever batch.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: PathBuf,
    /// The pack that the rows are of.
    #[arg(long, value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// The batch, past or future.
    #[arg(long, value_name = "N")]
    pub(crate) batch: u64,
    /// One row of it, from 0 [default: all].
    #[arg(long, value_name = "R")]
    pub(crate) row: Option<usize>,
    /// Count rows as this rank has them [default: as all ranks together].
    #[arg(long, value_name = "R", requires = "world_size")]
    pub(crate) rank: Option<u64>,
    /// How many ranks share each batch.
    #[arg(long, value_name = "N", requires = "rank")]
    pub(crate) world_size: Option<u64>,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
