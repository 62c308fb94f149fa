//! Delivered batches -> lines of this process's ledger. A batch is noted before any state can count it, and durable when a
//! state is given out. Never overwrites what an earlier process wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Begin, By, Delivered, Digest, Digests, Entry, read};
use crate::error::{Error, Result};
use crate::pipeline::journals::{family, of_rank};
use crate::runtime::sealed::SealedLines;
use crate::store::publish::sync_folder;

/// Batches of an output in one record, at most: what a killed process may have delivered without a trace.
const MOST_BATCHES: u64 = 64;

/// The ledger of this process.
#[derive(Debug)]
pub(in crate::pipeline) struct Book {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    lines: SealedLines,
    /// What was delivered and is not written yet, per output.
    open: BTreeMap<String, (u64, u64, Digests)>,
    ended: BTreeMap<String, u64>,
    /// The last state.
    stated: Option<BTreeMap<String, u64>>,
}

impl Book {
    /// Opens the ledger `path` of a run for one process, or of its rank beside it, and writes that it begins; its `order`
    /// is found here.
    ///
    /// Errors: `Path`, also for a new run where there is a ledger; `State` for a ledger of another run.
    pub(in crate::pipeline) fn open(path: &Path, begin: Begin) -> Result<Self> {
        let own = of_rank(path, begin.rank, begin.world_size);
        let mut others = Vec::new();
        for file in family(path)? {
            let at = |e| Error::path(&file, &e);
            for entry in read(&mut BufReader::new(File::open(&file).map_err(at)?)).map_err(at)? {
                if let Entry::Begin(other) = entry {
                    others.push((file == own, *other));
                }
            }
        }
        if let Some((_, other)) = others.iter().find(|(_, other)| !other.plan.agrees(&begin.plan)) {
            let text = format!(
                "ledger {} is of another run: its start {} had another configuration, seed or selection of rows; name \
                 another file",
                path.display(),
                other.order
            );
            return Err(Error::State(text));
        }
        let beside =
            |(mine, other): &(bool, Begin)| !mine && (other.by, other.world_size) == (By::Start, begin.world_size);
        if begin.by == By::Start && !others.iter().all(beside) {
            let kind = std::io::ErrorKind::AlreadyExists;
            let message =
                "the ledger of a run is there; go on from its state, or name another file for a new run".into();
            return Err(Error::Path { path: own, kind, message });
        }
        let begin = Begin { order: order(&begin, &others), ..begin };
        let at = |e| Error::path(&own, &e);
        let mut lines = match own.exists() {
            true => SealedLines::reopen::<Entry>(&own).map_err(at)?,
            false => SealedLines::create(&own).map_err(at)?,
        };
        let from = begin.from.clone();
        lines.append(&Entry::Begin(Box::new(begin))).and_then(|()| lines.sync()).map_err(at)?;
        sync_folder(own.parent().unwrap_or(Path::new("")))?;
        let open = from.into_iter().map(|(output, from)| (output, (from, from, Digests::default()))).collect();
        Ok(Book { path: own, inner: Mutex::new(Inner { lines, open, ended: BTreeMap::new(), stated: None }) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Batch `number` of an output is about to be in the consumer's hands.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn delivered(&self, output: &str, number: u64, digests: &Digests) -> Result<()> {
        let mut inner = self.lock();
        let (first, end) = inner.open.get(output).map_or((number, number), |(first, end, _)| (*first, *end));
        if number != end || end - first >= MOST_BATCHES {
            self.write(&mut inner, output)?;
            inner.open.insert(output.to_owned(), (number, number, Digests::default()));
        }
        if let Some((_, end, open)) = inner.open.get_mut(output) {
            *end = number + 1;
            open.merge(digests.iter());
        }
        Ok(())
    }

    /// An output has ended before batch `number`.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn ended(&self, output: &str, number: u64) -> Result<()> {
        let mut inner = self.lock();
        if inner.ended.insert(output.to_owned(), number).is_some() {
            return Ok(());
        }
        self.write(&mut inner, output)?;
        let ended = Entry::Ended { output: output.to_owned(), batch: number };
        inner.lines.append(&ended).and_then(|()| inner.lines.sync()).map_err(|e| Error::path(&self.path, &e))
    }

    /// Makes durable what was delivered so far, and that a state is given out that goes on at `at`.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn state(&self, at: BTreeMap<String, u64>) -> Result<()> {
        let mut inner = self.lock();
        self.write_all(&mut inner)?;
        if inner.stated.as_ref() != Some(&at) {
            let entry = Entry::State { at: at.clone() };
            inner.lines.append(&entry).map_err(|e| Error::path(&self.path, &e))?;
            inner.stated = Some(at);
        }
        inner.lines.sync().map_err(|e| Error::path(&self.path, &e))
    }

    /// Writes what was delivered so far; whoever needs to know that it is durable asks for a state.
    pub(in crate::pipeline) fn close(&self) {
        let mut inner = self.lock();
        let _ = self.write_all(&mut inner);
    }

    fn write_all(&self, inner: &mut Inner) -> Result<()> {
        inner.open.keys().cloned().collect::<Vec<_>>().iter().try_for_each(|output| self.write(inner, output))
    }

    fn write(&self, inner: &mut Inner, output: &str) -> Result<()> {
        let Some((first, end, digests)) = inner.open.get(output).filter(|(first, end, _)| first < end) else {
            return Ok(());
        };
        let (first, end, digests) = (*first, *end, digests.iter().copied().collect::<Vec<Digest>>());
        let delivered = Delivered { output: output.to_owned(), first, end, digests };
        inner.lines.append(&Entry::Delivered(delivered)).map_err(|e| Error::path(&self.path, &e))?;
        inner.open.insert(output.to_owned(), (end, end, Digests::default()));
        Ok(())
    }
}

/// Which start of the run a process belongs to: the latest that is known, where that has the same shape and this rank is
/// still missing there, else the next.
fn order(begin: &Begin, others: &[(bool, Begin)]) -> u64 {
    let latest = others.iter().map(|(_, other)| other.order).max().unwrap_or(0);
    let joins = others.iter().filter(|(_, other)| other.order == latest);
    let joins = joins.fold(latest > 0, |joins, (mine, other)| joins && !mine && begin.resembles(other));
    if joins { latest } else { latest.saturating_add(1) }
}
