//! Files that have left the disk -> forgotten, once no window, reservoir or state that counts can reach them.
//! What is there stays known, since it would be new again; what comes back later is.

use std::sync::{Arc, MutexGuard, PoisonError};

use gristmill_format::Kind;
use gristmill_runtime::calendar::utc;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::{Spill, Token};
use gristmill_stages::stage::load::Arrival;

use crate::pipeline::chain::Chain;
use crate::pipeline::draw::recorded::record;
use crate::pipeline::draw::roster::{Names, Roster};
use crate::pipeline::resume::needed::oldest;
use crate::pipeline::resume::state::LoaderState;
use crate::pipeline::watch::metrics::Observer;

/// Whether an error of opening says that the file has left, or another has its name.
pub(in crate::pipeline) fn has_left(error: &Error) -> bool {
    matches!(error, Error::Format(error) if error.kind() == Kind::Io(std::io::ErrorKind::NotFound))
}

impl Roster {
    /// Notes that a recorded file, which the first scan found, cannot be opened: it has left since, or was written over.
    pub(in crate::pipeline) fn lose(&self, id: u64, error: &Error) {
        let mut names = self.lock();
        let there = names.to_log.remove(&id).and_then(|log| self.log().stat(log));
        if let Some(there) = there.filter(|_| !has_left(error)) {
            names.instead.insert(id, there);
        }
    }

    /// What a run that needs a file says when it has left, with the error of opening it.
    pub(in crate::pipeline) fn lost(&self, id: u64, error: &Error) -> String {
        let name = self.first_name(id).unwrap_or_else(|| "?".to_owned());
        format!("{}: file `{name}` (source {id}) has left: {error}", self.loader)
    }

    /// The name of a recorded file that is not there as it was, and why.
    pub(in crate::pipeline) fn lacks(&self, id: u64) -> Option<(String, String)> {
        let names = self.lock();
        let recorded = self.recorded.as_ref()?;
        let unknown = || recorded.iter().find(|file| file.id == id).map_or("?", |file| &file.name).to_owned();
        let Some(file) = names.files.get(&id) else { return Some((unknown(), "is not among its files".into())) };
        let token = Token::new(id, &file.name, file.size);
        let held = |spill: &Arc<Spill>| spill.get(token, (file.size, file.mtime), None).is_some();
        if self.spill.as_ref().is_some_and(held) {
            return None;
        }
        let there = names.to_log.get(&id).and_then(|log| self.log().stat(*log));
        let Some(there) = there.or_else(|| names.instead.get(&id).cloned()) else {
            return Some((file.name.clone(), "is gone".into()));
        };
        let size = there.size;
        if size == file.size && names.to_log.contains_key(&id) {
            return None;
        }
        let why = match (&file.version, there.version()) {
            (Some(was), Some(is)) => {
                let was = format!("version {was} of {}, {} bytes", utc(file.mtime.unwrap_or_default()), file.size);
                format!("was replaced: it was {was}; now it is version {is} of {}, {size} bytes", utc(there.mtime_ns))
            }
            _ if size == file.size => "was written over with as many bytes".to_owned(),
            _ => format!("has {size} bytes, it had {}", file.size),
        };
        Some((file.name.clone(), why))
    }

    /// Gives ids to what arrived.
    pub(in crate::pipeline) fn number(&self, names: &mut Names) {
        for arrival in self.log().arrivals(names.cursor) {
            names.cursor += 1;
            let Arrival { id: log_id, old } = arrival;
            let Ok(stat) = self.log().found(log_id) else { continue };
            let id = if self.recorded.is_none() { log_id } else { names.next };
            names.next = names.next.max(id + 1);
            let lasting = |old| names.from_log.get(&old).copied().or(Some(old).filter(|_| self.recorded.is_none()));
            let old = old.and_then(lasting);
            names.to_log.insert(id, log_id);
            names.from_log.insert(log_id, id);
            names.files.insert(id, record(id, &stat));
            names.arrivals.push((id, old));
        }
        self.log().pass(names.cursor);
    }

    /// Whether a file that was opened is not there and may have been moved just now: it is opened again in a moment.
    pub(in crate::pipeline) fn missed<T>(&self, id: u64, opened: &Result<T>) -> bool {
        matches!(opened, Err(Error::Format(error)) if self.may_have_moved(id, error))
    }

    /// Notes which files have left or come back, and gives ids to what arrived. Returns whether there is a file to forget.
    pub(in crate::pipeline) fn leave(&self) -> bool {
        let mut names = self.lock();
        if !names.ready {
            return false;
        }
        self.hear(&mut names);
        !names.left.is_empty()
    }

    fn hear(&self, names: &mut Names) {
        let events = self.log().left();
        self.number(names);
        for (log_id, left) in events {
            let id = names.from_log.get(&log_id).copied().or(Some(log_id).filter(|_| self.recorded.is_none()));
            match (id, left) {
                (Some(id), true) => _ = names.left.insert(id),
                (Some(id), false) => names.returns += u64::from(names.left.remove(&id)),
                (None, _) => {}
            }
        }
    }

