//! Folders of a directory as buckets of an S3 server on loopback, for tests and benches. Prints its address on the first line.
//! Each line of standard input is an order in JSON (a fault, counts, all faults away), answered by one line; its end ends the server.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, Error, Result, Write};
use std::time::Duration;

use gristmill_faultserver::{Network, start};

const USAGE: &str = "gristmill-faultserver DIRECTORY [--anonymous] [--latency-ms N] [--megabytes-per-second N]
The folders of DIRECTORY are buckets. The key is `test`, the secret `testtest`, unless requests are anonymous.";

fn main() -> Result<()> {
    let usage = || Error::other(USAGE);
    let (mut folder, mut network) = (None, Network::default());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(usage);
        match word.as_str() {
            "--anonymous" => network.anonymous = true,
            "--latency-ms" => network.latency = Duration::from_millis(number()?),
            "--megabytes-per-second" => network.rate = number()? * 1_000_000,
            _ if folder.is_none() && !word.starts_with('-') => folder = Some(word),
            _ => return Err(usage()),
        }
    }
    let server = start(folder.ok_or_else(usage)?.into(), network)?;
    say(&server.address)?;
    for line in std::io::stdin().lock().lines() {
        say(&server.obey(&line?))?;
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
