//! The journals of a run -> what arrived, and before which draw of which pool and lane: one file, or one for each rank.
//! Reads what any number of ranks wrote, under common ids; refuses files of different runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::journal::{Journal, Opening, Place};
use gristmill_stages::config::{DataLoaderConfig, SplitBy};
use serde::{Deserialize, Serialize};

use crate::pipeline::draw::drawer::Admission;
use crate::pipeline::draw::event::Event;
use crate::pipeline::draw::numbering::Numbering;
use crate::pipeline::draw::recorded::Recorded;
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::resume::parts::Common;
use crate::pipeline::resume::state::{BOUND, LoaderState, NAMED};

/// Files of each loader stage.
pub(in crate::pipeline) type Files = BTreeMap<String, Vec<Recorded>>;

/// A pool and its lane.
pub(in crate::pipeline) type Taker = (String, Option<u32>);

/// Files that were gone before a pool could take them in.
#[derive(Debug)]
pub(in crate::pipeline) struct Absent {
    /// The pool, and its lanes where there are several; without it all pools.
    of: Option<(String, Vec<u32>)>,
    pub(in crate::pipeline) files: Vec<u64>,
}

/// What the journals of a run say together.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct History {
    pub(in crate::pipeline) seed: Option<u64>,
    /// What splitter stages go by.
    pub(in crate::pipeline) splits: BTreeMap<String, SplitBy>,
    /// Every file, under one id.
    pub(in crate::pipeline) files: Files,
    /// Those of the first scan, by loader stage.
    pub(in crate::pipeline) first: BTreeMap<String, BTreeSet<u64>>,
    /// Those of them that were gone before they could be taken in.
    pub(in crate::pipeline) gone: BTreeMap<String, Vec<Absent>>,
    /// Admissions of each pool and lane, in the order of their draws.
    pub(in crate::pipeline) admissions: BTreeMap<Taker, VecDeque<Admission>>,
    /// Draws of each pool and lane below these may have been made.
    pub(in crate::pipeline) reached: BTreeMap<Taker, u64>,
    /// Whether all ranks found the same files first.
    pub(in crate::pipeline) agreed: bool,
    /// Whether one of them began by resuming from a state.
    pub(in crate::pipeline) went_on: bool,
    /// Which batches came next where a journal began by resuming from a state.
    pub(in crate::pipeline) begun: BTreeMap<PathBuf, BTreeMap<String, u64>>,
    /// What the ids of each journal mean at its end, by loader stage.
    pub(in crate::pipeline) numbers: BTreeMap<PathBuf, BTreeMap<String, Numbering>>,
    /// What was first read of files of which a state says so and no journal, by loader stage.
    pub(in crate::pipeline) untold: BTreeMap<String, Vec<(u64, String)>>,
    /// Up to where each journal was read.
    pub(in crate::pipeline) read: BTreeMap<PathBuf, Place>,
}

/// What a run without a state finds where it is to write its journal.
#[derive(Debug)]
pub(in crate::pipeline) struct Earlier {
    /// All that an earlier run did which saved no state: it is done again.
    pub(in crate::pipeline) run: Option<History>,
    /// How the own journal is begun; one of a run that ended before its first draw tells nothing.
    pub(in crate::pipeline) opening: Opening,
}

