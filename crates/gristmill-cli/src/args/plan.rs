//! The words of `plan` -> typed options: what is fed, and how good its shuffle has to be.

use clap::Args;
use gristmill_engine::config::Shuffle;
use gristmill_plans::certificate::Level;

use super::elsewhere::bytes;
use super::page::Page;
use super::places::shuffle;
use super::river::River;

/// A configuration, directories or a pack -> a certificate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill plan games --pool 500000 --reservoir 500000 --sampling-rate 0.03\n  \
gristmill plan loader.toml --require fair\n  gristmill plan chess-pack --batch-size 4096 --shuffle blocks:4096,64 --html plan.html\n  \
gristmill plan 2048-pack --where 'max_score > 20000' --json | jq .figures\n  \
gristmill plan s3://games/packs/june --batch-size 4096 --cache-limit 500G --price-get 0.0004 --price-gb 0.09")]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) river: River,
    /// The order of rows: `rows` (any anywhere), `off` (as stored), or `blocks:ROWS,BLOCKS` [default: rows].
    #[arg(long, value_name = "HOW", value_parser = shuffle, help_heading = "Of a pack")]
    pub(crate) shuffle: Option<Shuffle>,
    /// The condition on games that selects the rows, such as 'plies > 20' [default: all].
    #[arg(long = "where", value_name = "SQL", help_heading = "Of a pack")]
    pub(crate) condition: Option<String>,
    /// Batches run on across the ends of epochs.
    #[arg(long, help_heading = "Of a pack")]
    pub(crate) joined: bool,
    #[command(flatten)]
    pub(crate) fetched: Fetched,
    /// Only this output of a stream [default: all].
    #[arg(long, value_name = "ALIAS")]
    pub(crate) output: Option<String>,
    /// Exit with 1 unless the shuffle is at least this good: none, weak, fair or good.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) require: Option<Level>,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Print one line of JSON on stdout; several outputs are a list.
    #[arg(long)]
    pub(crate) json: bool,
}

/// On which terms a pack in a bucket is fetched.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Fetched {
    /// The price of 1000 requests, such as 0.0004 [default: none, and no money is said].
    #[arg(long, value_name = "MONEY", value_parser = money, help_heading = "Of a pack in a bucket")]
    pub(crate) price_get: Option<f64>,
    /// The price of 1e9 bytes that leave the bucket [default: none].
    #[arg(long, value_name = "MONEY", value_parser = money, help_heading = "Of a pack in a bucket")]
    pub(crate) price_gb: Option<f64>,
    /// Milliseconds until a request begins to be answered [default: 50].
    #[arg(long, value_name = "MS", value_parser = money, help_heading = "Of a pack in a bucket")]
    pub(crate) latency: Option<f64>,
    /// Bytes a second that the network gives, such as 500M [default: 100000000].
    #[arg(long, value_name = "N", value_parser = bytes, help_heading = "Of a pack in a bucket")]
    pub(crate) bandwidth: Option<u64>,
}

/// A number that is not negative.
fn money(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number, 0 or more".to_owned())
}

/// A level by its name.
pub(crate) fn level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|_| "expected none, weak, fair or good".to_owned())
}
