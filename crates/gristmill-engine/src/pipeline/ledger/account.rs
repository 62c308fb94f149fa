//! The ledgers of all processes of a run -> which deliveries belong to the training that survived, and which do not.
//! A process that resumes from a state takes back what earlier starts delivered from there on. Compares no digest.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::files::is_file;
use gristmill_runtime::store::place::{is_local, resolved};
use gristmill_runtime::store::segments;

use super::{Begin, By, Delivered, Entry, PlanOf, read};
use crate::pipeline::resume::journals::family;

/// One process of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its ledger, among those of the account.
    pub file: usize,
    /// How it began.
    pub begin: Begin,
    /// What it delivered.
    pub delivered: Vec<Delivered>,
    /// The batches of the states that it gave out.
    pub states: Vec<BTreeMap<String, u64>>,
    /// The batches of states that it was about to save before it gave out any, each with its file.
    pub saving: Vec<(BTreeMap<String, u64>, PathBuf)>,
    /// Which outputs ended, and before which batch.
    pub ended: Vec<(String, u64)>,
}

/// A stretch of batches that one process delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The process.
    pub process: usize,
    /// The first batch.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
}

/// What all processes of a run wrote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// The ledgers.
    pub files: Vec<PathBuf>,
    /// Their processes, file by file, each in the order in which they began.
    pub processes: Vec<Process>,
}

impl Begin {
    /// Whether two processes can be ranks of one start.
    pub(super) fn resembles(&self, other: &Begin) -> bool {
        (self.world_size, self.by, &self.from) == (other.world_size, other.by, &other.from)
    }
}

