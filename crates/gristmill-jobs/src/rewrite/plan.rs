//! A path and the container wanted -> units of work: which source files give which target, in order of name.
//! Looks at names and, where they say nothing, at first bytes and the index of chunk files; decodes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds;
use gristmill_engine::store::files::is_folder;
use gristmill_engine::store::{self, FileStat, Store};
use gristmill_format::chess::pack::CODEC;
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::detect::{Format, HEAD, access, detect};
use gristmill_format::source::Access;

use super::MESSAGES;
use crate::shares;

/// What the names of files end with of which games come out in tars: packs are made by another job, and text by another.
const MADE: [&str; 5] = [".chunks", ".pgn", ".pgn.gz", ".pgn.zst", ".pgn.zstd"];

/// A name without such an ending.
fn stem(name: &str) -> Option<&str> {
    MADE.iter().find_map(|ending| name.strip_suffix(ending))
}

/// What the games are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// What they were in.
    Same,
    /// A file each; those of `a.tar`, `a.chunks` or `a.pgn` in a folder `a`.
    Loose,
    /// Tars of at most this many games; an existing tar stays one.
    Tars(usize),
}

/// Where the chunks of a unit go, by a name below the folder of each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// One chunk, one file.
    File(String),
    /// A tar of all of them.
    Tar(String),
    /// A file for each, in this folder.
    Folder(String),
}

impl Target {
    pub(super) fn name(&self) -> &str {
        match self {
            Target::File(name) | Target::Tar(name) | Target::Folder(name) => name,
        }
    }
}

/// Source files that are done together.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) sources: Vec<FileStat>,
    pub(super) target: Target,
}

impl Unit {
    /// What shares are cut by: its files together, by their names and lengths.
    pub(super) fn share_of(&self) -> shares::Unit {
        let names = match &self.sources[..] {
            [one] => one.name.to_string(),
            several => several.iter().map(|stat| format!("{}\0{}\0", stat.name, stat.size)).collect(),
        };
        let bytes = self.sources.iter().fold(0, |sum: u64, stat| sum.saturating_add(stat.size));
        shares::Unit { name: names, bytes, inputs: self.sources.len() as u64 }
    }
}

/// Everything that is to be done.
pub(super) struct Plan {
    pub(super) store: Arc<dyn Store>,
    pub(super) units: Vec<Arc<Unit>>,
    /// Files that hold games.
    pub(super) files: u64,
    /// Files that hold none.
    pub(super) skipped: u64,
    /// Files and folders that could not be read, by kind, and messages about them.
    pub(super) unlisted: BTreeMap<String, u64>,
    pub(super) faults: Vec<String>,
}

impl Plan {
    /// Lists what lies at `path`.
    ///
    /// Errors: `Path` when it cannot be read, `Config` when it is a file of no known format.
    pub(super) fn new(path: &Path, container: Container) -> Result<Self> {
        let folder = is_folder(path)?;
        let root = match folder {
            true => path,
            false => path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        };
        let store = store::open(root)?;
        let mut plan =
            Plan { store, units: Vec::new(), files: 0, skipped: 0, unlisted: BTreeMap::new(), faults: Vec::new() };
        let found = if folder { plan.list() } else { vec![one(&*plan.store, path)?] };
        let mut sources = Vec::new();
        for stat in found {
            match is_tar(&*plan.store, &stat) {
                Ok(Some(tar)) => sources.push((stat, tar)),
                Ok(None) if folder => plan.skipped += 1,
                Ok(None) => {
                    let text = format!("{} holds no chess games; expected a game or a tar of games", path.display());
                    return Err(Error::config("path", text));
                }
                Err(e) if folder => plan.fault(e.kind().name(), e.to_string(), 1),
                Err(e) => return Err(e.into()),
            }
        }
        plan.files = sources.len() as u64;
        plan.units = units(sources, container).into_iter().map(Arc::new).collect();
        Ok(plan)
    }

    fn list(&mut self) -> Vec<FileStat> {
        let mut found = Vec::new();
        let faults = self.store.list(&mut |stat| {
            found.push(stat);
            ControlFlow::Continue(())
        });
        found.sort_unstable_by(|a, b| gristmill_engine::key::natural_cmp(&a.name, &b.name));
        for (kind, count) in faults.counts() {
            let message = faults.latest(kind).unwrap_or_default();
            self.fault(kind, message.to_owned(), count);
        }
        found
    }

    fn fault(&mut self, kind: &str, message: String, count: u64) {
        *self.unlisted.entry(kind.to_owned()).or_default() += count;
        if self.faults.len() < MESSAGES {
            self.faults.push(message);
        }
    }
}

fn one(store: &dyn Store, path: &Path) -> Result<FileStat> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut stat = store.stat(&name).map_err(gristmill_engine::Error::from)?;
    stat.name = name.into();
    Ok(stat)
}

/// Whether the file holds many games; `None` when it holds no chess games.
fn is_tar(store: &dyn Store, stat: &FileStat) -> gristmill_format::Result<Option<bool>> {
    let mut format = detect(&stat.name, &[])?;
    if format.is_none() && stat.key() != "LICENSE" {
        let mut head = [0; HEAD];
        let n = store.open(&stat.name)?.read_at(0, &mut head)?;
        format = detect(&stat.name, &head[..n])?;
    }
    Ok(match format {
        Some(Format::ChessTar | Format::Pgn | Format::PackedPgn) => Some(true),
        Some(Format::Chunks) => holds_chess(store, stat)?.then_some(true),
        Some(Format::ChessGame) => Some(false),
        Some(format) if access(format) == Access::Solid => refuse_packed_tar(stat.key()).map(|()| None)?,
        _ => None,
    })
}

