//! Delivered batches -> lines of this process's ledger. A batch is noted before any state can count it, and durable when a
//! state is given out. Never overwrites what an earlier process wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::sealed::SealedLines;
use gristmill_runtime::store::publish::sync_folder;

use super::{Account, Begin, By, Delivered, Digest, Digests, Entry, read};
use crate::pipeline::resume::journals::{family, of_rank};
use crate::pipeline::watch::status::LedgerStatus;

/// One record has at most this many batches of an output: as many may a killed process have delivered without a trace.
const MOST_BATCHES: u64 = 64;

/// The ledger of this process.
#[derive(Debug)]
pub(in crate::pipeline) struct Book {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Absent once the loader was stopped, so that others can write.
    lines: Option<SealedLines>,
    /// What was delivered and is not written yet, per output.
    open: BTreeMap<String, (u64, u64, Digests)>,
    ended: BTreeMap<String, u64>,
    closed: bool,
    /// Whether the run has given out no state yet, so that it begins again if it dies now.
    unpromised: bool,
    /// The first state, while it is saved.
    saving: Option<BTreeMap<String, u64>>,
    /// The last state.
    stated: Option<BTreeMap<String, u64>>,
    /// The number of batches noted.
    noted: u64,
    /// Why the last line could not be written, if it could not.
    fault: Option<String>,
}

impl Book {
    /// Opens the ledger `path` of a run for one process, or of its rank beside it, and writes that it begins; its `order`
    /// is found here. A run that died before its first save begins again in its ledger.
    ///
    /// Errors: `Path`, also where another loader writes it, and for a new run where there is the ledger of one that can be
    /// resumed or has ended; `State` for a ledger of another run.
    pub(in crate::pipeline) fn open(path: &Path, begin: Begin) -> Result<Self> {
        let own = of_rank(path, begin.rank, begin.world_size);
        let at = |e| Error::path(&own, &e);
        let held = SealedLines::reopen::<Entry>(&own).map_err(at)?;
        let account = told(path)?;
        let others =
            account.processes.iter().map(|process| (account.files[process.file] == own, process.begin.clone()));
        let others: Vec<(bool, Begin)> = others.collect();
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
        if begin.by == By::Start
            && !others.iter().all(beside)
            && let Some(why) = account.in_the_way(&begin)?
        {
            let kind = std::io::ErrorKind::AlreadyExists;
            return Err(Error::Path { path: own, kind, message: why });
        }
        let begin = Begin { order: order(&begin, &others), ..begin };
        let mut lines = match held {
            Some(lines) => lines,
            None => SealedLines::create(&own).map_err(at)?,
        };
        let (from, unpromised) = (begin.from.clone(), begin.by == By::Start);
        lines.append(&Entry::Begin(Box::new(begin))).and_then(|()| lines.sync()).map_err(at)?;
        sync_folder(own.parent().unwrap_or(Path::new("")))?;
        let open = from.into_iter().map(|(output, from)| (output, (from, from, Digests::default()))).collect();
        let (ended, lines) = (BTreeMap::new(), Some(lines));
        let inner =
            Inner { lines, open, ended, closed: false, unpromised, saving: None, stated: None, noted: 0, fault: None };
        Ok(Book { path: own, inner: Mutex::new(inner) })
    }

    /// The seed of the run that the ledgers at `path` are of, if there are any.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn seed(path: &Path) -> Result<Option<u64>> {
        Ok(told(path)?.processes.first().and_then(|process| process.begin.plan.seed()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Batch `number` of an output is about to be in the consumer's hands.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn delivered(&self, output: &str, number: u64, digests: &Digests) -> Result<()> {
        let mut inner = self.lock();
        let follows = |(first, end, _): &(u64, u64, Digests)| number == *end && end - first < MOST_BATCHES;
        if !inner.open.get(output).is_some_and(follows) {
            self.write(&mut inner, output)?;
            inner.open.insert(output.to_owned(), (number, number, Digests::default()));
        }
        if let Some((_, end, open)) = inner.open.get_mut(output) {
            *end = number + 1;
            open.merge(digests.iter());
        }
        inner.noted += 1;
        Ok(())
    }

    /// How many batches this process has noted, and why it cannot write the latest line.
    pub(in crate::pipeline) fn status(&self) -> LedgerStatus {
        let inner = self.lock();
        LedgerStatus { path: self.path.display().to_string(), batches: inner.noted, fault: inner.fault.clone() }
    }

    /// Notes that its lines could not be sent to the bucket.
    pub(in crate::pipeline) fn unsent(&self, why: &str) {
        self.lock().fault = Some(why.to_owned());
    }

    /// An output has ended before batch `number`.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn ended(&self, output: &str, number: u64) -> Result<()> {
        let mut inner = self.lock();
        if inner.ended.contains_key(output) {
            return Ok(());
        }
        self.write(&mut inner, output)?;
        let ended = Entry::Ended { output: output.to_owned(), batch: number };
        self.append(&mut inner, &ended, true)?;
        inner.ended.insert(output.to_owned(), number);
        Ok(())
    }

