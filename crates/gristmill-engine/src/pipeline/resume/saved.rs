//! The text of a state <-> disk or a bucket: one file for a whole, a folder with one file per rank and step for parts.
//! A name is there only once its bytes are durable; a folder always has the last step that all ranks saved.

use std::path::{Path, PathBuf};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::document;
use gristmill_runtime::store::files;
use gristmill_runtime::store::place::{is_local, resolved};
use gristmill_runtime::store::publish::{sync_folder, withdraw, write_whole};

use crate::pipeline::resume::state::Part;

/// Bytes of the largest state that is read from a bucket.
const MOST: u64 = 1 << 32;

/// Steps of a rank that are kept: a crash while the ranks save leaves the step before.
const KEPT: usize = 2;

/// A file of a folder of parts: `step-000000018342.rank-3-of-4.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    /// Batches of all outputs together.
    step: u64,
    world: u32,
    rank: u32,
}

impl Name {
    fn text(self) -> String {
        let Name { step, world, rank } = self;
        format!("step-{step:012}.rank-{rank}-of-{world}.json")
    }

    fn parse(text: &str) -> Option<Self> {
        let (step, rest) = text.strip_prefix("step-")?.split_once(".rank-")?;
        let (rank, world) = rest.strip_suffix(".json")?.split_once("-of-")?;
        Some(Name { step: step.parse().ok()?, world: world.parse().ok()?, rank: rank.parse().ok()? })
    }
}

/// A step in a folder of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedStep {
    /// Batches of all outputs together.
    pub step: u64,
    /// How many ranks saved it together.
    pub world_size: u32,
    /// A rank whose part is not there; `None` of a whole step.
    pub lacks: Option<u32>,
}

impl std::fmt::Display for SavedStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lacks {
            Some(rank) => write!(f, "step {} lacks rank {rank} of {}", self.step, self.world_size),
            None => write!(f, "step {} of {} ranks", self.step, self.world_size),
        }
    }
}

/// Writes a state: as the file `path`, or as a step into the folder `path` where the state is a part or the folder is there. A bucket
/// has no empty folders: there a name that ends with `.json` is a file, and any other name a folder.
///
/// Errors: `Path`; `Config` in `path` for a part whose place is a file, and for a place that cannot be written; `Format` of writing in
/// a bucket.
pub(in crate::pipeline) fn write(path: &Path, text: &str, part: Option<Part>, step: u64) -> Result<()> {
    let path = &*resolved(path)?;
    let Some(own) = name(path, part, step)? else { return put(path, text) };
    if is_local(path) {
        std::fs::create_dir_all(path).map_err(|e| Error::path(path, &e))?;
    }
    put(&path.join(own.text()), text)?;
    for name in outdated(own, &names(path)?) {
        let useless = path.join(name.text());
        if is_local(path) { withdraw(&useless)? } else { files::remove(&useless, "path")? }
    }
    if is_local(path) { sync_folder(path) } else { Ok(()) }
}

/// The file that [`write`] makes of a state.
///
/// Errors: `Config` in `path`; `Path` where this process has no working directory.
pub(in crate::pipeline) fn file(path: &Path, part: Option<Part>, step: u64) -> Result<PathBuf> {
    let path = &*resolved(path)?;
    let path = if is_local(path) { std::path::absolute(path).map_err(|e| Error::path(path, &e))? } else { path.into() };
    Ok(name(&path, part, step)?.map_or_else(|| path.clone(), |own| path.join(own.text())))
}

/// The name of a state in a folder of steps; none for a file of its own.
fn name(path: &Path, part: Option<Part>, step: u64) -> Result<Option<Name>> {
    if part.is_none() && !is_folder(path) {
        return Ok(None);
    }
    if !is_local(path) && !is_folder(path) {
        let detail =
            "ranks save into a folder, and in a bucket a name that ends with `.json` is a file; take another name";
        return Err(Error::config("path", format!("{}: {detail}", path.display())));
    }
    let Part { rank, world_size: world } = part.unwrap_or(Part { rank: 0, world_size: 1 });
    Ok(Some(Name { step, world, rank }))
}

/// Whether a place is a folder of steps.
fn is_folder(path: &Path) -> bool {
    if is_local(path) { path.is_dir() } else { path.extension().is_none_or(|end| end != "json") }
}

fn put(path: &Path, text: &str) -> Result<()> {
    match is_local(path) {
        true => write_whole(path, &[text.as_bytes()]),
        false => files::write(path, text.as_bytes().to_vec(), "path"),
    }
}

