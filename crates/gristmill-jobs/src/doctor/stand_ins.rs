//! Data sets that another reader has read, as files in their stead -> places in those data sets, and what it could not read.
//! Knows neither the reader nor its formats: names, numbers of episodes, words for faults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_format::Kind;
use serde::Deserialize;

use super::checks::CHECKS;
use super::{Epoch, Sizes};
use crate::files;
use crate::work::{Fault, Verification};

/// A data set of a form that the engine does not read, written as files that it does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StandIn {
    /// The data set, as people know it.
    pub path: String,
    /// Which data it belongs to: 0 for those that are examined, from 1 on the held-out data in their order.
    pub side: u32,
    /// Its form, such as `demo.minari.hdf5`.
    pub format: String,
    /// Bytes of its own files.
    pub size: u64,
    /// Seconds in which its reader read it.
    pub seconds: f64,
    /// The files in its stead.
    pub files: Vec<Pieces>,
    /// What its reader could not read, or found broken.
    pub faults: Vec<Reported>,
}

/// A file in the stead of some episodes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pieces {
    /// The file.
    pub file: PathBuf,
    /// By chunk of the file, the number of the episode in the data set.
    pub episodes: Vec<u64>,
    /// Steps in it.
    pub frames: u64,
}

/// A fault that another reader found.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reported {
    /// The episode; absent where it is of the data set as a whole.
    pub chunk: Option<u64>,
    /// The word for what it is, as errors have it.
    pub kind: String,
    /// The rule of the checks that it breaks, where it is readable.
    pub rule: Option<String>,
    /// What was expected and what was found.
    pub detail: String,
}

/// The data sets that stand for what the engine does not read.
#[derive(Debug, Default)]
pub(super) struct StandIns<'a> {
    sets: &'a [StandIn],
    /// By file, its data set and the numbers of its chunks.
    of: BTreeMap<String, (&'a StandIn, &'a Pieces)>,
}

impl<'a> StandIns<'a> {
    pub(super) fn new(sets: &'a [StandIn]) -> Self {
        let named = |set: &'a StandIn| set.files.iter().map(move |one| (one.file.display().to_string(), (set, one)));
        StandIns { sets, of: sets.iter().flat_map(named).collect() }
    }

    /// What the engine reads of one of the sides, whose path is `path`: the files that stand for it, and itself unless it is
    /// one of the data sets.
    pub(super) fn paths(&self, side: u32, path: &Path) -> Vec<PathBuf> {
        let own = self.sets.iter().filter(|set| set.side == side);
        let whole = own.clone().any(|set| Path::new(&set.path) == path);
        let files = own.flat_map(|set| set.files.iter().map(|one| one.file.clone()));
        (!whole).then(|| path.to_owned()).into_iter().chain(files).collect()
    }

    /// The format of a file, and its bytes, where it stands for something; the first file of a data set has all of them.
    pub(super) fn known(&self, file: &str) -> Option<(&str, u64)> {
        let (set, piece) = self.of.get(file)?;
        let first = set.files.first().is_some_and(|first| first.file == piece.file);
        Some((&set.format, if first { set.size } else { 0 }))
    }

    /// The data set that a file stands for.
    pub(super) fn path(&self, file: &str) -> Option<&str> {
        Some(&self.of.get(file)?.0.path)
    }

    /// Adds what the readers found, takes away that a folder of such data sets alone holds nothing, and names data sets and episodes
    /// instead of the files in their stead.
    pub(super) fn settle(&self, path: &Path, keep: usize, found: &mut Verification) {
        let there = self.sets.iter().any(|set| set.side == 0);
        let named = path.display().to_string();
        let nothing = |fault: &Fault| fault.kind == Kind::Empty.name() && fault.file.as_ref() == Some(&named);
        found.firsts.retain(|_, firsts| !(there && firsts.count == 1 && firsts.faults.iter().all(nothing)));
        for set in self.sets.iter().filter(|set| set.side == 0) {
            for reported in &set.faults {
                found.add(keep, reported.of(set));
            }
        }
        for firsts in found.firsts.values_mut() {
            firsts.faults.iter_mut().for_each(|fault| self.place(fault));
        }
    }

