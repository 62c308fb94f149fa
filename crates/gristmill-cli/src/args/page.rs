//! The words of commands that can write a page -> typed options: its file, and whether it may be written.

use std::path::PathBuf;

use clap::Args;

/// The page that a command writes beside its text.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Also write a page, with plots: one file, which needs no network.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Replace an existing page.
    #[arg(long, requires = "html")]
    pub(crate) overwrite: bool,
    /// Show everything and write no page.
    #[arg(long, requires = "html")]
    pub(crate) dry_run: bool,
}