impl Account {
    /// Reads ledgers: `PATH` with those of all ranks beside it, all ledgers in a folder, or those of all ranks at a URL.
    ///
    /// Errors: `Path` for one that cannot be read or is damaged, `State` where there is none, or where they are of
    /// different runs.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut account = Account::default();
        for path in paths {
            let path = &*resolved(path)?;
            if !is_local(path) {
                for (rank, made) in segments::family(path)? {
                    let file = path.join(rank);
                    let entries = read(&mut &made.bytes[..]).map_err(|e| Error::path(&file, &e))?;
                    if !account.files.contains(&file) {
                        account.take(file, entries);
                    }
                }
                continue;
            }
            let files = if path.is_dir() { folder(path)? } else { family(path)? };
            for file in files {
                if !account.files.contains(&file) {
                    account.add(file)?;
                }
            }
        }
        let Some(first) = account.processes.first() else {
            let at: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let text = format!("no ledger here: {}; one is written by a loader with ledger=PATH", at.join(", "));
            return Err(Error::config("ledger", text));
        };
        if let Some(other) = account.processes.iter().find(|other| !other.begin.plan.agrees(&first.begin.plan)) {
            let [a, b] = [first, other].map(|process| account.files[process.file].display());
            return Err(Error::State(format!("{a} and {b} are of different runs")));
        }
        Ok(account)
    }

    fn add(&mut self, path: PathBuf) -> Result<()> {
        let at = |e| Error::path(&path, &e);
        let entries = read(&mut BufReader::new(File::open(&path).map_err(at)?)).map_err(at)?;
        self.take(path, entries);
        Ok(())
    }

    /// Adds the entries of one ledger.
    pub fn take(&mut self, path: PathBuf, entries: Vec<Entry>) {
        let file = self.files.len();
        for entry in entries {
            match (entry, self.processes.last_mut()) {
                (Entry::Begin(begin), _) => {
                    let (states, saving) = (Vec::new(), Vec::new());
                    let (begin, delivered, ended) = (*begin, Vec::new(), Vec::new());
                    self.processes.push(Process { file, begin, delivered, states, saving, ended });
                }
                (Entry::Delivered(delivered), Some(process)) => process.delivered.push(delivered),
                (Entry::Saving { at, to }, Some(process)) => process.saving.push((at, to.into())),
                (Entry::State { at }, Some(process)) => process.states.push(at),
                (Entry::Ended { output, batch }, Some(process)) => process.ended.push((output, batch)),
                _ => {}
            }
        }
        self.files.push(path);
    }

    /// The processes of the start that is the latest.
    pub fn latest(&self) -> impl Iterator<Item = (usize, &Process)> {
        let latest = self.processes.iter().map(|process| process.begin.order).max();
        let all = self.processes.iter().enumerate();
        all.filter(move |(p, process)| Some(process.begin.order) == latest && !self.is_followed(*p))
    }

    /// Whether the same rank began again in the same ledger.
    fn is_followed(&self, process: usize) -> bool {
        self.processes.iter().skip(process + 1).any(|later| later.file == self.processes[process].file)
    }

    /// The outputs, by name.
    pub fn outputs(&self) -> Vec<String> {
        let mut outputs: Vec<String> =
            self.processes.iter().flat_map(|process| process.begin.from.keys().cloned()).collect();
        outputs.sort_unstable();
        outputs.dedup();
        outputs
    }

    /// The batch from which on what a process delivered of an output was taken back by later ones.
    pub fn cut(&self, process: usize, output: &str) -> Option<u64> {
        let takes = |(later, other): (usize, &Process)| {
            (other.begin.by != By::Seek && self.follows(later, process))
                .then(|| other.begin.from.get(output).copied())?
        };
        self.processes.iter().enumerate().filter_map(takes).min()
    }

    /// Whether one process is of a later start than another, or the same rank begun again.
    fn follows(&self, later: usize, earlier: usize) -> bool {
        let (a, b) = (&self.processes[earlier], &self.processes[later]);
        if a.file == b.file {
            return later > earlier;
        }
        if b.begin.order <= a.begin.order {
            return false;
        }
        // Ranks of one start that fell in with it at different times.
        let between = |other: &Process| (a.begin.order..=b.begin.order).contains(&other.begin.order);
        let other_shapes = self.processes.iter().any(|other| between(other) && !other.begin.resembles(&a.begin));
        other_shapes || !a.begin.resembles(&b.begin)
    }

    /// Why a new run cannot begin in these ledgers as `begin` does, if so: one that died before it had saved its first state begins again.
    ///
    /// Errors: of the place where a state was to be saved.
    pub(super) fn in_the_way(&self, begin: &Begin) -> Result<Option<String>> {
        let again = "delete the ledgers of all its ranks to begin again";
        for process in &self.processes {
            if process.begin.by != By::Start || self.gave_out(process.begin.order, begin)? {
                return Ok(Some(format!(
                    "the ledger of a run is there; resume from its state, or name another file for a new run. Where \
                     neither a state nor what it trained is left, {again}"
                )));
            }
        }
        let all_ended = |process: &Process| {
            process.begin.from.keys().all(|output| process.ended.iter().any(|(ended, _)| ended == output))
        };
        Ok(self.processes.iter().any(all_ended).then(|| {
            format!(
                "the ledger of a run that has ended is there; name another file for a new run. Where nothing that it \
                 trained is left, {again}"
            )
        }))
    }

    /// Whether a start may have given out a state that resumes. Each rank of the new start looks for what each process was about to save.
    fn gave_out(&self, order: u64, begin: &Begin) -> Result<bool> {
        let peers: Vec<&Process> = self.processes.iter().filter(|process| process.begin.order == order).collect();
        let Some(first) = peers.first() else { return Ok(false) };
        let is_of = |rank: u64| move |process: &&&Process| process.begin.rank == rank;
        let same_world = first.begin.world_size == begin.world_size;
        Ok(match first.begin.plan {
            // The state is the same for every rank, and rank 0 saves it.
            PlanOf::Rows { .. } => {
                let one_was = peers.iter().any(|process| !process.saving.is_empty());
                peers.iter().any(|process| !process.states.is_empty())
                    || one_was
                        && match peers.iter().find(is_of(0)) {
                            Some(head) if same_world => head.has_saved()?,
                            _ => true,
                        }
            }
            // Each rank has its part.
            PlanOf::Stream { .. } => {
                for rank in 0..first.begin.world_size {
                    let Some(process) = peers.iter().find(is_of(rank)) else { return Ok(false) };
                    let has = match process.states.is_empty() && same_world {
                        true => process.has_saved()?,
                        false => !process.states.is_empty() || !process.saving.is_empty(),
                    };
                    if !has {
                        return Ok(false);
                    }
                }
                true
            }
        })
    }

    /// What was delivered of an output: what survived, and what was taken back.
    pub fn kept(&self, output: &str) -> (Vec<Kept>, Vec<Kept>) {
        let (mut kept, mut discarded) = (Vec::new(), Vec::new());
        for (p, process) in self.processes.iter().enumerate() {
            let cut = self.cut(p, output).unwrap_or(u64::MAX);
            for Delivered { first, end, .. } in process.delivered.iter().filter(|delivered| delivered.output == output)
            {
                for (all, first, end) in [(&mut kept, *first, cut.min(*end)), (&mut discarded, cut.max(*first), *end)] {
                    if first < end {
                        push(all, Kept { process: p, first, end });
                    }
                }
            }
        }
        (kept, discarded)
    }
}

