//! The output of a job on this machine -> its place in a bucket. Shows a line of progress.

use std::sync::atomic::AtomicBool;

use gristmill_engine::Error;
use gristmill_jobs::delivery::Delivery;

use crate::failure::{Failure, Result};
use crate::report;

/// Sends the output to its place, and returns the name of the place. `again` tells the user how to resume after Ctrl-C.
pub(super) fn deliver(delivery: Delivery, stop: &AtomicBool, json: bool, again: &str) -> Result<String> {
    let mut bar = None;
    let delivered = delivery.deliver(stop, &mut |done, all| {
        bar.get_or_insert_with(|| report::Progress::new(all, "bytes sent", !json)).at(done, "");
    });
    if let Some(bar) = bar {
        bar.end();
    }
    delivered.map_err(|e| match e {
        Error::Stopped => Failure::stopped(again),
        e => e.into(),
    })
}
