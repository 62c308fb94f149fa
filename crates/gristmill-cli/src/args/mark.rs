//! The words of `mark` -> typed options.

use std::path::PathBuf;

use clap::Args;
use gristmill_jobs::shares::Share;

use super::shares::one_of;

/// A pack -> marks beside its data.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill mark pack late --rule 'plies_left < 20 AND game.result <> 0'\n  \
gristmill mark steps hard --rule 'max_exponent >= 14 AND empty_cells < 3'\n  gristmill mark pack --list\n  \
gristmill mark pack late --update\n  \
gristmill mark pack late --rule 'plies_left < 20' --share 1/400\n  gristmill mark pack --remove late")]
pub(crate) struct Mark {
    /// Folder of the pack.
    pub(crate) pack: PathBuf,
    /// Name of the mark.
    #[arg(required_unless_present_any = ["list", "remove"], requires = "how")]
    pub(crate) name: Option<String>,
    /// Condition in SQL: over the fields of records (`best_q`, `plies_left`, ...), and `game.` with the columns of table
    /// `games` (of `runs` in a pack of 2048).
    #[arg(long, value_name = "SQL", group = "how")]
    pub(crate) rule: Option<String>,
    /// Apply the rule to share N of OF, from 1 on, of the frames, beside the pack: for jobs on many machines. `gristmill commit PACK`
    /// makes the mark of all; `gristmill shares PACK` lists them.
    #[arg(long, value_name = "N/OF", value_parser = one_of, requires = "rule", conflicts_with = "overwrite")]
    pub(crate) share: Option<Share>,
    /// Extend the mark to frames that were added to the pack since it was made.
    #[arg(long, group = "how", conflicts_with = "overwrite")]
    pub(crate) update: bool,
    /// List the marks of the pack.
    #[arg(long, conflicts_with_all = ["name", "rule", "update", "remove", "dry_run"])]
    pub(crate) list: bool,
    /// Remove the mark of this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "rule", "update"])]
    pub(crate) remove: Option<String>,
    /// Replace a mark of this name.
    #[arg(long, alias = "replace")]
    pub(crate) overwrite: bool,
    /// Worker threads; never changes a mark [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Count the frames, or print which mark would be removed, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
