//! Files made in a hidden folder of their target -> all published together, durably, by rename; or none.
//! A crash while publishing is rolled forward by whoever opens the staging next. Knows no format; deletes nothing that
//! it is not told to.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{sync_folder, withdraw, write_whole};
use crate::error::{Error, Result};

/// The plan: present from the moment that all staged files are durable until they are all in place.
const PLAN: &str = ".publish.json";

/// What was found where a staging is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing: this is a fresh start.
    Nothing,
    /// Staged files of a job that did not end; nothing of it is published.
    Unfinished,
    /// A publication that was interrupted; it was finished now, and the staging is empty.
    Published,
}

/// The hidden folder of one job in its target. One process at a time holds it.
#[derive(Debug)]
pub struct Staging {
    target: PathBuf,
    folder: PathBuf,
    /// Locked as long as the job lives; a killed process lets go of it.
    _lock: File,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Plan {
    remove: Vec<String>,
    publish: Vec<String>,
}

impl Staging {
    /// Opens the staging of the job `name` in the folder `target`; both folders are made when they do not exist.
    ///
    /// Errors: `Path`; of kind `ResourceBusy` when another process holds it.
    pub fn open(target: &Path, name: &str) -> Result<(Self, Found)> {
        let folder = folder(target, name);
        let found = if folder.is_dir() { Found::Unfinished } else { Found::Nothing };
        let refuse = |e: io::Error| Error::path(&folder, &e);
        fs::create_dir_all(&folder).map_err(refuse)?;
        let lock = File::open(&folder).map_err(refuse)?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => {
                refuse(io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing here"))
            }
            TryLockError::Error(e) => refuse(e),
        })?;
        let staging = Staging { target: target.to_owned(), folder, _lock: lock };
        if staging.folder.join(PLAN).exists() {
            staging.roll_forward()?;
            return Ok((staging, Found::Published));
        }
        Ok((staging, found))
    }

    /// Where the file `name` is staged.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder that the files are published in.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Names of the staged files, sorted; of those in a folder of the staging with the folder's name and `/` before. Empty
    /// folders count as files.
    ///
    /// Errors: `Path`.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for name in names_in(&self.folder)? {
            let path = self.path(&name);
            let inside = if path.is_dir() { names_in(&path)? } else { Vec::new() };
            if inside.is_empty() {
                names.push(name);
            } else {
                names.extend(inside.into_iter().map(|inner| format!("{name}/{inner}")));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes everything that is staged.
    ///
    /// Errors: `Path`.
    pub fn clear(&self) -> Result<()> {
        names_in(&self.folder)?.iter().try_for_each(|name| withdraw(&self.path(name)))
    }

    /// Publishes every staged file under its name in the target, after removing the files `remove` there (those that
    /// exist). When this returns, all of it is durable and the staging is gone.
    ///
    /// Errors: `Path`; before the first change to the target nothing is published, later the next opening goes on.
    pub fn publish(self, remove: &[String]) -> Result<()> {
        let publish = self.names()?;
        for name in &publish {
            let path = self.path(name);
            File::open(&path).and_then(|file| file.sync_all()).map_err(|e| Error::path(path, &e))?;
        }
        folders(&publish).chain([""]).try_for_each(|inner| sync_folder(&self.path(inner)))?;
        let plan = Plan { remove: remove.to_vec(), publish };
        let text = serde_json::to_vec(&plan).map_err(|e| Error::path(&self.folder, &e.into()))?;
        write_whole(&self.folder.join(PLAN), &[&text])?;
        self.roll_forward()?;
        self.discard()
    }

    /// Does what the plan says, from wherever it was left; then the plan goes.
    fn roll_forward(&self) -> Result<()> {
        let at = self.folder.join(PLAN);
        let refuse = |path: &Path, e: &io::Error| Error::path(path, e);
        let text = fs::read(&at).map_err(|e| refuse(&at, &e))?;
        let plan: Plan = serde_json::from_slice(&text).map_err(|e| refuse(&at, &e.into()))?;
        for name in &plan.remove {
            let path = self.target.join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(refuse(&path, &e)),
                _ => {}
            }
        }
        // A folder goes with the last file in it, and stays where something else is.
        folders(&plan.remove).for_each(|inner| _ = fs::remove_dir(self.target.join(inner)));
        for inner in folders(&plan.publish) {
            let path = self.target.join(inner);
            fs::create_dir_all(&path).map_err(|e| refuse(&path, &e))?;
        }
        for name in &plan.publish {
            let (from, to) = (self.folder.join(name), self.target.join(name));
            match fs::rename(&from, &to) {
                // Renamed before the interruption.
                Err(e) if e.kind() == io::ErrorKind::NotFound && to.exists() => {}
                renamed => renamed.map_err(|e| refuse(&from, &e))?,
            }
        }
        folders(&plan.publish).for_each(|inner| _ = fs::remove_dir(self.folder.join(inner)));
        folders(&plan.publish).chain([""]).try_for_each(|inner| sync_folder(&self.target.join(inner)))?;
        fs::remove_file(&at).map_err(|e| refuse(&at, &e))
    }

    /// Gives up what is staged.
    ///
    /// Errors: `Path`.
    pub fn discard(self) -> Result<()> {
        self.clear()?;
        fs::remove_dir(&self.folder).map_err(|e| Error::path(&self.folder, &e))?;
        sync_folder(&self.target)
    }
}