impl Earlier {
    /// Looks for the journals of a run with these loader stages.
    ///
    /// Errors: as [`History::read`]; `Config` for a file that is no journal, and for ranks that found different files first,
    /// where this is none of them.
    pub(in crate::pipeline) fn of(path: &Path, ranks: Ranks, loaders: &[&str]) -> Result<Self> {
        let own = of_rank(path, ranks.rank.into(), ranks.world.into());
        let (mut alone, mut common) = (History { agreed: true, ..History::default() }, BTreeMap::new());
        if own.exists() {
            if !is_journal(&own)? {
                let text = format!("{} is there and is no journal; take another name", own.display());
                return Err(Error::config("journal", text));
            }
            alone.add(&own, &mut common)?;
        }
        let whole = |history: &History| loaders.iter().all(|loader| history.first.contains_key(*loader));
        let opening = match own.exists() {
            false => Opening::New,
            true if whole(&alone) || alone.went_on => Opening::Again,
            true => Opening::Fresh,
        };
        let all = History::read(path, Files::new())?;
        let run = match (whole(&all), all.agreed) {
            (false, _) => None,
            (true, true) => Some(all),
            // Ranks that found different files first start again each with its own.
            (true, false) if whole(&alone) => Some(alone.sorted(common)),
            (true, false) => {
                let text = "the ranks that wrote it found different files first: start again with as many, resume from a \
                            state, or use another journal";
                return Err(Error::config("journal", text));
            }
        };
        Ok(Earlier { run, opening })
    }
}

/// Where a rank writes its journal or ledger: `PATH`, or `PATH.R-of-N` where there are several.
pub(in crate::pipeline) fn of_rank(path: &Path, rank: u64, world: u64) -> PathBuf {
    if world == 1 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{rank}-of-{world}"));
    name.into()
}

/// The splitter stages of a config, and what they go by.
pub(in crate::pipeline) fn splits(config: &DataLoaderConfig) -> impl Iterator<Item = (&str, SplitBy)> {
    config.stage.iter().filter_map(|stage| Some((stage.name.as_str(), stage.chunk_source_splitter.as_ref()?.by)))
}

/// What a journal begins with, after a checksum unless it is of an older version.
const FIRST: [&[u8]; 2] = [br#"{"seed":"#, br#"{"from":"#];

/// Bytes of a checksum and its space.
const SEAL: usize = 17;

/// Bytes that the first lines take at most: a first scan of millions of files.
const MOST_LOST: u64 = 1 << 30;

/// Whether a file is a journal, or the torn beginning of one, or what a machine that crashed left of its first lines: zeros, with text
/// behind them at most.
fn is_journal(path: &Path) -> Result<bool> {
    let at = |e| Error::path(path, &e);
    let (mut start, first) = (Vec::new(), FIRST[0].len());
    std::fs::File::open(path).map_err(at)?.take((SEAL + first) as u64).read_to_end(&mut start).map_err(at)?;
    let begins = |text: &[u8]| FIRST.iter().any(|first| text.starts_with(first) || first.starts_with(text));
    let (seal, rest) = start.split_at(start.len().min(SEAL));
    let is_seal = seal.iter().enumerate().all(|(i, b)| if i + 1 < SEAL { b.is_ascii_hexdigit() } else { *b == b' ' });
    Ok(begins(&start)
        || is_seal && begins(rest)
        || start.first() == Some(&0) && has_only_text_and_zeros(path).map_err(at)?)
}

/// Whether that is all that a file has. Of a longer one than any first lines are, it is not looked for.
fn has_only_text_and_zeros(path: &Path) -> std::io::Result<bool> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() > MOST_LOST {
        return Ok(false);
    }
    let mut reader = BufReader::new(file.take(MOST_LOST));
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            return Ok(true);
        }
        if part.iter().any(|byte| byte.is_ascii_control() && !matches!(byte, 0 | b'\n')) {
            return Ok(false);
        }
        let read = part.len();
        reader.consume(read);
    }
}

/// What people can do about a journal that is not what it was.
const MEND: &str = "put a copy of it back, or resume from a saved state with another file as `journal`, where what arrived after \
                    that state is found again";

/// How far a journal reached that a state rests on (docs/format/state.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct JournalMark {
    pub(in crate::pipeline) rank: u32,
    pub(in crate::pipeline) world_size: u32,
    /// Whole lines, and their bytes.
    pub(in crate::pipeline) lines: u64,
    pub(in crate::pipeline) bytes: u64,
    /// XXH3-64 of the first line, and of all these bytes, hexadecimal.
    first: String,
    hash: String,
}