    /// A file was gone when it was to be taken in.
    pub(in crate::pipeline) fn leaves(&self, id: u64) {
        let mut names = self.lock();
        if !names.left.insert(id) {
            return;
        }
        let log_id = if self.recorded.is_none() { Some(id) } else { names.to_log.get(&id).copied() };
        log_id.into_iter().for_each(|log_id| self.log().gone(log_id));
    }

    /// Takes from the files that were `gone` those that are there again, and drops those that were forgotten: they are new if they come
    /// back. Does nothing where none has returned since `returns`.
    pub(in crate::pipeline) fn back(
        &self,
        gone: &mut Vec<(u64, Option<u64>)>,
        returns: &mut Option<u64>,
    ) -> Vec<(u64, Option<u64>)> {
        if gone.is_empty() || self.fixed {
            return Vec::new();
        }
        let mut names = self.lock();
        self.hear(&mut names);
        if returns.replace(names.returns) == Some(names.returns) {
            return Vec::new();
        }
        gone.retain(|(id, _)| self.remembers(&names, *id));
        gone.extract_if(.., |(id, _)| !names.left.contains(id)).collect()
    }

    /// Whether a file is known, and was not forgotten.
    pub(in crate::pipeline) fn knows(&self, id: u64) -> bool {
        self.remembers(&self.lock(), id)
    }

    fn remembers(&self, names: &Names, id: u64) -> bool {
        let is_first = || self.recorded.is_none() && !names.forgotten.contains(&id) && self.log().found(id).is_ok();
        names.files.contains_key(&id) || is_first()
    }

    /// Forgets files that have left, but those that are `needed`; these are in ascending order.
    pub(in crate::pipeline) fn forget(&self, needed: &[u64]) {
        let mut names = self.lock();
        let goes: Vec<u64> = names.left.iter().copied().filter(|id| needed.binary_search(id).is_err()).collect();
        names.returns += u64::from(!goes.is_empty());
        for id in &goes {
            names.left.remove(id);
            names.instead.remove(id);
            if names.files.remove(id).is_none() {
                names.forgotten.insert(*id);
            }
            self.log().forget_held(*id);
            let log_id = names.to_log.remove(id).or(Some(*id).filter(|_| self.recorded.is_none()));
            let Some(log_id) = log_id else { continue };
            // Another record may be of the same file.
            if self.recorded.is_none() || names.from_log.get(&log_id) == Some(id) {
                names.from_log.remove(&log_id);
                self.log().forget(log_id);
            }
        }
    }

    /// Every branch has the arrivals before place `cursor`.
    pub(in crate::pipeline) fn pass(&self, cursor: usize) {
        let mut names = self.lock();
        let passed = cursor.saturating_sub(names.passed).min(names.arrivals.len());
        names.arrivals.drain(..passed);
        names.passed += passed;
    }
}

impl Observer {
    /// While this is held, nothing is forgotten: a state that is made has all that it says.
    pub(in crate::pipeline) fn whole(&self) -> MutexGuard<'_, ()> {
        self.forget();
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a state needs that was made, there and for whatever is forgotten later.
    pub(in crate::pipeline) fn made(&self, state: &mut LoaderState) {
        if let Some(ids) = state.needs() {
            state.oldest_needed = oldest(&self.chains, &self.rosters, &ids);
        }
        self.kept.made(state);
    }

    /// Forgets what has left and is not needed: by no chain, nor by a state that was saved or made last. Where ranks share the
    /// stream nothing is forgotten: when their states are put together, a file that one rank alone remembers is new to the lanes
    /// of the others.
    pub(in crate::pipeline) fn forget(&self) {
        let _whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.kept.is_known(&self.chains) {
            return;
        }
        let leave = |roster: &Arc<Roster>| self.ranks.world == 1 && roster.leave();
        let leavers: Vec<&Arc<Roster>> = self.rosters.iter().filter(|roster| leave(roster)).collect();
        // With many rows it takes long to find what is needed, so this is done only if there is something to forget.
        if !leavers.is_empty() {
            let Some(needed) = self.kept.with_made(&self.chains) else { return };
            leavers.iter().for_each(|roster| roster.forget(&needed));
        }
        for roster in &self.rosters {
            let read = |chain: &Arc<Chain>| {
                let inner = chain.lock();
                let own = inner.branches.iter().filter(|branch| Arc::ptr_eq(&branch.roster, roster));
                own.map(|branch| branch.cursor).min()
            };
            if let Some(cursor) = self.chains.iter().filter_map(read).min() {
                roster.pass(cursor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pipeline::loader::launch::tests::still::{Still, games, options};
    use crate::preset::lc0;

    #[test]
    fn there_is_something_to_forget_only_once_a_file_has_left() {
        let folder = tempfile::tempdir().unwrap();
        games(folder.path(), 1, 8, None);
        let still = Still::new(&lc0(&options(&[folder.path()])).unwrap());
        assert!(!still.roster().leave(), "before the first scan");
        still.search();
        still.batches(2);
        assert!(!still.roster().leave(), "all files are there");
        let gone = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        std::fs::remove_file(gone).unwrap();
        still.search();
        assert!(still.roster().leave(), "one has left");
    }
}