/// Endings of tars that were compressed as a whole.
const PACKED_TARS: [&str; 5] = [".tar.gz", ".tgz", ".tar.zst", ".tar.zstd", ".tzst"];

/// Refuses games of which none can be reached alone.
///
/// Errors: `Unsupported`, with what to do.
fn refuse_packed_tar(key: &str) -> gristmill_format::Result<()> {
    let key = key.to_ascii_lowercase();
    if !PACKED_TARS.iter().any(|ending| key.ends_with(ending)) {
        return Ok(());
    }
    let advice =
        "a compressed tar is solid: no game in it can be reached alone; unpack it, or store it as a plain .tar";
    Err(gristmill_format::Error::new(gristmill_format::Kind::Unsupported, advice))
}

/// Whether the chunks of a chunk file are chess games. One that cannot be opened is taken for such: who reads it says why.
///
/// Errors: `Unsupported` for chunks of a kind that is not known here.
fn holds_chess(store: &dyn Store, stat: &FileStat) -> gristmill_format::Result<bool> {
    let Ok(index) = store.open(&stat.name).and_then(|file| ChunkFile::open(&*file)) else { return Ok(true) };
    let codec = kinds::codec(index.codec()).map_err(|e| e.in_source(stat.name.to_string()))?;
    Ok(codec.tag() == CODEC)
}

fn units(sources: Vec<(FileStat, bool)>, container: Container) -> Vec<Unit> {
    let folders: HashSet<String> =
        sources.iter().flat_map(|(stat, _)| parents(&stat.name)).map(str::to_owned).collect();
    let names: HashSet<String> = sources.iter().map(|(stat, _)| stat.name.to_string()).collect();
    // The tar of each folder that is being filled: its unit and its number.
    let mut open: HashMap<String, (usize, u64)> = HashMap::new();
    let mut units: Vec<Unit> = Vec::new();
    for (stat, tar) in sources {
        let name = stat.name.to_string();
        let target = match (container, tar) {
            (Container::Same | Container::Tars(_), true) => match stem(&name) {
                Some(stem) => Target::Tar(format!("{stem}.tar")),
                None => Target::Tar(name),
            },
            (Container::Same | Container::Loose, false) => Target::File(name),
            (Container::Loose, true) => match name.strip_suffix(".tar").or(stem(&name)) {
                Some(stem) if !folders.contains(stem) => Target::Folder(stem.to_owned()),
                _ => Target::Folder(name),
            },
            (Container::Tars(most), false) => {
                let folder = parents(&name).next().unwrap_or("").to_owned();
                let (at, number) = open.get(&folder).copied().unwrap_or((usize::MAX, 0));
                if let Some(unit) = units.get_mut(at)
                    && unit.sources.len() < most
                {
                    unit.sources.push(stat);
                    continue;
                }
                let slash = if folder.is_empty() { "" } else { "/" };
                let called = |number: u64| format!("{folder}{slash}games-{number:06}.tar");
                let first = if at == usize::MAX { 0 } else { number + 1 };
                let number = (first..).find(|number| !names.contains(&called(*number))).unwrap_or(first);
                let target = Target::Tar(called(number));
                open.insert(folder, (units.len(), number));
                target
            }
        };
        units.push(Unit { sources: vec![stat], target });
    }
    units
}

/// The folders that a name lies in, innermost first.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('/').map(|(i, _)| &name[..i])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat_of(name: &str) -> FileStat {
        FileStat { name: name.into(), size: 1, mtime_ns: 0, device: 0, inode: 0 }
    }

    fn planned(names: &[&str], container: Container) -> Vec<(String, usize)> {
        let sources = names.iter().map(|name| (stat_of(name), name.ends_with(".tar"))).collect();
        let shown = |unit: Unit| (format!("{:?}", unit.target), unit.sources.len());
        units(sources, container).into_iter().map(shown).collect()
    }

    fn target(kind: &str, name: &str, sources: usize) -> (String, usize) {
        (format!("{kind}({name:?})"), sources)
    }

    #[test]
    fn every_source_has_one_target_of_its_own() {
        let packed = |container| units(vec![(stat_of("p/games-00000.chunks"), true)], container)[0].target.clone();
        assert_eq!(packed(Container::Same), Target::Tar("p/games-00000.tar".to_owned()));
        assert_eq!(packed(Container::Loose), Target::Folder("p/games-00000".to_owned()));
        let text = |container| units(vec![(stat_of("a.pgn.zst"), true)], container)[0].target.clone();
        assert_eq!(text(Container::Tars(7)), Target::Tar("a.tar".to_owned()));
        assert_eq!(text(Container::Loose), Target::Folder("a".to_owned()));
        let names = ["a/1.gz", "a/2.gz", "a/3.gz", "b.tar", "b/1.gz", "c.tar", "games-000000.tar", "x.gz"];
        let same = planned(&names, Container::Same);
        assert_eq!(same.iter().filter(|(target, _)| target.starts_with("Tar")).count(), 3);
        assert!(same.iter().zip(names).all(|((target, n), name)| target.contains(name) && *n == 1));
        let loose = planned(&names, Container::Loose);
        assert_eq!(loose[3], target("Folder", "b.tar", 1), "a folder b is there already");
        assert_eq!(loose[5], target("Folder", "c", 1));
        assert_eq!(
            planned(&names, Container::Tars(2)),
            [
                target("Tar", "a/games-000000.tar", 2),
                target("Tar", "a/games-000001.tar", 1),
                target("Tar", "b.tar", 1),
                target("Tar", "b/games-000000.tar", 1),
                target("Tar", "c.tar", 1),
                target("Tar", "games-000000.tar", 1),
                target("Tar", "games-000001.tar", 1),
            ]
        );
    }
}