/// What a new part makes useless: its rank's later steps, which were given up, and all but the newest earlier ones; of
/// another number of ranks likewise. The newest step that is whole stays, however far this rank is ahead of others.
fn outdated(own: Name, names: &[Name]) -> Vec<Name> {
    let mut earlier: Vec<u64> = names
        .iter()
        .filter(|n| (n.world, n.rank) == (own.world, own.rank) && n.step < own.step)
        .map(|n| n.step)
        .collect();
    earlier.sort_unstable();
    let oldest = earlier.iter().rev().nth(KEPT - 2).copied();
    let of_step = |name: &Name| (name.step, name.world);
    let mut sorted: Vec<Name> = names.iter().filter(|name| name.step <= own.step).copied().collect();
    sorted.sort_unstable();
    let mut steps = sorted.chunk_by(|a, b| of_step(a) == of_step(b)).rev();
    let whole = steps.find(|parts| parts.len() == parts[0].world as usize).map(|parts| of_step(&parts[0]));
    let useless = |name: &&Name| {
        let mine = name.world != own.world || name.rank == own.rank;
        let is_old = oldest.is_some_and(|oldest| name.step < oldest) && Some(of_step(name)) != whole;
        mine && **name != own && (name.step > own.step || is_old)
    };
    names.iter().filter(useless).copied().collect()
}

fn names(folder: &Path) -> Result<Vec<Name>> {
    Ok(files::names(folder)?.iter().filter_map(|name| Name::parse(name)).collect())
}

/// Reads what a loader saved at `path`: the text of a state, or a list of the parts of the newest step that is whole.
///
/// Errors: `Path`; `State` for a damaged file, with its path; for a folder without a whole step, with what each lacks.
pub fn read(path: &Path) -> Result<String> {
    let path = &*resolved(path)?;
    if !is_folder(path) {
        return document(path);
    }
    Ok(format!("[{}]", newest(path)?.join(",")))
}

/// Reads a state that is the same on every rank: the text of a file, or of a folder the first part of the newest whole step.
///
/// Errors: as [`read`].
pub(in crate::pipeline) fn first(path: &Path) -> Result<String> {
    let path = &*resolved(path)?;
    if is_folder(path) { Ok(newest(path)?.swap_remove(0)) } else { bytes(path).and_then(|bytes| utf8(path, bytes)) }
}

/// Reads a file.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    if is_local(path) {
        return std::fs::read(path).map_err(|e| Error::path(path, &e));
    }
    files::read(path, MOST)?.ok_or_else(|| Error::path(path, &std::io::ErrorKind::NotFound.into()))
}

fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| Error::State(format!("{}: {e}: {}", path.display(), document::DAMAGED)))
}

/// The parts of the newest step that is whole.
fn newest(folder: &Path) -> Result<Vec<String>> {
    let steps = by_step(folder)?;
    if let Some((_, parts)) = steps.iter().find(|(step, _)| step.lacks.is_none()) {
        return parts.iter().map(|name| document(&folder.join(name.text()))).collect();
    }
    let lacking: Vec<_> = steps.iter().map(|(step, _)| step.to_string()).collect();
    let found = if lacking.is_empty() { "it has no saved step".to_owned() } else { lacking.join("; ") };
    Err(Error::State(format!("{}: {found}", folder.display())))
}

/// The text of a document that is as it was written.
fn document(path: &Path) -> Result<String> {
    let damaged = |what: String| Error::State(format!("{}: {what}", path.display()));
    let text = utf8(path, bytes(path)?)?;
    let said: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| damaged(format!("no JSON: {e}: {}", document::DAMAGED)))?;
    if let serde_json::Value::Object(mut fields) = said {
        document::unseal(&mut fields).map_err(damaged)?;
    }
    Ok(text)
}

/// The steps in a folder of parts, the newest first; none where there is no folder.
///
/// Errors: `Path`.
pub fn steps(folder: &Path) -> Result<Vec<SavedStep>> {
    let folder = &*resolved(folder)?;
    let is_there = match is_local(folder) {
        true => folder.try_exists().map_err(|e| Error::path(folder, &e))?,
        false => files::is_folder(folder)?,
    };
    if !is_there {
        return Ok(Vec::new());
    }
    Ok(by_step(folder)?.into_iter().map(|(step, _)| step).collect())
}

