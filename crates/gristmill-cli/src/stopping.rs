//! Ctrl-C and SIGTERM -> a flag that running commands look at, or an end at once; so a second one. Limits end no process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use gristmill_engine::sql::ends_when;

use crate::failure::{Failure, INTERRUPTED, Result};
use crate::report;

/// Whether the process was asked to stop.
static RAISED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the command looks at the flag by itself.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// A file that grows past the limit of the process is an error of that file, and no end of the process.
pub(crate) fn survive_limits() {
    // Where the handler cannot be set, the system ends the process, as it does with others.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Listens from here on.
pub(crate) fn listen() -> Result<()> {
    let handler = || {
        if RAISED.swap(true, Ordering::Relaxed) || !WATCHED.load(Ordering::Relaxed) {
            report::failure(&Failure::Stopped(Some("stopped".to_owned())));
            std::process::exit(INTERRUPTED.into());
        }
    };
    ends_when(is_raised);
    ctrlc::set_handler(handler).map_err(|e| Failure::Failed(format!("cannot listen for Ctrl-C: {e}")))
}

/// The flag, for a command that looks at it from here on.
pub(crate) fn flag() -> Result<Arc<AtomicBool>> {
    WATCHED.store(true, Ordering::Relaxed);
    Ok(Arc::clone(&RAISED))
}

/// Whether Ctrl-C or SIGTERM came.
pub(crate) fn is_raised() -> bool {
    RAISED.load(Ordering::Relaxed)
}