/// Names in a folder, sorted.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let refuse = |e: io::Error| Error::path(folder, &e);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(refuse)? {
        names.push(entry.map_err(refuse)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// The folders that sorted names of files are in, each once.
fn folders(names: &[String]) -> impl Iterator<Item = &str> {
    let mut last = None;
    names
        .iter()
        .filter_map(|name| Some(name.split_once('/')?.0))
        .filter(move |inner| last.replace(*inner) != Some(*inner))
}

fn folder(target: &Path, name: &str) -> PathBuf {
    target.join(format!(".{name}.part"))
}

/// Whether the job `name` was interrupted while it changed `target`: what lies there is not to be trusted until the
/// staging is opened again.
pub fn is_interrupted(target: &Path, name: &str) -> bool {
    folder(target, name).join(PLAN).exists()
}

/// Whether there are staged files of the job `name` in `target`, in the making or left by a job that did not end.
pub fn is_staged(target: &Path, name: &str) -> bool {
    folder(target, name).is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(target: &Path, files: &[(&str, &str)]) -> Staging {
        let (staging, found) = Staging::open(target, "job").unwrap();
        assert_eq!(found, Found::Nothing);
        for (name, text) in files {
            fs::write(staging.path(name), text).unwrap();
        }
        staging
    }

    fn listed(target: &Path) -> Vec<(String, String)> {
        let mut found: Vec<_> = fs::read_dir(target)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn staged_files_replace_what_was_there_all_together() {
        let target = tempfile::tempdir().unwrap();
        for name in ["a", "old", "other"] {
            fs::write(target.path().join(name), "before").unwrap();
        }
        let staging = stage(target.path(), &[("a", "one"), ("b", "two")]);
        assert!(is_staged(target.path(), "job") && !is_interrupted(target.path(), "job"));
        staging.publish(&["old".into(), "never".into()]).unwrap();
        let expected = [("a", "one"), ("b", "two"), ("other", "before")];
        assert_eq!(listed(target.path()), expected.map(|(name, text)| (name.into(), text.into())));
    }

    #[test]
    fn an_interruption_at_any_step_is_rolled_forward() {
        for done in 0..=3 {
            let target = tempfile::tempdir().unwrap();
            fs::write(target.path().join("old"), "before").unwrap();
            fs::write(target.path().join("a"), "before").unwrap();
            let staging = stage(target.path(), &[("a", "one"), ("b", "two")]);
            fs::write(staging.path(PLAN), r#"{"remove":["old"],"publish":["a","b"]}"#).unwrap();
            if done > 0 {
                fs::remove_file(target.path().join("old")).unwrap();
            }
            for name in ["a", "b"].iter().take(done.max(1) - 1) {
                fs::rename(staging.path(name), target.path().join(name)).unwrap();
            }
            drop(staging);
            assert!(is_interrupted(target.path(), "job"));
            let (staging, found) = Staging::open(target.path(), "job").unwrap();
            assert_eq!((found, staging.names().unwrap().len()), (Found::Published, 0));
            staging.discard().unwrap();
            assert_eq!(listed(target.path()), [("a", "one"), ("b", "two")].map(|(n, t)| (n.into(), t.into())));
        }
    }

    #[test]
    fn files_in_folders_go_with_the_others_and_empty_folders_go() {
        let target = tempfile::tempdir().unwrap();
        fs::create_dir(target.path().join("old")).unwrap();
        fs::write(target.path().join("old/c"), "before").unwrap();
        let staging = stage(target.path(), &[("a", "one")]);
        fs::create_dir(staging.path("in")).unwrap();
        ["x", "y"].iter().for_each(|name| fs::write(staging.path("in").join(name), *name).unwrap());
        assert_eq!(staging.names().unwrap(), ["a", "in/x", "in/y"]);
        staging.publish(&["old/c".into()]).unwrap();
        assert!(!target.path().join("old").exists() && !is_staged(target.path(), "job"));
        assert_eq!(fs::read_to_string(target.path().join("in/y")).unwrap(), "y");
        // Interrupted between the two files of a folder.
        let staging = stage(target.path(), &[(PLAN, r#"{"remove":["a","in/x"],"publish":["on/x","on/y"]}"#)]);
        fs::create_dir(staging.path("on")).unwrap();
        fs::create_dir(target.path().join("on")).unwrap();
        fs::write(staging.path("on/y"), "y").unwrap();
        fs::write(target.path().join("on/x"), "x").unwrap();
        drop(staging);
        let (staging, found) = Staging::open(target.path(), "job").unwrap();
        assert_eq!((found, staging.names().unwrap().len()), (Found::Published, 0));
        staging.discard().unwrap();
        assert!(!target.path().join("in/x").exists() && target.path().join("in/y").exists());
        assert_eq!(listed(&target.path().join("on")), [("x", "x"), ("y", "y")].map(|(n, t)| (n.into(), t.into())));
    }

    #[test]
    fn one_job_at_a_time_and_unfinished_ones_are_found() {
        let target = tempfile::tempdir().unwrap();
        let staging = stage(target.path(), &[("a", "one")]);
        let busy = Staging::open(target.path(), "job").unwrap_err();
        assert!(matches!(busy, Error::Path { kind: io::ErrorKind::ResourceBusy, .. }), "{busy}");
        drop(staging);
        let (staging, found) = Staging::open(target.path(), "job").unwrap();
        assert_eq!((found, staging.names().unwrap()), (Found::Unfinished, vec!["a".to_owned()]));
        staging.discard().unwrap();
        assert!(listed(target.path()).is_empty());
    }
}
