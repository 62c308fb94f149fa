//! A loader of rows that runs -> its next batch, which counts as delivered at once or when it is used.

use std::sync::PoisonError;
use std::time::Duration;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::handoff::Taken;

use super::{IndexLoader, SAMPLE, totals};
use crate::pipeline::loader::Next;

impl IndexLoader {
    /// The next batch, waiting up to `wait` (for ever when `None`); starts the loader if needed.
    ///
    /// Errors: `UnknownAlias` for any alias but the empty one, `Stopped`, `Forked`; `Format`, with file and row, in place
    /// of a batch that has a row which cannot be encoded.
    pub fn next(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        self.take(alias, wait, true)
    }

    /// [`IndexLoader::next`]; the batch counts as delivered `at_once`, or when [`IndexLoader::count`] says so.
    pub fn take(&self, alias: &str, wait: Option<Duration>, at_once: bool) -> Result<Next> {
        self.known(alias)?;
        let running = self.running()?;
        let taken = running.feed.next(wait, at_once);
        let mut rates = running.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.sample_after(SAMPLE, || totals(&running.feed));
        drop(rates);
        match taken {
            Taken::Item(Ok(batch)) => Ok(Next::Batch(batch)),
            Taken::Item(Err(error)) => Err(error),
            Taken::Nothing => Ok(Next::Pending),
            Taken::Closed if self.control().stopped => Err(Error::Stopped),
            Taken::Closed => {
                let is_over = running.feed.uncounted().is_empty();
                if let (Some(book), Some(batches), true) = (running.feed.book(), running.feed.batches(), is_over) {
                    book.ended("", batches)?;
                }
                Ok(Next::End)
            }
        }
    }

    /// Counts the oldest batch as delivered that was taken and does not count yet; nothing where there is none.
    ///
    /// Errors: `Path` where the ledger cannot be written; it does not count then.
    pub fn count(&self) -> Result<()> {
        self.running.get().map_or(Ok(()), |running| running.feed.count())
    }
}