    /// Makes durable what was delivered so far, and that a state for batch `at` is given out; or, where it is the first of the run and
    /// `to` is the file that it is saved as, that it will be there.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn state(&self, at: BTreeMap<String, u64>, to: Option<&Path>) -> Result<()> {
        let mut inner = self.lock();
        self.write_all(&mut inner)?;
        match to.filter(|_| inner.unpromised).and_then(Path::to_str) {
            Some(to) => {
                self.append(&mut inner, &Entry::Saving { at: at.clone(), to: to.to_owned() }, true)?;
                inner.saving = Some(at);
            }
            None if inner.stated.as_ref() != Some(&at) => self.gives(&mut inner, at)?,
            None => {}
        }
        let synced = inner.lines.as_ref().map_or(Ok(()), |lines| lines.sync().map_err(|e| Error::path(&self.path, &e)));
        inner.fault = synced.as_ref().err().map(ToString::to_string);
        synced
    }

    /// The state that was to be saved is there. Whether the ledger had to note it.
    ///
    /// Errors: `Path`.
    pub(in crate::pipeline) fn saved(&self) -> Result<bool> {
        let mut inner = self.lock();
        let at = inner.saving.take();
        let is_first = at.is_some();
        at.map_or(Ok(()), |at| self.gives(&mut inner, at))?;
        Ok(is_first)
    }

    fn gives(&self, inner: &mut Inner, at: BTreeMap<String, u64>) -> Result<()> {
        self.append(inner, &Entry::State { at: at.clone() }, true)?;
        (inner.stated, inner.unpromised) = (Some(at), false);
        Ok(())
    }

    /// Writes what was delivered so far; only a state makes sure that it is durable.
    pub(in crate::pipeline) fn close(&self) {
        let mut inner = self.lock();
        let _ = self.write_all(&mut inner);
        (inner.lines, inner.closed) = (None, true);
    }

    fn append(&self, inner: &mut Inner, entry: &Entry, durable: bool) -> Result<()> {
        let written = self.line(inner, entry, durable);
        inner.fault = written.as_ref().err().map(ToString::to_string);
        written
    }

    fn line(&self, inner: &mut Inner, entry: &Entry, durable: bool) -> Result<()> {
        let at = |e| Error::path(&self.path, &e);
        let gone = || std::io::Error::new(std::io::ErrorKind::NotFound, "it is gone");
        let mut lines = match inner.lines.take() {
            Some(lines) => lines,
            None => SealedLines::reopen::<Entry>(&self.path).and_then(|lines| lines.ok_or_else(gone)).map_err(at)?,
        };
        let written = lines.append(entry).and_then(|()| if durable { lines.sync() } else { Ok(()) });
        inner.lines = Some(lines).filter(|_| !inner.closed);
        written.map_err(at)
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
        self.append(inner, &Entry::Delivered(delivered), false)?;
        inner.open.insert(output.to_owned(), (end, end, Digests::default()));
        Ok(())
    }
}

/// What the processes wrote so far.
fn told(path: &Path) -> Result<Account> {
    let mut account = Account::default();
    for file in family(path)? {
        let at = |e| Error::path(&file, &e);
        let entries = read(&mut BufReader::new(File::open(&file).map_err(at)?)).map_err(at)?;
        account.take(file, entries);
    }
    Ok(account)
}

