//! A list of finished files in the first folder, written as they finish: with it a run resumes an earlier one.
//! Omits unfinished files: they are done again.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::{self, Step, WRITER, of_file, of_folder};
use gristmill_engine::pack::METADATA;
use gristmill_engine::row_files;
use gristmill_engine::runtime::journal::{Journal, Opening};
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::publish::{Touched, withdraw};
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::plan::Unit;
use super::unit::Finished;
use super::{Done, RewriteOptions, lies_in};

/// Name of the ledger; hidden, so that no reader takes it for data.
const NAME: &str = ".gristmill-rewrite.jsonl";

/// Commands that write games again, as settings name them.
const COMMANDS: [&str; 4] = ["rescore", "filter", "split", "convert"];

/// The setting that says what decides the side of a game in a split, and its value for older splits, which had no choice.
pub(super) const BY: &str = "by";
pub(super) const BY_BEFORE: &str = "file";

/// Units between two entries: each costs a wait for the disk.
const TOGETHER: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Event {
    /// First line: what is being done.
    Begun { settings: serde_json::Value, path: String, container: String, outs: Vec<String> },
    /// Second line: which program wrote it, and the lineage of the input, where that is known.
    From { writer: String, lineage: Vec<Vec<Step>> },
    /// One target is written, or has nothing to hold; `sources` is a hash of names, sizes and times of change.
    Done { target: String, sources: u64, done: Done },
}

/// The first line of a ledger: the options of the run, and the lineage of its input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// What it does.
    pub(super) settings: serde_json::Value,
    /// Its input.
    pub(super) path: String,
    /// What the games are put in.
    pub(super) container: String,
    /// How the input came to be, where that is known.
    pub(super) lineage: Vec<Vec<Step>>,
}

/// A target that is written, as a ledger has it.
pub(super) struct Noted {
    pub(super) target: String,
    pub(super) sources: u64,
    pub(super) done: Done,
}

/// The ledger of a run; none in a dry run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    journal: Option<Journal>,
    known: HashMap<String, (u64, Done)>,
    waiting: Vec<Event>,
    touched: Touched,
}

impl Ledger {
    /// Opens the ledger that an earlier run of the same command left, or starts one in new or empty folders.
    ///
    /// Errors: `Config` for folders that hold something else, or another command's work; `Path`.
    pub(super) fn open(settings: serde_json::Value, options: &RewriteOptions) -> Result<Self> {
        let outs = options.outs();
        if let Some(inside) = outs.iter().find(|out| lies_in(out, &options.path)) {
            let text =
                format!("{} lies in {}: what is written would be read", inside.display(), options.path.display());
            return Err(Error::config("out", text));
        }
        if options.dry_run {
            free(&outs)?;
            return Ok(Ledger::default());
        }
        let head = Head {
            settings,
            path: place(&options.path),
            container: format!("{:?}", options.container),
            lineage: left_in(&options.path).into_iter().collect(),
        };
        Ledger::begin(head, &outs)
    }

    /// Opens or starts the ledger of the run that `head` says, in these folders.
    ///
    /// Errors: as [`Ledger::open`].
    pub(super) fn begin(head: Head, outs: &[PathBuf]) -> Result<Self> {
        let Some(first) = outs.first() else { return Ok(Ledger::default()) };
        for out in outs {
            fs::create_dir_all(out).map_err(|e| Error::path(out, &e))?;
        }
        let Head { settings, path, container, lineage } = head;
        let begun = Event::Begun { settings, path, container, outs: outs.iter().map(|out| place(out)).collect() };
        let path = first.join(NAME);
        let failed = |e: std::io::Error| Error::path(&path, &e);
        let earlier = if path.exists() { Journal::read::<Event>(&path).map_err(failed)? } else { Vec::new() };
        let mut earlier = earlier.into_iter();
        let journal = match earlier.next() {
            Some(same) if same == begun => Journal::opened(&path, Opening::Again).map_err(failed)?,
            Some(other) => {
                let there = first.display();
                let text = match split_otherwise(&other, &begun) {
                    Some(by) => format!(
                        "{there} holds the work of a split by {by}: `--by {by}` resumes it; for any other split choose another folder"
                    ),
                    None => format!(
                        "{there} holds the work of another command or of other settings (see {NAME} in it); choose another folder"
                    ),
                };
                return Err(Error::config("out", text));
            }
            None => {
                outs.iter().try_for_each(|out| empty(out))?;
                // A first line that was torn says nothing.
                withdraw(&path)?;
                let mut journal = Journal::opened(&path, Opening::New).map_err(failed)?;
                let from = Event::From { writer: WRITER.to_owned(), lineage };
                journal.append(&[begun, from]).map_err(failed)?;
                journal
            }
        };
        let known = earlier.filter_map(|event| match event {
            Event::Done { target, sources, done } => Some((target, (sources, done))),
            Event::Begun { .. } | Event::From { .. } => None,
        });
        Ok(Ledger { known: known.collect(), journal: Some(journal), ..Ledger::default() })
    }

