//! Memory of large results that Python let go of -> memory for the results that follow: touching new memory costs several times what
//! filling it does. At most two pieces wait. Nobody waits for a lock, so a process that was forked off goes without.

use std::sync::Mutex;

/// Results of fewer bytes come from the allocator, and so do those of more.
pub(crate) const FROM: usize = 256 << 10;
const TO: usize = 32 << 20;

/// Pieces that wait.
const MOST: usize = 2;

static WAITING: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// `len` bytes, which may be those of an earlier result; `None` where none of about that size waits.
pub(crate) fn take(len: usize) -> Option<Vec<u8>> {
    if !(FROM..=TO).contains(&len) {
        return None;
    }
    let mut waiting = WAITING.try_lock().ok()?;
    let at = waiting.iter().position(|piece| (len..=len.saturating_mul(2)).contains(&piece.capacity()))?;
    let mut piece = waiting.swap_remove(at);
    drop(waiting);
    piece.resize(len, 0);
    Some(piece)
}

/// Keeps the memory of a result for one that follows; the piece that waited longest goes where there are too many.
pub(crate) fn give(piece: Vec<u8>) {
    if !(FROM..=TO).contains(&piece.capacity()) {
        return;
    }
    let Ok(mut waiting) = WAITING.try_lock() else { return };
    let oldest = (waiting.len() == MOST).then(|| waiting.remove(0));
    waiting.push(piece);
    drop(waiting);
    drop(oldest);
}
