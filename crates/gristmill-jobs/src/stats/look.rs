//! A file that is not open -> what is in it, where it is a log of 2048: counted on any thread, ahead of the reader.
//! Other files are left alone: some are large, and read whole.

use std::sync::{Mutex, PoisonError};

use gristmill_format::g2048::log::STEPS_SUFFIX;
use gristmill_format::source::Chunk;

use super::g2048::LogTally;
use crate::files::{Closed, Found};

/// What a log of 2048 calls its format.
const LOG: &str = "2048.jsonl.gz";

/// Buffers of threads that read logs.
pub(super) type Hands = Mutex<Vec<(Vec<u8>, Chunk)>>;

/// What a thread made of a file.
pub(super) enum Looked {
    /// All that is in a log.
    Log(Box<LogTally>),
    /// It is a log that cannot be read or decoded.
    BadLog(gristmill_format::Error),
    /// Nothing: it is no log.
    Other,
}

/// Looks at a file, on any thread.
pub(super) fn look(file: &Closed, hands: &Hands) -> Looked {
    let file = match file.named(STEPS_SUFFIX).then(|| file.open()) {
        Some(Found::File(file)) if file.source.describe().format == LOG && file.source.len() == 1 => file,
        _ => return Looked::Other,
    };
    let waiting = || hands.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut stored, mut chunk) = waiting().pop().unwrap_or_default();
    let decoded = file.fetch(0, &mut stored).and_then(|()| file.decode(0, &stored, &mut chunk));
    let looked = match decoded {
        Ok(()) => Looked::Log(Box::new(LogTally::new(&file.path, stored.len() as u64, &chunk))),
        Err(e) => Looked::BadLog(e),
    };
    waiting().push((stored, chunk));
    looked
}