    /// Whether the ledger has this target already.
    pub(super) fn has(&self, noted: &Noted) -> bool {
        self.known.get(&noted.target).is_some_and(|(sources, _)| *sources == noted.sources)
    }

    /// What an earlier run did of the unit, unless its sources changed since.
    pub(super) fn done(&self, unit: &Unit) -> Option<&Done> {
        let (sources, done) = self.known.get(unit.target.name())?;
        (*sources == hash(unit)).then_some(done)
    }

    /// Takes note of a unit whose files are published.
    ///
    /// Errors: `Path`.
    pub(super) fn add(&mut self, finished: &Finished) -> Result<()> {
        let unit = &finished.unit;
        let target = unit.target.name().to_owned();
        self.note(Noted { target, sources: hash(unit), done: finished.done.clone() }, &finished.published)
    }

    /// Takes note of a target whose files are published.
    ///
    /// Errors: `Path`.
    pub(super) fn note(&mut self, noted: Noted, published: &[PathBuf]) -> Result<()> {
        if self.journal.is_none() {
            return Ok(());
        }
        published.iter().for_each(|path| self.touched.add(path));
        let Noted { target, sources, done } = noted;
        self.waiting.push(Event::Done { target, sources, done });
        if self.waiting.len() >= TOGETHER { self.commit() } else { Ok(()) }
    }

    /// Forces the folders and then the notes to the disk, in this order.
    ///
    /// Errors: `Path`.
    pub(super) fn commit(&mut self) -> Result<()> {
        let Some(journal) = self.journal.as_mut().filter(|_| !self.waiting.is_empty()) else { return Ok(()) };
        self.touched.force()?;
        let path: PathBuf = journal.path().to_owned();
        journal.append(&std::mem::take(&mut self.waiting)).map_err(|e| Error::path(path, &e))
    }
}

/// Reads the ledger in a folder: the options of its run, and the files that it has written.
///
/// Errors: `Path` for a ledger that is not there or is damaged; `Format` of kind `Corrupt` for one without a beginning.
pub(super) fn read(folder: &Path) -> Result<(Head, Vec<Noted>)> {
    let ledger = folder.join(NAME);
    let mut events = Journal::read::<Event>(&ledger).map_err(|e| Error::path(&ledger, &e))?.into_iter();
    let (Some(Event::Begun { settings, path, container, .. }), Some(Event::From { lineage, .. })) =
        (events.next(), events.next())
    else {
        let e = FormatError::new(Kind::Corrupt, "a ledger that does not say what its run does");
        return Err(e.in_source(ledger.display().to_string()).into());
    };
    let noted = events.filter_map(|event| match event {
        Event::Done { target, sources, done } => Some(Noted { target, sources, done }),
        Event::Begun { .. } | Event::From { .. } => None,
    });
    Ok((Head { settings, path, container, lineage }, noted.collect()))
}

/// A path as ledgers have it.
fn place(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// The command whose settings these are; they have an entry of its name.
pub(super) fn command(settings: &serde_json::Value) -> &'static str {
    COMMANDS.into_iter().find(|command| settings.get(command).is_some()).unwrap_or("rewrite")
}

/// Whether a run wrote into the folder, to its end or not.
///
/// Errors: `Path`.
pub(crate) fn is_there(folder: &Path) -> Result<bool> {
    Ok(is_file(&folder.join(NAME))?)
}