impl JournalMark {
    pub(in crate::pipeline) fn new(rank: u32, world_size: u32, place: Place) -> Self {
        let Place { lines, bytes, hash, first } = place;
        let [first, hash] = [first, hash].map(|hash| format!("{hash:016x}"));
        JournalMark { rank, world_size, lines, bytes, first, hash }
    }
}

/// Of several states of one run, or of one before and after: the later mark of each journal.
pub(in crate::pipeline) fn latest(marks: impl IntoIterator<Item = JournalMark>) -> Vec<JournalMark> {
    let mut all: BTreeMap<(u32, u32), JournalMark> = BTreeMap::new();
    for mark in marks {
        let known = all.entry((mark.world_size, mark.rank)).or_insert_with(|| mark.clone());
        if mark.bytes > known.bytes {
            *known = mark;
        }
    }
    all.into_values().collect()
}

/// Rank and world size in the name of a journal beside `path`.
fn rank_of(path: &Path, journal: &Path) -> Option<(u32, u32)> {
    let [own, name] = [path, journal].map(|path| path.file_name()?.to_str());
    match name?.strip_prefix(own?)? {
        "" => Some((0, 1)),
        rest => {
            let (rank, world) = rest.strip_prefix('.')?.split_once("-of-")?;
            Some((rank.parse().ok()?, world.parse().ok()?))
        }
    }
}

/// The journals or ledgers that there are: `PATH` and those of ranks beside it.
pub(in crate::pipeline) fn family(path: &Path) -> Result<Vec<PathBuf>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = |e| Error::path(path, &e);
    let own = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_rank = |rest: &str| {
        let numbers = rest.strip_prefix('.').and_then(|rest| rest.split_once("-of-"));
        numbers.is_some_and(|(r, n)| r.parse::<u32>().is_ok() && n.parse::<u32>().is_ok())
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(own));
        if rest.is_some_and(|rest| rest.is_empty() || is_rank(rest)) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

impl History {
    /// Reads the journals at `path`, with the ids that `files` are known by already.
    ///
    /// Errors: `Path` for one that cannot be read, `State` for those of different runs.
    pub(in crate::pipeline) fn read(path: &Path, files: Files) -> Result<Self> {
        let mut history = History { agreed: true, ..History::default() };
        let mut common = files.into_iter().map(|(loader, files)| (loader, Common::of(files))).collect();
        for journal in family(path)? {
            history.add(&journal, &mut common)?;
        }
        Ok(history.sorted(common))
    }

    /// Whether the journals reach as far as they did when a state was taken, where they are the ones that it rests on.
    ///
    /// Errors: `State`, with the file and what to do, for one that was cut, or that another run wrote.
    pub(in crate::pipeline) fn check_reached(&self, path: &Path, state: &LoaderState) -> Result<()> {
        for mark in &state.journals {
            let file = of_rank(path, mark.rank.into(), mark.world_size.into());
            let Some(read) = self.read.get(&file) else { continue };
            let refused = |what: String| {
                let lines = mark.lines;
                Err(Error::State(format!("{}: {what}, and the state rests on {lines} lines: {MEND}", file.display())))
            };
            if format!("{:016x}", read.first) != mark.first {
                let next = state.outputs.iter().map(|(alias, output)| (alias.clone(), output.batch)).collect();
                if self.begun.get(&file) == Some(&next) {
                    continue;
                }
                return refused("it is not the journal that its run wrote".to_owned());
            }
            if read.bytes < mark.bytes {
                return refused(format!("it was cut: it has {} whole lines", read.lines));
            }
            let found = Journal::hash_of(&file, mark.bytes).map_err(|e| Error::path(&file, &e))?;
            if found.map(|hash| format!("{hash:016x}")).as_ref() != Some(&mark.hash) {
                return refused(format!("it says something else before byte {}", mark.bytes));
            }
        }
        Ok(())
    }

