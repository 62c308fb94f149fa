//! A path -> the signs of each of its files and packs, one after another, made by several threads.
//! A chunk that cannot be decoded is passed over: `verify` says what is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_engine::store::place::resolved;
use gristmill_format::source::Chunk;

use super::stand_ins::StandIns;
use super::twins::Index;
use crate::content::contents;
use crate::files::{self, Closed, Found};
use crate::in_order::{Hands, InOrder};
use crate::kinds;
use crate::work::signs::MANY;
use crate::work::{Decoded, Fault, Met, Opened, Signs};

/// Numbers of one file that are this many times those of the first are of another scale.
const SCALE: f64 = 64.0;

/// Games whose results are all one are a sign from this many on.
const GAMES: u64 = 20;

/// Buffers that are used again.
type Hand = (Vec<u8>, Chunk);

/// What a look at some data gathers.
pub(super) struct Look<'a> {
    stand_ins: &'a StandIns<'a>,
    pub(super) signs: Signs,
    pub(super) index: Index,
    /// Files by format.
    pub(super) formats: BTreeMap<String, u64>,
    /// Bytes of the files.
    pub(super) size: u64,
    /// Of each format, or data set that something stands for: the first file and its records.
    layouts: BTreeMap<String, (String, String)>,
    /// Of each format and field: the first file and its scale.
    scales: BTreeMap<(String, String), (String, f64)>,
}

/// How files are read.
pub(super) struct Manner<'a> {
    pub(super) workers: usize,
    pub(super) stop: &'a Arc<AtomicBool>,
}

/// One file, looked through.
struct File {
    path: String,
    size: u64,
    format: &'static str,
    signs: Signs,
}

impl<'a> Look<'a> {
    /// A look at nothing yet.
    pub(super) fn new(stand_ins: &'a StandIns<'a>) -> Self {
        Look {
            stand_ins,
            signs: Signs::default(),
            index: Index::default(),
            formats: BTreeMap::new(),
            size: 0,
            layouts: BTreeMap::new(),
            scales: BTreeMap::new(),
        }
    }

    /// Looks through the files and packs at a path: the data themselves are side 0, held-out data others. It calls `progress`
    /// after each file.
    ///
    /// Errors: `Stopped`, and what is no fault of the data.
    pub(super) fn path(
        &mut self,
        (side, path): (u32, &Path),
        manner: &Manner<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let path = &*resolved(path)?;
        let Ok(listing) = files::list(path) else { return Ok(()) };
        let (count, files, hands) = (listing.files.len(), Arc::<[Closed]>::from(listing.files), Hands::default());
        let look = move |i: usize| file(&files[i], &hands);
        let started = InOrder::start(manner.workers.min(count.max(1)), count, manner.stop.clone(), look);
        let mut flow = started.map_err(|e| Error::path(path, &e))?;
        let mut done = 0;
        while let Some(found) = flow.next()? {
            done += 1;
            if let Some(found) = found {
                self.take(side, found);
            }
            progress(done);
        }
        drop(flow);
        for folder in listing.packs {
            self.rows((side, &folder), manner)?;
            done += 1;
            progress(done);
        }
        Ok(())
    }

    fn take(&mut self, side: u32, mut file: File) {
        let games = std::mem::take(&mut file.signs.games);
        self.index.take(side, &file.path, games, &mut self.signs);
        if side > 0 {
            return;
        }
        let (format, size) = self.stand_ins.known(&file.path).unwrap_or((file.format, file.size));
        // Further files in the stead of one data set are no data of their own.
        if size > 0 || file.size == 0 {
            *self.formats.entry(format.to_owned()).or_default() += 1;
        }
        self.size += size;
        self.drift(&mut file);
        self.signs.absorb(file.signs);
    }

