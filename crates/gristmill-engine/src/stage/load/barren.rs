//! A log whose first scan found no game -> that there is none, and what lies there instead.
//! Opens nothing: containers were opened by whoever draws from them. Says nothing while a file still grows.

use std::path::Path;

use super::SourceLog;
use crate::holdings::Holdings;

impl SourceLog {
    /// Whether the first scan is done and no file of it holds a game, as far as files were opened.
    pub fn is_barren(&self) -> bool {
        let Some(entries) = self.initial() else { return false };
        let holds = |id, key: &str| Self::holds_one(key) || self.len_of(false, id).is_some_and(|len| len > 0);
        self.is_listed() && !entries.iter().any(|entry| holds(entry.id, entry.key()))
    }

    /// What lies where no game was found, and what takes it.
    pub fn instead(&self) -> String {
        let (root, faults) = (self.root(), self.faults().faults);
        let holds = Holdings::of(Path::new(&root));
        let told = match holds.has_games() {
            true => "none of its files could be opened".to_owned(),
            false => format!("it {}", holds.told(Path::new(&root))),
        };
        let latest = faults.messages().last().map(|fault| format!("; the latest fault: {fault}"));
        format!("no games of chess in {root}: {told}{}", latest.unwrap_or_default())
    }

    /// What lies there, where it is something else than games of chess: what is added to an error about chunks that are all bad.
    pub fn else_here(&self) -> Option<String> {
        let root = self.root();
        let holds = Holdings::of(Path::new(&root));
        (!holds.has_games()).then(|| format!("{root} {}", holds.told(Path::new(&root))))
    }
}