/// Which start of the run a process belongs to: the latest that is known, where that has the same shape and this rank is
/// still missing there, else the next.
fn order(begin: &Begin, others: &[(bool, Begin)]) -> u64 {
    let latest = others.iter().map(|(_, other)| other.order).max().unwrap_or(0);
    let joins = others.iter().filter(|(_, other)| other.order == latest);
    let joins = joins.fold(latest > 0, |joins, (mine, other)| joins && !mine && begin.resembles(other));
    if joins { latest } else { latest.saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::super::PlanOf;
    use super::*;

    fn begin(rank: u64, world_size: u64, by: By, from: u64) -> Begin {
        let plan = PlanOf::Stream { config: serde_json::json!({}), seed: 7 };
        Begin::new((rank, world_size), by, BTreeMap::from([("out".to_owned(), from)]), BTreeMap::new(), plan)
    }

    fn frames(all: impl IntoIterator<Item = u64>) -> Digests {
        let mut digests = Digests::default();
        all.into_iter().for_each(|frame| digests.frame(frame, 0, 0));
        digests
    }

    /// What a ledger says of each process: its order, and the batches of its records.
    fn said(path: &Path) -> Vec<(u64, Vec<(u64, u64)>)> {
        let account = told(path).unwrap();
        let records = |d: &Delivered| (d.first, d.end);
        account.processes.iter().map(|p| (p.begin.order, p.delivered.iter().map(records).collect())).collect()
    }

    #[test]
    fn batches_are_written_in_records_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let book = Book::open(&path, begin(0, 1, By::Start, 0)).unwrap();
        let deliver = |batch: u64| book.delivered("out", batch, &frames([batch])).unwrap();
        (0..64).for_each(deliver);
        assert_eq!(said(&path)[0].1, [], "a record has up to 64 batches");
        deliver(64);
        assert_eq!(said(&path)[0].1, [(0, 64)]);
        deliver(65);
        deliver(70);
        assert_eq!(said(&path)[0].1, [(0, 64), (64, 66)], "a record has no gap");
        let at = BTreeMap::from([("out".to_owned(), 71)]);
        book.state(at.clone(), None).unwrap();
        book.state(at.clone(), None).unwrap();
        book.ended("out", 71).unwrap();
        book.ended("out", 71).unwrap();
        book.delivered("other", 5, &frames([5])).unwrap();
        assert_eq!(book.status(), LedgerStatus { path: path.display().to_string(), batches: 68, fault: None });
        book.close();
        let process = told(&path).unwrap().processes.remove(0);
        assert_eq!((process.states, process.ended), (vec![at], vec![("out".to_owned(), 71)]));
        let last = process.delivered.iter().map(|d| (&*d.output, d.first, d.end)).collect::<Vec<_>>();
        assert_eq!(last, [("out", 0, 64), ("out", 64, 66), ("out", 70, 71), ("other", 5, 6)]);
        let mut all = Digests::default();
        process.delivered.iter().for_each(|delivered| all.merge(&delivered.digests));
        assert_eq!(all, frames((0..66).chain([70, 5])));
        let first: Vec<Digest> = frames(0..64).iter().copied().collect();
        assert_eq!(process.delivered[0].digests, first);
    }

    #[test]
    fn a_closed_book_lets_others_write_and_writes_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let book = Book::open(&path, begin(0, 1, By::Start, 3)).unwrap();
        let locked = Book::open(&path, begin(0, 1, By::Start, 3)).unwrap_err().to_string();
        assert!(locked.contains("another loader"), "{locked}");
        book.delivered("out", 3, &frames([3])).unwrap();
        book.close();
        let second = Book::open(&path, begin(0, 1, By::Start, 3)).unwrap();
        second.close();
        assert_eq!(said(&path), [(1, vec![(3, 4)]), (2, Vec::new())]);
        // A consumer may still take what was made before the stop; the file is not held for it.
        book.ended("out", 4).unwrap();
        Book::open(&path, begin(0, 1, By::Seek, 4)).unwrap();
        std::fs::remove_file(&path).unwrap();
        let gone = book.ended("other", 4).unwrap_err().to_string();
        assert!(gone.contains("it is gone"), "{gone}");
        assert_eq!(book.status().fault, Some(gone));
        book.unsent("no bucket");
        assert_eq!(book.status().fault.as_deref(), Some("no bucket"));
    }

    #[test]
    fn a_start_has_the_next_order_unless_its_ranks_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let opened = |begin: Begin| {
            let own = of_rank(&path, begin.rank, begin.world_size);
            Book::open(&path, begin).unwrap().close();
            told(&path)
                .unwrap()
                .processes
                .iter()
                .rfind(|p| of_rank(&path, p.begin.rank, p.begin.world_size) == own)
                .unwrap()
                .begin
                .order
        };
        assert_eq!(Book::seed(&path).unwrap(), None);
        assert_eq!(opened(begin(0, 2, By::Start, 0)), 1);
        assert_eq!(Book::seed(&path).unwrap(), Some(7));
        assert_eq!(opened(begin(1, 2, By::Start, 0)), 1, "the other rank of this start");
        assert_eq!(opened(begin(1, 2, By::Start, 0)), 2, "the same rank begins again");
        assert_eq!(opened(begin(0, 2, By::State, 0)), 3, "another shape");
        assert_eq!(opened(begin(1, 2, By::State, 1)), 4);
        assert_eq!(opened(begin(0, 2, By::State, 1)), 4);
    }

    #[test]
    fn a_new_run_is_refused_where_one_can_be_resumed_or_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let saved = Book::open(&path, begin(0, 2, By::Start, 0)).unwrap();
        saved.state(BTreeMap::new(), None).unwrap();
        saved.close();
        // A rank of the same start may come later.
        let late = Book::open(&path, begin(1, 2, By::Start, 0)).unwrap();
        late.state(BTreeMap::new(), None).unwrap();
        late.close();
        let refused = |begin| Book::open(&path, begin).unwrap_err().to_string();
        for again in [begin(0, 2, By::Start, 0), begin(0, 1, By::Start, 0)] {
            let text = refused(again);
            assert!(text.contains("resume from its state"), "{text}");
        }
        let plan = PlanOf::Stream { config: serde_json::json!({}), seed: 8 };
        let other = refused(Begin { plan, ..begin(0, 1, By::State, 0) });
        assert!(other.contains("is of another run: its start 1 had"), "{other}");
        Book::open(&path, begin(0, 1, By::State, 0)).unwrap();
    }
}
