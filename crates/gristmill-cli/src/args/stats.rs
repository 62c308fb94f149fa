//! The words of `stats` -> typed options.

use std::path::PathBuf;

use clap::Args;

use super::page::Page;
use super::reports::Reporting;

/// Paths -> distributions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill stats games\n  gristmill stats games more.tar --html report.html\n  \
gristmill stats games --json | jq .results\n  gristmill stats pack --share 1/400 --output report.json")]
pub(crate) struct Stats {
    /// Files and directories.
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) page: Page,
    #[command(flatten)]
    pub(crate) reporting: Reporting,
    /// Weight of the difference in value, in the weights of positions.
    #[arg(long, value_name = "W", default_value_t = 6.0, value_parser = positive, help_heading = "Difference focus")]
    pub(crate) q_weight: f32,
    /// Weight of the difference in policy.
    #[arg(long, value_name = "W", default_value_t = 3.5, value_parser = positive, help_heading = "Difference focus")]
    pub(crate) pol_scale: f32,
    /// Threads that read packs and logs of 2048; never changes the result [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

fn positive(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f32::is_finite(number) => Ok(number),
        _ => Err("expected a number above 0".to_owned()),
    }
}
