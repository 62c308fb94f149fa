//! A file that is not open -> what is in it, where it is a log of 2048: counted on any thread, ahead of the reader.
//! Other files are left alone: some are large, and read whole.

use gristmill_format::g2048::KIND;
use gristmill_format::g2048::log::STEPS_SUFFIX;
use gristmill_format::source::Chunk;

use super::g2048::LogTally;
use crate::files::{Closed, Found};
use crate::in_order;

/// Buffers of threads that read logs.
pub(super) type Hands = in_order::Hands<(Vec<u8>, Chunk)>;

/// What a thread made of a file.
pub(super) enum Looked {
    /// All that is in a log, or why it cannot be read or decoded.
    Log(gristmill_format::Result<Box<LogTally>>),
    /// Nothing: it is no log.
    Other,
}

/// Looks at a file, on any thread.
pub(super) fn look(file: &Closed, hands: &Hands) -> Looked {
    let file = match file.named(STEPS_SUFFIX).then(|| file.open()) {
        Some(Found::File(file)) if file.kind.name() == KIND && file.source.len() == 1 => file,
        _ => return Looked::Other,
    };
    Looked::Log(hands.with(|(stored, chunk)| {
        file.fetch(0, stored).and_then(|()| file.decode(0, stored, chunk))?;
        Ok(Box::new(LogTally::new(&file.path, stored.len() as u64, chunk)))
    }))
}