    /// Holds the records of a file against those of the first of its format.
    fn drift(&mut self, file: &mut File) {
        let of = self.stand_ins.path(&file.path).unwrap_or(file.format).to_owned();
        if let Some(layout) = file.signs.layout.take() {
            let (first, known) = self.layouts.entry(of.clone()).or_insert_with(|| (file.path.clone(), layout.clone()));
            if *known != layout {
                let detail = format!("its records are {layout}; those of {first} are {known}");
                file.signs.add(sign("drift_fields", Some(&file.path), detail));
            }
        }
        for (name, (low, high)) in std::mem::take(&mut file.signs.scales) {
            let most = low.abs().max(high.abs());
            let (first, known) =
                self.scales.entry((of.clone(), name.clone())).or_insert_with(|| (file.path.clone(), most));
            if most > 0.0 && *known > 0.0 && (most / *known).max(*known / most) >= SCALE {
                let detail = format!("`{name}` reaches {most}; in {first} it reaches {known}");
                file.signs.add(sign("drift_scale", Some(&file.path), detail));
            }
        }
    }

    /// A pack of rows: its games by their content, and the signs that its kind knows.
    fn rows(&mut self, (side, folder): (u32, &Path), manner: &Manner<'_>) -> Result<()> {
        // What cannot be opened or read is a fault that `verify` names.
        let Ok(pack) = selection::open(folder, Residence::Mapped) else { return Ok(()) };
        let games = match contents(&pack, manner.workers, manner.stop, &mut |_, _| {}) {
            Err(Error::Stopped) => return Err(Error::Stopped),
            other => other.unwrap_or_default(),
        };
        let games = games.iter().filter(|game| !pack.stretches(game.game).is_empty());
        let met = games.map(|game| Met {
            key: game.key,
            image: game.image,
            records: game.records as u64,
            chunk: game.game,
            member: None,
        });
        self.index.take(side, &folder.display().to_string(), met.collect(), &mut self.signs);
        if side > 0 {
            return Ok(());
        }
        *self.formats.entry(pack.form().to_owned()).or_default() += 1;
        self.size += pack.total() * pack.clone().table().layout().size() as u64;
        for kind in kinds::all() {
            let mut signs = Signs::default();
            match kind.signs_of_rows(folder, &mut signs) {
                Ok(true) => self.signs.absorb(signs),
                Ok(false) => {}
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// The signs of all data together.
    pub(super) fn finish(mut self) -> Signs {
        for (name, seen) in &self.signs.values {
            if seen.count >= MANY && !seen.varies {
                let detail = format!("`{name}` is {} in all {} frames that have it", seen.shown, seen.count);
                self.signs.found.add(0, sign("frozen_values", None, detail));
            }
        }
        let games: u64 = self.signs.results.values().sum();
        if let [(name, _)] = self.signs.results.iter().collect::<Vec<_>>()[..]
            && games >= GAMES
        {
            let detail = format!("all {games} games are {name}");
            self.signs.found.add(0, sign("one_result", None, detail));
        }
        self.signs
    }
}

fn sign(rule: &'static str, file: Option<&str>, detail: String) -> Fault {
    Fault { rule: Some(rule), kind: "out_of_range", file: file.map(str::to_owned), detail, ..Fault::default() }
}

/// Looks through a file, on any thread; nothing where it is no data.
fn file(closed: &Closed, hands: &Hands<Hand>) -> Option<File> {
    let Found::File(file) = closed.open() else { return None };
    let mut signs = Signs::default();
    if !file.kind.signs_whole(&file, &mut signs) {
        hands.with(|hand| chunks(&file, hand, &mut signs));
    }
    Some(File { path: file.path.clone(), size: file.size, format: file.source.describe().format, signs })
}

fn chunks(file: &Opened, (stored, chunk): &mut Hand, signs: &mut Signs) {
    for i in 0..file.source.len() {
        if file.fetch(i, stored).and_then(|()| file.decode(i, stored, chunk)).is_ok() {
            // Records that break a rule are named by `verify`; of them no sign is missed here.
            let _ = file.kind.signs(&Decoded { file, i, stored, chunk }, signs);
        }
    }
}
