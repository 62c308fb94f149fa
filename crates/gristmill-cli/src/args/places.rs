//! The options of the commands that never lose a place: `verify-run`, `xray` and `when`.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use gristmill_engine::config::Shuffle;
use gristmill_engine::stage::mix::Exhausted;

use super::river::LastBatch;

/// `verify-run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill verify-run run.ledger --pack pack\n  \
gristmill verify-run ledgers --pack pack --json | jq .outputs[0].rows\n  \
gristmill verify-run run.ledger --config run.toml")]
pub(crate) struct VerifyRun {
    /// Ledgers, each with those of all ranks beside it (LEDGER.R-of-N), folders of them, or URLs that a run wrote its ledgers to.
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

/// `when`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill when 17 --pack pack --state run.json\n  \
gristmill when 17 --ply 3 --pack pack --state run.json --epochs 0..10 --json\n  \
gristmill when training.17.gz --pack pack --seed 1 --batch-size 1024 --world-size 4\n  \
gristmill when 17 --pack new --pack old --source 1 --weights 3,1 --seed 1 --batch-size 1024")]
pub(crate) struct When {
    /// The game: its id in the pack, or the name of the file or member that was packed.
    #[arg(value_name = "GAME")]
    pub(crate) game: String,
    /// One position of it, from 0 [default: all].
    #[arg(long, value_name = "N")]
    pub(crate) ply: Option<u64>,
    /// The pack that the loader feeds; where it mixes several, each in its order.
    #[arg(long, value_name = "PACK", required = true)]
    pub(crate) pack: Vec<PathBuf>,
    /// Of several packs, the one that has the game, from 0.
    #[arg(long, value_name = "N")]
    pub(crate) source: Option<usize>,
    /// What a loader of the run saved, at whatever batch: says how rows were selected and ordered, and what was fed so far.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["seed", "batch_size", "shuffle", "condition", "joined", "last_batch", "weights", "exhausted", "nominal_length"])]
    pub(crate) state: Option<PathBuf>,
    /// Without a state: the seed of the loader.
    #[arg(long, value_name = "S", required_unless_present = "state")]
    pub(crate) seed: Option<u64>,
    /// Without a state: rows of a batch, of all ranks together.
    #[arg(long, value_name = "N", required_unless_present = "state")]
    pub(crate) batch_size: Option<usize>,
    /// Without a state: the order of rows: `rows` (any anywhere), `off` (as stored), or `blocks:ROWS,BLOCKS` [default: rows].
    #[arg(long, value_name = "HOW", value_parser = shuffle)]
    pub(crate) shuffle: Option<Shuffle>,
    /// Without a state: the condition on games that selected the rows, such as 'plies > 20' [default: all].
    #[arg(long = "where", value_name = "SQL")]
    pub(crate) condition: Option<String>,
    /// Without a state: batches run on across the ends of passes.
    #[arg(long)]
    pub(crate) joined: bool,
    /// Without a state: what becomes of the rows left over at the end of a pass [default: keep].
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) last_batch: Option<LastBatch>,
    /// Without a state: how often each of several packs is chosen [default: each alike].
    #[arg(long, value_name = "W,...", value_delimiter = ',')]
    pub(crate) weights: Vec<f64>,
    /// Without a state: what happens when one of several packs has given all its rows [default: restart].
    #[arg(long, value_name = "WHAT", value_parser = exhausted)]
    pub(crate) exhausted: Option<Exhausted>,
    /// Without a state: rows of a pass over several packs.
    #[arg(long, value_name = "N")]
    pub(crate) nominal_length: Option<u64>,
    /// Passes, from 0, the end not included [default: that of the next batch, and the one after it].
    #[arg(long, value_name = "A..B", value_parser = passes)]
    pub(crate) epochs: Option<Range<u64>>,
    /// How many ranks share each batch: name the rank of each row, and number rows as it does.
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<u64>,
    /// Only rows of this rank, from 0.
    #[arg(long, value_name = "R", requires = "world_size")]
    pub(crate) rank: Option<u64>,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rows`, `off` or `blocks:ROWS,BLOCKS`.
pub(crate) fn shuffle(text: &str) -> Result<Shuffle, String> {
    let blocks = |text: &str| {
        let (rows, blocks) = text.strip_prefix("blocks:")?.split_once(',')?;
        Some(Shuffle::Blocks { rows: rows.parse().ok()?, blocks: blocks.parse().ok()? })
    };
    match text {
        "rows" => Ok(Shuffle::Rows),
        "off" => Ok(Shuffle::Off),
        _ => blocks(text).ok_or_else(|| "expected rows, off or blocks:ROWS,BLOCKS, such as blocks:4096,8".to_owned()),
    }
}

/// `restart`, `stop` or `drop`.
fn exhausted(text: &str) -> Result<Exhausted, String> {
    match text {
        "restart" => Ok(Exhausted::Restart),
        "stop" => Ok(Exhausted::Stop),
        "drop" => Ok(Exhausted::Drop),
        _ => Err("expected restart, stop or drop".to_owned()),
    }
}

/// `A..B`.
fn passes(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    let expected = "expected A..B, such as 0..3 for the first three passes";
    range.filter(|range| range.start < range.end).ok_or_else(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_passes_are_read() {
        assert_eq!(shuffle("blocks:16,3"), Ok(Shuffle::Blocks { rows: 16, blocks: 3 }));
        assert_eq!((shuffle("rows"), shuffle("off")), (Ok(Shuffle::Rows), Ok(Shuffle::Off)));
        assert!(["", "blocks", "blocks:1", "blocks:a,b"].into_iter().all(|text| shuffle(text).is_err()));
        assert_eq!(passes("0..3"), Ok(0..3));
        assert!(["3", "3..3", "4..3", "-1..2", "a..b"].into_iter().all(|text| passes(text).is_err()));
    }
}
