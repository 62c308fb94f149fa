//! Ctrl-C and SIGTERM -> a flag that running commands look at; a second one ends the process at once. Limits end no process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::pack::metadata::ends_when;

use crate::failure::{Failure, Result};

/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// A file that grows past the limit of the process is an error of that file, and no end of the process.
pub(crate) fn survive_limits() {
    // Where the handler cannot be had, the system ends the process, as it does with others.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// The flag. To be called once in a process.
pub(crate) fn flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let handler = move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    };
    ctrlc::set_handler(handler).map_err(|e| Failure::Failed(format!("cannot listen for Ctrl-C: {e}")))?;
    let seen = Arc::clone(&flag);
    ends_when(move || seen.load(Ordering::Relaxed));
    Ok(flag)
}