    /// How many files below `path` are those of data sets that something stands for.
    pub(super) fn covered(&self, path: &Path) -> u64 {
        let Ok(listing) = files::list(path) else { return 0 };
        let of = |file: &Path| self.sets.iter().any(|set| set.side == 0 && file.starts_with(&set.path));
        listing.files.iter().filter(|file| of(Path::new(file.path()))).count() as u64
    }

    fn place(&self, fault: &mut Fault) {
        for (file, (set, piece)) in &self.of {
            if !fault.detail.contains(file) {
                continue;
            }
            for (chunk, episode) in piece.episodes.iter().enumerate() {
                let (made, known) = (format!("chunk {chunk} of {file}"), format!("chunk {episode} of {}", set.path));
                if fault.detail.contains(&made) {
                    fault.detail = fault.detail.replace(&made, &known);
                    break;
                }
            }
            fault.detail = fault.detail.replace(file, &set.path);
        }
        let Some((set, piece)) = fault.file.as_ref().and_then(|file| self.of.get(file)) else { return };
        fault.file = Some(set.path.clone());
        fault.chunk = fault.chunk.map(|chunk| piece.episodes.get(chunk as usize).copied().unwrap_or(chunk));
        // Those of the file in its stead.
        (fault.member, fault.offset) = (None, None);
    }

    /// Sizes and time with what is known of the data sets themselves: how fast their reader was, in place of how fast files in their
    /// stead are read. `stored` and `packed` are left out, which would be those of the other files.
    pub(super) fn measures(&self, sizes: &mut Sizes, epoch: &mut Option<Epoch>, all: u64) {
        let sets: Vec<&StandIn> = self.sets.iter().filter(|set| set.side == 0).collect();
        let read: u64 = sets.iter().flat_map(|set| &set.files).map(|one| one.frames).sum();
        if read > 0 {
            let seconds: f64 = sets.iter().map(|set| set.seconds).sum();
            let frames_per_second = read as f64 / seconds.max(1e-6);
            let seconds = all as f64 / frames_per_second;
            *epoch = Some(Epoch { seconds, frames_per_second, workers: 1, sample: read });
            (sizes.stored, sizes.packed) = (0, None);
        }
    }
}

impl StandIn {
    /// Reads the text of a list of them.
    ///
    /// Errors: `Config` in `stand_ins`.
    pub fn read(text: &str) -> Result<Vec<Self>> {
        serde_json::from_str(text).map_err(|e| Error::config("stand_ins", e.to_string()))
    }
}

impl Reported {
    fn of(&self, set: &StandIn) -> Fault {
        let known = CHECKS.iter().flat_map(|check| check.rules).find(|rule| self.rule.as_deref() == Some(**rule));
        let kind = word(&self.kind);
        Fault {
            file: Some(set.path.clone()),
            chunk: self.chunk,
            kind,
            unreadable: UNREAD.contains(&kind),
            rule: known.copied(),
            detail: self.detail.clone(),
            ..Fault::default()
        }
    }
}

/// Words for what the system refuses to read.
const UNREAD: [&str; 3] = ["permission", "mount_lost", "io"];

/// The word of an error of another reader; one that is not known here says that bytes are damaged.
fn word(kind: &str) -> &'static str {
    const KINDS: [Kind; 11] = [
        Kind::Truncated,
        Kind::WrongSize,
        Kind::UnknownVersion,
        Kind::UnknownFormat,
        Kind::TooLarge,
        Kind::Empty,
        Kind::OutOfRange,
        Kind::Unsupported,
        Kind::Unfit,
        Kind::Forbidden,
        Kind::Missing,
    ];
    let of_kinds = KINDS.map(Kind::name).into_iter();
    of_kinds.chain(UNREAD).chain(["not_found"]).find(|word| *word == kind).unwrap_or(Kind::Corrupt.name())
}