impl Process {
    /// Whether a state is there that it was about to save.
    fn has_saved(&self) -> Result<bool> {
        for (_, file) in &self.saving {
            let is_there = match is_local(file) {
                true => file.try_exists().map_err(|e| Error::path(file, &e))?,
                false => is_file(file)?,
            };
            if is_there {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds a stretch, to the last where that ends there.
fn push(all: &mut Vec<Kept>, next: Kept) {
    match all.last_mut() {
        Some(last) if (last.process, last.end) == (next.process, next.first) => last.end = next.end,
        _ => all.push(next),
    }
}

/// The ledgers in a folder: files whose first line is one of a process.
fn folder(path: &Path) -> Result<Vec<PathBuf>> {
    let at = |e| Error::path(path, &e);
    let entries = std::fs::read_dir(path).map_err(at)?.collect::<std::io::Result<Vec<_>>>().map_err(at)?;
    let mut files: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(|path| is_ledger(path)).collect();
    files.sort();
    Ok(files)
}

fn is_ledger(path: &Path) -> bool {
    let mut head = [0; 27];
    let read =
        path.is_file() && File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head)).is_ok();
    read && head[16..] == *b" {\"begin\":{"
}

#[cfg(test)]
mod tests {
    use super::super::Book;
    use super::*;

    fn begin(order: u64, (rank, world_size): (u64, u64), by: By, from: u64) -> Entry {
        let plan = PlanOf::Stream { config: serde_json::json!({}), seed: 7 };
        let from = BTreeMap::from([("out".to_owned(), from)]);
        Entry::Begin(Box::new(Begin { order, ..Begin::new((rank, world_size), by, from, BTreeMap::new(), plan) }))
    }

    fn delivered(first: u64, end: u64) -> Entry {
        Entry::Delivered(Delivered { output: "out".into(), first, end, digests: Vec::new() })
    }

    fn state(at: u64) -> Entry {
        Entry::State { at: BTreeMap::from([("out".to_owned(), at)]) }
    }

    fn account<const N: usize>(ledgers: [Vec<Entry>; N]) -> Account {
        let mut account = Account::default();
        ledgers.into_iter().enumerate().for_each(|(file, entries)| account.take(file.to_string().into(), entries));
        account
    }

    /// What survived and what was taken back: process, first batch, the one after the last.
    fn kept(account: &Account) -> [Vec<(usize, u64, u64)>; 2] {
        let (kept, discarded) = account.kept("out");
        [kept, discarded].map(|all| all.iter().map(|kept| (kept.process, kept.first, kept.end)).collect())
    }

    #[test]
    fn a_process_that_resumes_takes_back_what_came_from_there_on_and_a_seek_nothing() {
        let again = |by| {
            let lives = [begin(1, (0, 1), By::Start, 0), delivered(0, 4), delivered(4, 9), begin(2, (0, 1), by, 5)];
            let last = [delivered(5, 6), delivered(7, 8), begin(3, (0, 1), by, 6), delivered(6, 20)];
            account([lives.into_iter().chain(last).collect()])
        };
        let [kept_, discarded] = kept(&again(By::State));
        assert_eq!(kept_, [(0, 0, 5), (1, 5, 6), (2, 6, 20)]);
        assert_eq!(discarded, [(0, 5, 9), (1, 7, 8)]);
        let [kept_, discarded] = kept(&again(By::Seek));
        assert_eq!(kept_, [(0, 0, 9), (1, 5, 6), (1, 7, 8), (2, 6, 20)]);
        assert_eq!(discarded, []);
        let account = again(By::State);
        assert_eq!([0, 1, 2].map(|process| account.cut(process, "out")), [Some(5), Some(6), None]);
        assert_eq!(account.kept("other"), (Vec::new(), Vec::new()));
    }

    #[test]
    fn ranks_of_one_start_never_take_back_each_others_batches() {
        let rank = |order, rank, by| vec![begin(order, rank, by, 0), delivered(0, 3)];
        // Two ranks of one start, which the second fell in with as the next start.
        for order in [1, 2] {
            let both = account([rank(1, (0, 2), By::Start), rank(order, (1, 2), By::Start)]);
            assert_eq!(kept(&both), [vec![(0, 0, 3), (1, 0, 3)], Vec::new()], "order {order}");
        }
        // A start of another shape, itself or between them.
        let other = account([rank(1, (0, 2), By::Start), rank(2, (0, 1), By::State)]);
        assert_eq!(kept(&other), [vec![(1, 0, 3)], vec![(0, 0, 3)]]);
        let between = [rank(1, (0, 2), By::Start), rank(3, (1, 2), By::Start), rank(2, (0, 1), By::Seek)];
        assert_eq!(kept(&account(between)), [vec![(1, 0, 3)], vec![(0, 0, 3), (2, 0, 3)]]);
        let behind = [rank(1, (0, 2), By::Start), rank(2, (1, 2), By::Start), rank(3, (0, 1), By::Seek)];
        assert_eq!(kept(&account(behind))[1], [], "a later start that takes back nothing itself");
        let before = [rank(2, (0, 2), By::Start), rank(3, (1, 2), By::Start), rank(1, (0, 1), By::Seek)];
        assert_eq!(kept(&account(before)), [vec![(0, 0, 3), (1, 0, 3)], vec![(2, 0, 3)]]);
    }

    #[test]
    fn the_latest_start_has_each_rank_once() {
        let first = vec![begin(1, (0, 1), By::Start, 0)];
        let second = vec![begin(2, (0, 2), By::State, 4), begin(2, (0, 2), By::State, 4)];
        let all = account([first, second, vec![begin(2, (1, 2), By::State, 4)]]);
        assert_eq!(all.latest().map(|(process, _)| process).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(all.outputs(), ["out"]);
        assert_eq!(Account::default().latest().count(), 0);
    }

    #[test]
    fn a_run_that_can_be_resumed_or_has_ended_is_in_the_way_of_a_new_one() {
        let start = |rank| begin(1, rank, By::Start, 0);
        let ended = |output: &str| Entry::Ended { output: output.into(), batch: 3 };
        let is_in_the_way = |account: &Account, words: Option<&str>| {
            let Entry::Begin(new) = start((0, account.processes[0].begin.world_size)) else { unreachable!() };
            let why = account.in_the_way(&new).unwrap();
            assert_eq!(why.is_some(), words.is_some(), "{why:?}");
            assert!(why.iter().zip(words).all(|(why, words)| why.contains(words)), "{why:?}");
        };
        let (resume, over) = (Some("resume from its state"), Some("a run that has ended"));
        is_in_the_way(&account([vec![start((0, 1)), delivered(0, 3)]]), None);
        is_in_the_way(&account([vec![start((0, 1)), state(3)]]), resume);
        is_in_the_way(&account([vec![begin(1, (0, 1), By::State, 0)]]), resume);
        // A state that was about to be saved is in the way once its file is there.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        let to = file.display().to_string();
        let saving = account([vec![start((0, 1)), Entry::Saving { at: BTreeMap::new(), to }]]);
        is_in_the_way(&saving, None);
        std::fs::write(&file, "{}").unwrap();
        is_in_the_way(&saving, resume);
        // A stream has a state once each rank has its part, of the same start.
        let two = |a, b| account([vec![start((0, 2)), a], vec![start((1, 2)), b]]);
        is_in_the_way(&two(state(3), delivered(0, 3)), None);
        is_in_the_way(&two(state(3), state(3)), resume);
        // The first rank has saved its part, and the other died while it saved its own.
        let to = folder.path().join("step.json");
        let saves = Entry::Saving { at: BTreeMap::new(), to: to.display().to_string() };
        let one = two(state(3), saves);
        is_in_the_way(&one, None);
        std::fs::write(&to, "{}").unwrap();
        is_in_the_way(&one, resume);
        let again = account([vec![start((0, 2)), state(3)], vec![begin(2, (1, 2), By::Start, 0), state(3)]]);
        is_in_the_way(&again, None);
        is_in_the_way(&account([vec![start((0, 1)), ended("out")]]), over);
        is_in_the_way(&account([vec![start((0, 1)), ended("other")]]), None);
        // Each rank has the whole state of rows.
        let mut rows = two(state(3), delivered(0, 3));
        let selection = serde_json::from_str(r#"{"pack":"00","steps":[]}"#).unwrap();
        let (config, data) = (serde_json::json!({"seed": 9}), "00".to_owned());
        let plan = PlanOf::Rows { config, epochs: None, last_batch: Default::default(), data, rows: 5, selection };
        rows.processes.iter_mut().for_each(|process| process.begin.plan = plan.clone());
        is_in_the_way(&rows, resume);
        rows.processes[0].states.clear();
        is_in_the_way(&rows, None);
    }

    #[test]
    fn ledgers_are_found_in_a_folder_and_beside_each_other_and_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let [ledger, other] = ["run", "more/run"].map(|name| folder.path().join(name));
        std::fs::create_dir(folder.path().join("more")).unwrap();
        let none = Account::read(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(none.contains("no ledger here"), "{none}");
        let open = |path: &Path, rank, seed| {
            let Entry::Begin(begin) = begin(0, rank, By::Start, 0) else { unreachable!() };
            let plan = PlanOf::Stream { config: serde_json::json!({}), seed };
            Book::open(path, Begin { plan, ..*begin }).unwrap().close();
        };
        (0..2).for_each(|rank| open(&ledger, (rank, 2), 7));
        std::fs::write(folder.path().join("run.log"), "a log of the run, longer than the head of a ledger").unwrap();
        std::fs::write(folder.path().join("short"), "log").unwrap();
        let read = Account::read(&[folder.path().to_owned(), ledger.clone(), ledger.clone()]).unwrap();
        let files = ["run.0-of-2", "run.1-of-2"].map(|name| folder.path().join(name));
        assert_eq!((&read.files[..], read.processes.len()), (&files[..], 2));
        for alone in [folder.path(), &ledger] {
            assert_eq!(Account::read(&[alone.to_owned()]).unwrap(), read, "{}", alone.display());
        }
        open(&other, (0, 1), 8);
        let different = Account::read(&[ledger, other]).unwrap_err().to_string();
        assert!(different.contains("are of different runs"), "{different}");
    }
}
