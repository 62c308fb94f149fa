//! The journals of a run -> what arrived, and before which draw of which pool and lane: one file, or one for each rank.
//! Reads what any number of ranks wrote, under common ids; refuses files of different runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::drawer::Admission;
use super::parts::Common;
use super::roster::{Event, Recorded};
use crate::error::{Error, Result};
use crate::runtime::journal::Journal;

/// Files of each loader stage.
pub(super) type Files = BTreeMap<String, Vec<Recorded>>;

/// What the journals of a run say together.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) seed: Option<u64>,
    /// Every file, under one id.
    pub(super) files: Files,
    /// Those of the first scan, by loader stage.
    pub(super) first: BTreeMap<String, BTreeSet<u64>>,
    /// Admissions of each pool and lane, in the order of their draws.
    pub(super) admissions: BTreeMap<(String, Option<u32>), VecDeque<Admission>>,
    /// Draws of each pool and lane below these may have been made.
    pub(super) reached: BTreeMap<(String, Option<u32>), u64>,
    /// Whether all ranks found the same files first.
    pub(super) agreed: bool,
}

/// Where a rank writes its journal or ledger: `PATH`, or `PATH.R-of-N` where there are several.
pub(super) fn of_rank(path: &Path, rank: u64, world: u64) -> PathBuf {
    if world == 1 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{rank}-of-{world}"));
    name.into()
}

/// The journals or ledgers that there are: `PATH` and those of ranks beside it.
pub(super) fn family(path: &Path) -> Result<Vec<PathBuf>> {
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
    pub(super) fn read(path: &Path, files: Files) -> Result<Self> {
        let mut history = History { agreed: true, ..History::default() };
        let mut common = files.into_iter().map(|(loader, files)| (loader, Common::of(files))).collect();
        for journal in family(path)? {
            history.add(&journal, &mut common)?;
        }
        for admissions in history.admissions.values_mut() {
            admissions.make_contiguous().sort_by_key(|admission| admission.at);
        }
        history.files = common.into_iter().map(|(loader, common)| (loader, common.files())).collect();
        Ok(history)
    }

    fn add(&mut self, path: &Path, common: &mut BTreeMap<String, Common>) -> Result<()> {
        // Ids of this journal, as they are common.
        let mut ids: HashMap<(String, u64), u64> = HashMap::new();
        let mut know = |loader: &String, file: &Recorded| {
            let id = common.entry(loader.clone()).or_default().add(file);
            ids.insert((loader.clone(), file.id), id);
            id
        };
        let mut admissions = Vec::new();
        for event in Journal::read::<Event>(path).map_err(|e| Error::path(path, &e))? {
            match event {
                Event::Seed(seed) if *self.seed.get_or_insert(seed) != seed => {
                    let text = format!("{} is the journal of another run than those beside it", path.display());
                    return Err(Error::State(text));
                }
                Event::Seed(_) => {}
                Event::Initial { loader, files } => {
                    let found: BTreeSet<u64> = files.iter().map(|file| know(&loader, file)).collect();
                    self.agreed &= self.first.entry(loader).or_insert_with(|| found.clone()) == &found;
                }
                Event::Known { loader, files } => {
                    for file in &files {
                        know(&loader, file);
                    }
                }
                Event::Reached { pool, lane, at } => {
                    let reached = self.reached.entry((pool, lane)).or_default();
                    *reached = at.max(*reached);
                }
                Event::Admit { pool, lane, loader, file, admission } => {
                    let admission = Admission { id: know(&loader, &file), ..admission };
                    admissions.push(((pool, lane), loader, admission));
                }
            }
        }
        for (of, loader, admission) in admissions {
            let common = |old| ids.get(&(loader.clone(), old)).copied().unwrap_or(old);
            let admission = Admission { old: admission.old.map(common), ..admission };
            let known = self.admissions.entry(of).or_default();
            if !known.contains(&admission) {
                known.push_back(admission);
            }
        }
        Ok(())
    }
}
