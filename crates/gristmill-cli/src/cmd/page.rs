//! The page that a command was asked for -> its file. Replaces none without --overwrite, and writes none in a dry run.

use gristmill_engine::store::publish::write_whole;

use crate::args::page::Page;
use crate::failure::{Failure, Result};

/// Refuses a page that is there, before any work.
pub(super) fn check(asked: &Page) -> Result<()> {
    match asked.html.as_deref().filter(|page| page.exists() && !asked.overwrite) {
        Some(page) => Err(Failure::Usage(format!("{} is there already; --overwrite replaces it", page.display()))),
        None => Ok(()),
    }
}

/// Writes the page, where it was asked for.
pub(super) fn write(asked: &Page, html: impl FnOnce() -> String) -> Result<()> {
    match asked.html.as_deref().filter(|_| !asked.dry_run) {
        Some(page) => Ok(write_whole(page, &[html().as_bytes()])?),
        None => Ok(()),
    }
}
