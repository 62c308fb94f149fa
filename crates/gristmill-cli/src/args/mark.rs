//! The words of `mark` -> typed options.

use std::path::PathBuf;

use clap::Args;

/// A pack -> marks beside its data.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill mark pack late --rule 'plies_left < 20 AND game.result <> 0'\n  \
gristmill mark steps hard --rule 'max_exponent >= 14 AND empty_cells < 3'\n  gristmill mark pack --list\n  \
gristmill mark pack late --update\n  gristmill mark pack --remove late")]
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
    /// Extend the mark by the frames that were added to the pack since.
    #[arg(long, group = "how", conflicts_with = "replace")]
    pub(crate) update: bool,
    /// List the marks of the pack.
    #[arg(long, conflicts_with_all = ["name", "rule", "update", "remove", "dry_run"])]
    pub(crate) list: bool,
    /// Remove the mark of this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "rule", "update", "dry_run"])]
    pub(crate) remove: Option<String>,
    /// Replace a mark of this name.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Worker threads; never changes a mark [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Count the frames, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
