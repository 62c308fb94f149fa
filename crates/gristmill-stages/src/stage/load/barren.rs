//! A log whose first scan found no game -> that there is none.
//! Opens nothing: the drawer opened the containers. Says nothing while a file still grows.

use super::SourceLog;

impl SourceLog {
    /// Whether the first scan is done and no file of it holds a game, as far as files were opened.
    pub fn is_barren(&self) -> bool {
        self.is_listed() && self.holds_none()
    }

    /// Whether no file that the first scan gave holds a game, as far as files were opened.
    pub fn holds_none(&self) -> bool {
        let Some(entries) = self.initial() else { return false };
        let holds = |id, key: &str| Self::holds_one(key) || self.len_of(false, id).is_some_and(|len| len > 0);
        !entries.iter().any(|entry| holds(entry.id, entry.key()))
    }
}