    /// How far the journals beside `path` were read that ranks of another number than `world` wrote.
    pub(in crate::pipeline) fn marks(&self, path: &Path, world: u32) -> Vec<JournalMark> {
        let mark = |(file, place): (&PathBuf, &Place)| {
            let (rank, of) = rank_of(path, file).filter(|(_, of)| *of != world)?;
            Some(JournalMark::new(rank, of, *place))
        };
        self.read.iter().filter_map(mark).collect()
    }

    /// Files of a loader stage that were gone before a pool and lane could take them in, and that it took in later, if at all.
    pub(in crate::pipeline) fn gone(&self, loader: &str, taker: &Taker) -> impl Iterator<Item = u64> {
        let of = move |pool: &str, lanes: &[u32]| pool == taker.0 && taker.1.is_none_or(|lane| lanes.contains(&lane));
        let gone = self.gone.get(loader).into_iter().flatten();
        let gone = gone.filter(move |gone| gone.of.as_ref().is_none_or(|(pool, lanes)| of(pool, lanes)));
        gone.flat_map(|gone| &gone.files).copied()
    }

    /// An id of a loader stage that no journal mentions, nor any above it.
    pub(in crate::pipeline) fn next(&self, loader: &str) -> u64 {
        self.numbers.values().filter_map(|numbers| numbers.get(loader)).map(Numbering::next).max().unwrap_or(0)
    }

    /// The events that the journal `own` needs: files that this run gives other ids, and what a state alone says was read of the others.
    pub(in crate::pipeline) fn untold(&self, own: &Path) -> Vec<Event> {
        let unknown = BTreeMap::new();
        let numbers = self.numbers.get(own).unwrap_or(&unknown);
        let mut events = Vec::new();
        for (loader, all) in &self.files {
            let files = numbers.get(loader).cloned().unwrap_or_default().lacks(all);
            let told: BTreeSet<u64> = files.iter().map(|file| file.id).collect();
            let read = self.untold.get(loader).into_iter().flatten().filter(|(id, _)| !told.contains(id));
            let read: Vec<(u64, String)> = read.cloned().collect();
            if !files.is_empty() {
                events.push(Event::Known { loader: loader.clone(), files });
            }
            if !read.is_empty() {
                events.push(Event::Read { loader: loader.clone(), files: read });
            }
        }
        events
    }

    /// Whether games went to the sides to which this config sends them.
    ///
    /// Errors: `Config` in `journal`.
    pub(in crate::pipeline) fn check_splits(&self, config: &DataLoaderConfig) -> Result<()> {
        let other = splits(config).find(|(stage, by)| {
            let told = self.splits.get(*stage).copied().unwrap_or(SplitBy::File);
            self.seed.is_some() && told != *by
        });
        let Some((stage, by)) = other else { return Ok(()) };
        let advice = if by == SplitBy::Name { NAMED } else { "" };
        let text = format!("it tells of a run whose `{stage}` did not go by {}{advice}", by.name());
        Err(Error::config("journal", text))
    }

    fn sorted(mut self, common: BTreeMap<String, Common>) -> Self {
        for admissions in self.admissions.values_mut() {
            admissions.make_contiguous().sort_by_key(|admission| admission.at);
        }
        self.untold = common.iter().map(|(loader, common)| (loader.clone(), common.untold())).collect();
        self.files = common.into_iter().map(|(loader, common)| (loader, common.files())).collect();
        // A first scan that found nothing is one, too.
        for loader in self.first.keys() {
            self.files.entry(loader.clone()).or_default();
        }
        self
    }