/// The same with the parts of each, in the order of ranks.
fn by_step(folder: &Path) -> Result<Vec<(SavedStep, Vec<Name>)>> {
    let mut names = names(folder)?;
    names.sort_unstable();
    let whole = |parts: &[Name]| {
        let Name { step, world: world_size, .. } = parts[0];
        let lacks = (0..world_size).find(|rank| parts.iter().all(|name| name.rank != *rank));
        (SavedStep { step, world_size, lacks }, parts.to_vec())
    };
    Ok(names.chunk_by(|a, b| (a.step, a.world) == (b.step, b.world)).rev().map(whole).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(folder: &Path, step: u64, rank: u32, world_size: u32) {
        write(folder, &format!("\"{step}/{rank}\""), Some(Part { rank, world_size }), step).unwrap();
    }

    fn steps(folder: &Path) -> Vec<(u64, u32, u32)> {
        let mut names: Vec<_> = names(folder).unwrap().iter().map(|n| (n.step, n.rank, n.world)).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_newest_whole_step_is_read_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("state");
        for step in [5, 9, 12] {
            (0..2).for_each(|rank| save(path, step, rank, 2));
        }
        assert_eq!(steps(path), [(9, 0, 2), (9, 1, 2), (12, 0, 2), (12, 1, 2)]);
        save(path, 20, 0, 2);
        assert_eq!(read(path).unwrap(), r#"["12/0","12/1"]"#, "rank 1 did not come to save step 20");
        let said: Vec<_> = super::steps(path).unwrap().iter().map(SavedStep::to_string).collect();
        assert_eq!(said, ["step 20 lacks rank 1 of 2", "step 12 of 2 ranks", "step 9 lacks rank 0 of 2"]);
        save(path, 20, 1, 2);
        assert_eq!(read(path).unwrap(), r#"["20/0","20/1"]"#);
        (0..2).for_each(|rank| save(path, 15, rank, 2));
        assert_eq!(read(path).unwrap(), r#"["15/0","15/1"]"#, "the run went back, and from there another way");
        (0..3).for_each(|rank| save(path, 16, rank, 3));
        assert_eq!(read(path).unwrap(), r#"["16/0","16/1","16/2"]"#, "and with other ranks");
        (0..3).for_each(|rank| save(path, 17, rank, 3));
        assert_eq!(steps(path).iter().filter(|(_, _, world)| *world == 2).count(), 0);
    }

    /// Ranks do not save at the same moment. What one removed was the last step that all had.
    #[test]
    fn a_rank_that_is_far_ahead_leaves_the_last_whole_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("state");
        (0..2).for_each(|rank| save(path, 5, rank, 2));
        (6..10).for_each(|step| save(path, step, 1, 2));
        assert_eq!(read(path).unwrap(), r#"["5/0","5/1"]"#);
        save(path, 8, 0, 2);
        assert_eq!(read(path).unwrap(), r#"["8/0","8/1"]"#);
        save(path, 10, 1, 2);
        assert_eq!(
            steps(path),
            [(5, 0, 2), (8, 0, 2), (8, 1, 2), (9, 1, 2), (10, 1, 2)],
            "no more than three of a rank"
        );
        // The same with another number of ranks.
        (11..15).for_each(|step| save(path, step, 2, 3));
        assert_eq!(read(path).unwrap(), r#"["8/0","8/1"]"#);
    }

    #[test]
    fn a_whole_is_a_file_and_what_lacks_a_part_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("state.json");
        write(path, "{}", None, 3).unwrap();
        assert!(path.is_file() && read(path).unwrap() == "{}");
        let parts = &folder.path().join("parts");
        save(parts, 3, 1, 2);
        assert!(read(parts).unwrap_err().to_string().contains("step 3 lacks rank 0 of 2"));
        write(parts, "{}", None, 4).unwrap();
        assert_eq!(first(parts).unwrap(), "{}");
        assert_eq!(read(parts).unwrap(), "[{}]", "one process resumes in the folder of several");
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        assert!(read(&folder.path().join("empty")).unwrap_err().to_string().contains("no saved step"));
        assert!(read(&folder.path().join("none")).is_err());
        assert_eq!(super::steps(&folder.path().join("none")).unwrap(), []);
        assert!(super::steps(path).is_err(), "a file is no folder of steps");
    }

    #[test]
    fn a_rank_removes_steps_of_its_own_and_those_of_other_numbers_of_ranks() {
        let named = |(step, rank, world)| Name { step, world, rank };
        let names =
            [(3, 0, 2), (6, 0, 2), (1, 1, 2), (2, 1, 2), (12, 0, 2), (12, 1, 2), (2, 0, 3), (5, 0, 3), (10, 2, 3)];
        let mut gone = outdated(named((10, 0, 2)), &names.map(named));
        gone.sort_unstable();
        assert_eq!(gone, [(2, 0, 3), (3, 0, 2), (5, 0, 3), (12, 0, 2)].map(named), "the steps 6 and 10 are needed yet");
    }

    #[test]
    fn a_state_says_in_which_file_it_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let part = Some(Part { rank: 1, world_size: 2 });
        assert_eq!(file(&path, None, 7).unwrap(), path);
        let step = |name: &str| Path::new(name).join("step-000000000007.rank-1-of-2.json");
        assert_eq!(file(&path, part, 7).unwrap(), step(path.to_str().unwrap()));
        // A bucket has no folders that could be looked for.
        assert_eq!(file(Path::new("memory://x/state"), part, 7).unwrap(), step("memory://x/state"));
        assert_eq!(file(Path::new("memory://x/state.json"), None, 7).unwrap(), Path::new("memory://x/state.json"));
        let e = file(Path::new("memory://x/state.json"), part, 7).unwrap_err().to_string();
        assert!(e.contains("take another name"), "{e}");
    }
}
