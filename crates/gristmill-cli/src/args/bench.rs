//! The words of `bench` -> typed options: what is fed, with how many threads, and where a page goes.

use clap::Args;

use super::page::Page;
use super::river::River;

/// A configuration, directories or a pack -> what this machine makes of them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gristmill bench games --batches 200\n  gristmill bench chess-pack --html bench.html\n  \
gristmill bench games --threads 1,2,8 --batch-size 1024 --json | jq .bottleneck\n  gristmill bench loader.toml"
)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) river: River,
    /// Numbers of threads to try, comma-separated [default: 1, 2, 4, ... up to the cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_delimiter = ',', value_parser = threads)]
    pub(crate) threads: Vec<usize>,
    /// Batches in each run; the first is not counted [default: those of a second].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) batches: Option<u64>,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err("expected numbers of threads from 1 to 256, such as 1,2,8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_a_few() {
        assert_eq!((threads("1"), threads("256")), (Ok(1), Ok(256)));
        assert!(["0", "257", "-1", "two", ""].into_iter().all(|text| threads(text).is_err()));
    }
}
