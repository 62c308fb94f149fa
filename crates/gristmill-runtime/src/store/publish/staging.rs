//! Files made in a hidden folder of their target -> all published together, durably, by rename; or none.
//! The next process that opens the staging rolls an interrupted publication forward. Knows no format; reaches nothing
//! outside the target, whatever a plan or a link there says, and deletes nothing that it was not given to delete.

use std::ffi::OsStr;
use std::fs::{self, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::files::copy;
use super::super::place::writable;
use super::folder::{Entry, Folder};
use super::plan::{MOST, NOTE, Note, PLAN, Plan, is_hidden, is_name, parts};
use crate::error::{Error, Result};
use crate::runtime::seed::fresh_root;

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

/// The hidden folder of one job in its target. One process at a time holds it. Goes with this value, unless it is kept.
#[derive(Debug)]
pub struct Staging {
    target: Folder,
    folder: Folder,
    hidden: String,
    note: Note,
    /// Whether what is staged is worth something to a later job.
    kept: AtomicBool,
    /// Whether the target was made for it.
    made: bool,
}

impl Staging {
    /// Opens the staging `name` in the folder `target` for a job; both folders are made when they do not exist. What is staged
    /// goes when the value goes, unless it is [kept](Staging::keep), or was there before and is not [cleared](Staging::clear).
    ///
    /// Errors: `Path`; of kind `ResourceBusy` when another process holds it, of kind `InvalidData` where something lies there that
    /// no job of ours made.
    pub fn open(target: &Path, name: &str, job: &str) -> Result<(Self, Found)> {
        let target = &*writable(target, "output")?;
        let made = !target.is_dir();
        fs::create_dir_all(target).map_err(|e| Error::path(target, &e))?;
        let hidden = hidden(name);
        let folder = Folder::open(target)?;
        let (mut staging, there) = loop {
            let there = match folder.entry(&hidden)? {
                None => {
                    folder.make(&hidden)?;
                    false
                }
                Some(_) => true,
            };
            if let Some(staging) = Staging::hold(target, &hidden)? {
                break (staging, there);
            }
        };
        staging.made = made;
        let refused = |staging: &Staging, name: &str, why: &str| {
            let advice = format!("`gristmill recover {}` says what can be done", target.display());
            staging.folder.refuse(name, &format!("{why}; {advice}"))
        };
        if let Some(read) = staging.plan()? {
            let plan = read.map_err(|why| refused(&staging, PLAN, &why))?;
            if !staging.owns(&plan) {
                return Err(refused(&staging, PLAN, "this plan does not belong to the job that lies here"));
            }
            staging.carry_out(&plan)?;
            staging.begin(job)?;
            return Ok((staging, Found::Published));
        }
        if let Some((name, what)) = staging.foreign()? {
            return Err(refused(&staging, &name, &format!("{what}, which no job here makes")));
        }
        staging.tidy()?;
        if there && !staging.is_empty()? {
            return Ok((staging, Found::Unfinished));
        }
        staging.begin(job)?;
        Ok((staging, Found::Nothing))
    }

    /// The staging under a hidden name, as it is, if it is there: locked, and kept.
    pub(super) fn hold(target: &Path, hidden: &str) -> Result<Option<Self>> {
        let target = Folder::open(target)?;
        loop {
            match target.entry(hidden)? {
                None => return Ok(None),
                Some(Entry::Folder) => {}
                Some(_) => {
                    let text = "a link or a file lies where the folder of a job is expected; remove it (`gristmill recover` \
                                with --abandon)";
                    return Err(target.refuse(hidden, text));
                }
            }
            let folder = target.child(hidden)?;
            folder.file().try_lock().map_err(|e| match e {
                TryLockError::WouldBlock => {
                    let busy = io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing here");
                    Error::path(folder.path(), &busy)
                }
                TryLockError::Error(e) => Error::path(folder.path(), &e),
            })?;
            // Its holder may have removed it meanwhile.
            if target.is(hidden, &folder) {
                let note =
                    small(&folder, NOTE)?.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
                let (hidden, kept) = (hidden.to_owned(), AtomicBool::new(true));
                return Ok(Some(Staging { target, folder, hidden, note, kept, made: false }));
            }
        }
    }

    /// Makes the empty staging that of a job.
    fn begin(&mut self, job: &str) -> Result<()> {
        self.kept = AtomicBool::new(false);
        self.note(job)
    }

    /// Notes whose staging it is.
    fn note(&mut self, job: &str) -> Result<()> {
        self.note = Note { token: format!("{:016x}{:016x}", fresh_root(), fresh_root()), job: job.to_owned() };
        let text = serde_json::to_vec(&self.note).map_err(|e| Error::path(self.folder.path(), &e.into()))?;
        put(&self.folder, NOTE, &text)
    }

    /// Where the file `name` is staged.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that the files are published in.
    pub fn target(&self) -> &Path {
        self.target.path()
    }

    /// What the job that began does, in the word that it gave; empty for one of an earlier version.
    pub fn job(&self) -> &str {
        &self.note.job
    }

    /// From now on staged files stay when the job ends early: another one can resume from there.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Names of the staged files, sorted; of those in a folder of the staging with the folder's name and `/` before. Empty
    /// folders count as files; hidden ones are in the making, and do not count.
    ///
    /// Errors: `Path`, also for names that cannot be published.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for name in visible(&self.folder)? {
            let inside = match self.folder.entry(&name)? {
                Some(Entry::Folder) => visible(&self.folder.child(&name)?)?,
                _ => Vec::new(),
            };
            if inside.is_empty() {
                names.push(name);
            } else {
                names.extend(inside.into_iter().map(|inner| format!("{name}/{inner}")));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Takes the file `name` of the folder `from`, wherever that is, into the staging, whole or not at all.
    ///
    /// Errors: `Path`; those of reading.
    pub fn bring(&self, from: &Path, name: &str) -> Result<()> {
        let part = format!(".{name}.part");
        self.folder.remove(&part)?;
        let mut to = self.folder.create(&part)?;
        copy(&from.join(name), &mut to, &self.folder.path().join(&part))?;
        to.sync_data().map_err(|e| Error::path(self.folder.path().join(&part), &e))?;
        self.folder.rename(&part, &self.folder, name)
    }

    /// Removes everything that is staged: the staging is that of the job `job` now.
    ///
    /// Errors: `Path`.
    pub fn clear(&mut self, job: &str) -> Result<()> {
        self.folder.names()?.iter().try_for_each(|name| self.folder.remove_all(name))?;
        self.begin(job)
    }

    /// Publishes every staged file under its name in the target, and removes the files `remove` there (those that exist). When
    /// this returns, all of it is durable and the staging is gone.
    ///
    /// Errors: `Path`; before the first change to the target nothing is published, later the next opening completes it.
    pub fn publish(mut self, remove: &[String]) -> Result<()> {
        if self.note.token.is_empty() {
            // Begun by an earlier version.
            self.note("")?;
        }
        let plan = Plan { token: Some(self.note.token.clone()), remove: remove.to_vec(), publish: self.names()? };
        if let Some(name) = plan.remove.iter().chain(&plan.publish).find(|name| !is_name(name)) {
            return Err(self.folder.refuse(name, "this is no name of a file to be published"));
        }
        self.check(&plan)?;
        let mut last = None;
        for name in &plan.publish {
            let (inner, file) = parts(name);
            match inner {
                None => sync(&self.folder, file)?,
                Some(inner) => {
                    let folder = self.folder.child(inner)?;
                    sync(&folder, file)?;
                    if last.replace(inner) != Some(inner) {
                        folder.sync()?;
                    }
                }
            }
        }
        self.folder.sync()?;
        let text = serde_json::to_vec(&plan).map_err(|e| Error::path(self.folder.path(), &e.into()))?;
        // From here on the target may be between the two.
        self.keep();
        put(&self.folder, PLAN, &text)?;
        self.folder.sync()?;
        self.carry_out(&plan)?;
        self.discard()
    }

    /// The plan that lies here, if one does, or what is wrong with it.
    pub(super) fn plan(&self) -> Result<Option<Result<Plan, String>>> {
        if self.folder.entry(PLAN)?.is_none() {
            return Ok(None);
        }
        Ok(Some(
            small(&self.folder, PLAN)?.map_or_else(|| Err("this is no plan".to_owned()), |text| Plan::parse(&text)),
        ))
    }

    /// Whether the plan is of the job that lies here, or both of a version that knew no tokens.
    pub(super) fn owns(&self, plan: &Plan) -> bool {
        plan.token.as_ref().map_or(self.note.token.is_empty(), |token| !token.is_empty() && *token == self.note.token)
    }

    /// Whether the target may have changed by it already. Versions without tokens removed first.
    pub(super) fn begun(&self, plan: &Plan) -> Result<bool> {
        for name in &plan.publish {
            if staged(&self.folder, name)?.is_none() {
                return Ok(true);
            }
        }
        for name in plan.remove.iter().filter(|_| plan.token.is_none()) {
            if staged(&self.target, name)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// That the plan can be carried out to its end, before anything is changed.
    fn check(&self, plan: &Plan) -> Result<()> {
        for name in &plan.publish {
            let there = staged(&self.target, name)?;
            match staged(&self.folder, name)? {
                Some(Entry::Folder) if matches!(there, None | Some(Entry::Folder)) => {}
                Some(Entry::File | Entry::Shared) if there != Some(Entry::Folder) => {}
                Some(Entry::Folder | Entry::File | Entry::Shared) => {
                    return Err(self.target.refuse(name, "a file and a folder cannot take each other's place"));
                }
                Some(_) => return Err(self.folder.refuse(name, "a link cannot be published")),
                None if there.is_some() => {}
                None => {
                    let text = "it was to be published, and is neither staged nor in its place; nothing was removed";
                    return Err(self.folder.refuse(name, text));
                }
            }
        }
        for name in plan.gone() {
            if staged(&self.target, name)? == Some(Entry::Folder) {
                return Err(self.target.refuse(name, "this is a folder, where a file was to be removed"));
            }
        }
        Ok(())
    }

    /// Does what the plan says, from wherever it was left; then the plan goes. New files come first: what they replace goes
    /// with the rename, and what has no use any more when they are durable.
    pub(super) fn carry_out(&self, plan: &Plan) -> Result<()> {
        self.check(plan)?;
        for name in &plan.publish {
            let (inner, file) = parts(name);
            let Some(inner) = inner else {
                if self.folder.entry(file)?.is_some() {
                    self.folder.rename(file, &self.target, file)?;
                }
                continue;
            };
            self.target.make(inner)?;
            if staged(&self.folder, name)?.is_some() {
                self.folder.child(inner)?.rename(file, &self.target.child(inner)?, file)?;
            }
        }
        for inner in folders(&plan.publish) {
            let _gone = self.folder.remove_folder(inner);
            self.target.child(inner)?.sync()?;
        }
        self.target.sync()?;
        for name in plan.gone() {
            match parts(name) {
                (None, file) => self.target.remove(file)?,
                (Some(inner), file) if self.target.entry(inner)? == Some(Entry::Folder) => {
                    self.target.child(inner)?.remove(file)?;
                }
                _ => {}
            }
        }
        // A folder goes with the last file in it, and stays where something else is.
        folders(&plan.remove).for_each(|inner| _ = self.target.remove_folder(inner));
        self.target.sync()?;
        self.folder.remove(PLAN)?;
        self.folder.sync()
    }

    /// Something in it that no job of ours makes, and what it is.
    pub(super) fn foreign(&self) -> Result<Option<(String, &'static str)>> {
        let of = |folder: &Folder, name: &OsStr| -> Result<Option<&'static str>> {
            Ok(match folder.entry(name)? {
                Some(Entry::Link) => Some("this is a link"),
                Some(Entry::Other) => Some("this is neither a file nor a folder"),
                _ => None,
            })
        };
        for name in self.folder.names()? {
            if let Some(what) = of(&self.folder, &name)? {
                return Ok(Some((name.to_string_lossy().into_owned(), what)));
            }
            if self.folder.entry(&name)? == Some(Entry::Folder) {
                let inner = self.folder.child(&name)?;
                for file in inner.names()? {
                    if let Some(what) = of(&inner, &file)? {
                        return Ok(Some((format!("{}/{}", name.to_string_lossy(), file.to_string_lossy()), what)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// That what is staged can be written to, which no file is that has another name elsewhere.
    ///
    /// Errors: `Path`.
    pub fn owned(&self) -> Result<()> {
        for name in self.names()? {
            if staged(&self.folder, &name)? == Some(Entry::Shared) {
                let text = "this file has other names elsewhere, so that it is not written to; give the job up (`gristmill \
                            recover` with --abandon)";
                return Err(self.folder.refuse(name, text));
            }
        }
        Ok(())
    }

    /// Removes what a killed writer had in the making.
    fn tidy(&self) -> Result<()> {
        let mut names = self.folder.names()?;
        names.retain(|name| name.as_encoded_bytes().starts_with(b".") && name != NOTE);
        names.iter().try_for_each(|name| self.folder.remove_all(name))
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.folder.names()?.iter().all(|name| name == NOTE))
    }

    /// Gives up what is staged.
    ///
    /// Errors: `Path`.
    pub fn discard(self) -> Result<()> {
        self.keep();
        self.give_up()
    }

    fn give_up(&self) -> Result<()> {
        self.folder.names()?.iter().try_for_each(|name| self.folder.remove_all(name))?;
        self.target.remove_folder(&self.hidden)?;
        self.target.sync()?;
        if self.made {
            // It stays where something is in it now.
            let _left = fs::remove_dir(self.target.path());
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) {
            // The caller that ended the job reports why.
            let _ = self.give_up();
        }
    }
}

/// The hidden name of the staging of a job.
pub(super) fn hidden(name: &str) -> String {
    format!(".{name}.part")
}

/// Names in a folder that are not hidden, sorted.
fn visible(folder: &Folder) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in folder.names()? {
        match name.into_string() {
            Ok(name) if is_hidden(&name) => {}
            Ok(name) => names.push(name),
            Err(name) => return Err(folder.refuse(&name, "a name that is no text, which no job here makes")),
        }
    }
    Ok(names)
}

/// What lies under a name of a plan.
fn staged(folder: &Folder, name: &str) -> Result<Option<Entry>> {
    match parts(name) {
        (None, file) => folder.entry(file),
        (Some(inner), file) => match folder.entry(inner)? {
            None => Ok(None),
            Some(Entry::Folder) => folder.child(inner)?.entry(file),
            Some(_) => Err(folder.refuse(inner, "a link or a file lies where a folder is expected")),
        },
    }
}

fn sync(folder: &Folder, name: &str) -> Result<()> {
    folder.read(name)?.sync_all().map_err(|e| Error::path(folder.path().join(name), &e))
}

/// Writes a small file, durably and whole.
fn put(folder: &Folder, name: &str, text: &[u8]) -> Result<()> {
    let part = format!("{name}.part");
    folder.remove_all(&part)?;
    let mut file = folder.create(&part)?;
    let written = file.write_all(text).and_then(|()| file.sync_data());
    written.map_err(|e| Error::path(folder.path().join(name), &e))?;
    folder.rename(&part, folder, name)
}

/// Reads a small file, if it is one.
fn small(folder: &Folder, name: &str) -> Result<Option<Vec<u8>>> {
    if !matches!(folder.entry(name)?, Some(Entry::File | Entry::Shared)) {
        return Ok(None);
    }
    let mut text = Vec::new();
    let read = folder.read(name)?.take(MOST + 1).read_to_end(&mut text);
    read.map_err(|e| Error::path(folder.path().join(name), &e))?;
    Ok((text.len() as u64 <= MOST).then_some(text))
}

/// The folders that names of files are in, each once where they are sorted.
fn folders(names: &[String]) -> impl Iterator<Item = &str> {
    let mut last = None;
    names.iter().filter_map(|name| parts(name).0).filter(move |inner| last.replace(*inner) != Some(*inner))
}

/// Whether the job `name` was interrupted while it changed `target`: what lies there is not valid until the
/// staging is opened again.
pub fn is_interrupted(target: &Path, name: &str) -> bool {
    let folder = target.join(hidden(name));
    let ours = fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir());
    ours && fs::symlink_metadata(folder.join(PLAN)).is_ok()
}

/// Where the job `name` stages a file of this name in `target`.
pub fn place_of(target: &Path, name: &str, file: &str) -> PathBuf {
    target.join(hidden(name)).join(file)
}

/// Whether there are staged files of the job `name` in `target`, in the making or left by a job that did not end.
pub fn is_staged(target: &Path, name: &str) -> bool {
    fs::symlink_metadata(target.join(hidden(name))).is_ok()
}