    fn add(&mut self, path: &Path, common: &mut BTreeMap<String, Common>) -> Result<()> {
        // Ids of this journal, as they are common.
        let mut numbers: BTreeMap<String, Numbering> = BTreeMap::new();
        let bounded = |at: u64| match at < BOUND {
            true => Ok(at),
            false => Err(Error::State(format!(
                "{}: draw {at} is impossible, the limit is 2^44; the journal is corrupt",
                path.display()
            ))),
        };
        let mut admissions = Vec::new();
        let (events, place) = Journal::read_to::<Event>(path).map_err(|e| match e.kind() {
            ErrorKind::InvalidData => Error::path(path, &std::io::Error::new(e.kind(), format!("{e}: {MEND}"))),
            _ => Error::path(path, &e),
        })?;
        self.read.insert(path.to_owned(), place);
        let mut renumbered = BTreeSet::new();
        for event in &events {
            for (loader, file) in event.files() {
                if matches!(event, Event::Known { .. }) {
                    renumbered.insert(loader);
                }
                let (numbers, common) = of_loader(&mut numbers, common, loader);
                numbers.name(file, common, !renumbered.contains(loader));
            }
        }
        for event in events {
            let event = match event {
                Event::From { seed, at } => {
                    self.begun.insert(path.to_owned(), at);
                    Event::Seed(seed)
                }
                event => event,
            };
            match event {
                Event::From { .. } => {}
                Event::Seed(seed) if *self.seed.get_or_insert(seed) != seed => {
                    let text = format!("{} is the journal of another run than those beside it", path.display());
                    return Err(Error::State(text));
                }
                Event::Seed(_) => {}
                Event::Split { stage, by } => _ = self.splits.insert(stage, by),
                Event::Initial { loader, files } => {
                    let (numbers, common) = of_loader(&mut numbers, common, &loader);
                    let found: BTreeSet<u64> = files.iter().map(|file| numbers.know(file, common)).collect();
                    self.agreed &= self.first.entry(loader).or_insert_with(|| found.clone()) == &found;
                }
                Event::Known { loader, files } => {
                    let (numbers, common) = of_loader(&mut numbers, common, &loader);
                    numbers.know_anew(&files, common);
                    self.went_on |= !self.first.contains_key(&loader);
                }
                Event::Gone { pool, lanes, loader, files } => {
                    let known = numbers.get(&loader);
                    let files = files.iter().filter_map(|file| known?.of(*file)).collect();
                    self.gone.entry(loader).or_default().push(Absent { of: pool.map(|pool| (pool, lanes)), files });
                }
                Event::Read { loader, files } => {
                    let (numbers, common) = of_loader(&mut numbers, common, &loader);
                    for (file, digest) in files {
                        let what = |e| Error::State(format!("{}: what was read of file {file}: {e}", path.display()));
                        numbers.read(file, u64::from_str_radix(&digest, 16).map_err(what)?, common);
                    }
                }
                Event::Reached { pool, lane, at } => {
                    let reached = self.reached.entry((pool, lane)).or_default();
                    *reached = bounded(at)?.max(*reached);
                }
                Event::Admit { pool, lane, loader, file, admission } => {
                    let (numbers, common) = of_loader(&mut numbers, common, &loader);
                    let id = numbers.know(&file, common);
                    let old = admission.old.map(|old| numbers.of(old).unwrap_or(old));
                    let at = bounded(admission.at)?;
                    admissions.push(((pool, lane), Admission { id, at, old, ..admission }));
                }
            }
        }
        self.numbers.insert(path.to_owned(), numbers);
        for (of, admission) in admissions {
            let known = self.admissions.entry(of).or_default();
            if !known.contains(&admission) {
                known.push_back(admission);
            }
        }
        Ok(())
    }
}

/// What is known of the files of a loader stage: by one journal, and by all.
fn of_loader<'a>(
    numbers: &'a mut BTreeMap<String, Numbering>,
    common: &'a mut BTreeMap<String, Common>,
    loader: &str,
) -> (&'a mut Numbering, &'a mut Common) {
    (numbers.entry(loader.to_owned()).or_default(), common.entry(loader.to_owned()).or_default())
}

#[cfg(test)]
mod tests;
