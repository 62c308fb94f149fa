//! Options of `tokenizer`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gristmill_format::g2048::encode::MAX_BINS;
use gristmill_jobs::shares::Share;

use super::shares::one_of;

#[derive(Debug, Subcommand)]
pub(crate) enum Tokenizer {
    /// Fit the bins of a tokenizer (advantage, version 2) to the rows of 2048 packs.
    Fit(FitTokenizer),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill tokenizer fit pack tokenizer.json\n  \
gristmill tokenizer fit pack tokenizer.json --num-bins 64 --where \"max_score > 400000\" --summary-out fit.json\n  \
gristmill tokenizer fit pack1 pack2 tokenizer.json\n  \
gristmill tokenizer fit pack1 pack2 tokenizer.json --share 1/400")]
pub(crate) struct FitTokenizer {
    /// Folders of one or more packs, then the file to write.
    #[arg(value_name = "PACK... OUT", required = true)]
    places: Vec<PathBuf>,
    /// OUT, as older versions had it.
    #[arg(long, value_name = "FILE", hide = true)]
    output: Option<PathBuf>,
    /// Bins of each kind of valuation, 1 to 65533.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = num_bins)]
    pub(crate) num_bins: usize,
    /// The valuations to fit, with commas between them; rows of others are left out, and encoding them is refused later
    /// [default: search,tuple10,tuple11].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) valuations: Option<Vec<String>>,
    /// Search branches with a lower advantage over board_eval are failures, in thousandths.
    #[arg(long, value_name = "N", default_value_t = -1500, allow_negative_numbers = true)]
    pub(crate) search_failure_cutoff: i64,
    /// Tuple values up to this are failures, differences up to this are ties.
    #[arg(long, value_name = "X", default_value_t = 1e-9)]
    pub(crate) zero_tolerance: f64,
    /// Take only the runs that this SQL condition on table runs names, such as "max_score > 400000".
    #[arg(long = "where", value_name = "SQL")]
    pub(crate) condition: Option<String>,
    /// Write what the fit was made of into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) summary_out: Option<PathBuf>,
    /// Spaces of indent in the file; 0 for one line.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=16))]
    pub(crate) indent: u8,
    /// Count share N of OF, from 1 on, of the rows, beside OUT: for jobs on many machines. `gristmill commit OUT` makes the tokenizer of
    /// all rows; `gristmill shares OUT` lists the shares.
    #[arg(long, value_name = "N/OF", value_parser = one_of, conflicts_with_all = ["overwrite", "summary_out"])]
    pub(crate) share: Option<Share>,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Fit, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not show how far it is.
    #[arg(long, hide = true)]
    pub(crate) no_progress: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

impl FitTokenizer {
    /// The packs, and the file to write; none where one of both is missing.
    pub(crate) fn places(&self) -> Option<(&[PathBuf], &Path)> {
        let (packs, out) = match &self.output {
            Some(out) => (self.places.as_slice(), out),
            None => self.places.split_last().map(|(out, packs)| (packs, out))?,
        };
        (!packs.is_empty()).then_some((packs, out))
    }
}

fn num_bins(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_BINS).contains(number));
    number.ok_or_else(|| format!("expected 1 to {MAX_BINS} bins"))
}
