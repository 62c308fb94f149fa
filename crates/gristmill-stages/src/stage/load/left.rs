//! Files that were deleted -> reported to what numbers files, and forgotten once nobody needs them any more.
//! Decides neither; a file of the first scan keeps its entry.

use super::log::{SourceLog, lock};

impl SourceLog {
    /// Whether a file that is not under its name may have been moved, of which nobody knows yet.
    pub fn may_have_moved(&self, name: &str) -> bool {
        self.store.readings().may_have_moved(name)
    }

    /// Every reader has the arrivals before place `cursor`.
    pub fn pass(&self, cursor: usize) {
        let mut state = lock(&self.state);
        let passed = cursor.saturating_sub(state.passed).min(state.arrivals.len());
        state.arrivals.drain(..passed);
        state.passed += passed;
    }

    /// What happened since the last call, in order: `true` with the id of a file that was deleted or written over, `false` with
    /// that of one that is there (again).
    pub fn left(&self) -> Vec<(u64, bool)> {
        std::mem::take(&mut lock(&self.state).left)
    }

    /// A file was not under its name when it was to be opened: the search reports when it finds it again.
    pub fn gone(&self, id: u64) {
        if let Some(file) = self.stat(id) {
            self.store.readings().gone(id ^ self.first_id(), file.name);
        }
    }

    /// Forgets a file that has left.
    pub fn forget(&self, id: u64) {
        if let Some(file) = self.stat(id) {
            self.store.readings().forget(id ^ self.first_id(), &file);
        }
        self.moves.forget(id);
        lock(&self.state).later.remove(&id);
        lock(&self.opened).remove(&id);
        lock(&self.lengths).remove(&(false, id));
        self.digests.forget((false, id));
    }

    /// Forgets what was held, by its lasting id.
    pub fn forget_held(&self, id: u64) {
        lock(&self.held).remove(&id);
        lock(&self.lengths).remove(&(true, id));
        self.digests.forget((true, id));
    }
}