/// Whether a run wrote into folders in this one, to its end or not.
///
/// Errors: `Path`.
pub(crate) fn are_sides_there(out: &Path) -> Result<bool> {
    let Ok(entries) = fs::read_dir(out) else { return Ok(false) };
    for entry in entries {
        if is_there(&entry.map_err(|e| Error::path(out, &e))?.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses folders that hold something, unless a run wrote there.
///
/// Errors: as [`empty`].
pub(super) fn free(outs: &[PathBuf]) -> Result<()> {
    match outs.first() {
        Some(first) if !first.join(NAME).exists() => {
            outs.iter().filter(|out| out.exists()).try_for_each(|out| empty(out))
        }
        _ => Ok(()),
    }
}

/// What an earlier split went by, where that is all in which it is another one.
fn split_otherwise(earlier: &Event, now: &Event) -> Option<String> {
    let rest = |event: &Event| {
        let mut event = event.clone();
        let by = match &mut event {
            Event::Begun { settings, .. } if settings.get("split").is_some() => settings.as_object_mut()?.remove(BY),
            _ => return None,
        };
        Some((event, by.and_then(|by| by.as_str().map(str::to_owned)).unwrap_or(BY_BEFORE.to_owned())))
    };
    let ((earlier, by), (now, _)) = (rest(earlier)?, rest(now)?);
    (earlier == now).then_some(by)
}

/// Tells the folders of a run but the first, which has the ledger, how they came to be.
///
/// Errors: `Path`.
pub(super) fn tell_others(outs: &[PathBuf]) -> Result<()> {
    let Some((first, others)) = outs.split_first() else { return Ok(()) };
    let Some(steps) = of_run(first) else { return Ok(()) };
    others.iter().try_for_each(|out| {
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        lineage::write(out, steps.iter().map(|step| step.clone().with("folder", name.clone())).collect())
    })
}

/// How what a run wrote into `folder` came to be; none where no run did, or one of an earlier version.
fn of_run(folder: &Path) -> Option<Vec<Step>> {
    let path = folder.join(NAME);
    let mut events = path.is_file().then(|| Journal::read::<Event>(&path).ok())??.into_iter();
    let (Event::Begun { settings, path, container, .. }, Event::From { writer, lineage }) =
        (events.next()?, events.next()?)
    else {
        return None;
    };
    let (mut frames, mut chunks) = (0, 0);
    for event in events {
        if let Event::Done { done, .. } = event {
            (frames, chunks) = (frames + done.frames_out, chunks + done.chunks);
        }
    }
    let mut step =
        Step::new(command(&settings)).with("settings", settings).with("container", container).with("input", path);
    step.writer = writer;
    step = step.with("games", chunks).with("frames", frames);
    Some(vec![step.made_from(lineage)])
}

/// What the job that made a file, or the files in a folder, wrote down.
pub(crate) fn left_in(path: &Path) -> Option<Vec<Step>> {
    of_file(path)
        .or_else(|| of_folder(path))
        .or_else(|| of_run(path))
        // Values in a folder of their own; those of a pack do not tell how the pack came to be.
        .or_else(|| {
            matches!(is_file(&path.join(METADATA)), Ok(false)).then(|| of_file(&path.join(row_files::VALUES_MADE)))?
        })
}

/// Errors: `Config` when something visible or another ledger is in the folder.
pub(super) fn empty(folder: &Path) -> Result<()> {
    let mut entries = fs::read_dir(folder).map_err(|e| Error::path(folder, &e))?;
    match entries.find(|entry| entry.as_ref().map_or(true, |entry| entry.file_name() != NAME)) {
        None => Ok(()),
        Some(Err(e)) => Err(Error::path(folder, &e)),
        Some(Ok(entry)) => {
            let text =
                format!("{} holds {:?} already; choose a new or empty folder", folder.display(), entry.file_name());
            Err(Error::config("out", text))
        }
    }
}

fn hash(unit: &Unit) -> u64 {
    let mut hash = Xxh3::new();
    for stat in &unit.sources {
        hash.update(stat.name.as_bytes());
        hash.update(&[0]);
        hash.update(&stat.size.to_le_bytes());
        hash.update(&stat.mtime_ns.to_le_bytes());
    }
    hash.digest()
}
