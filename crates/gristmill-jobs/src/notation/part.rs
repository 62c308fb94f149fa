//! A share writes its games as text or boards to a file in its folder. A commit appends the files of all shares, in order, to the
//! output, which gets the bytes that one process writes. It replaces another file only if the options say so.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::publish::Staged;
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{MESSAGES, NotationOptions, Telling, Told, Words, none, of_rows};
use crate::files::Found;
use crate::inputs::Inputs;
use crate::meter::Meter;
use crate::reports;
use crate::shares::{Attempt, Job, Joining, Outcome, Portion, Said, Share, Shared, Unit, Whole, is_same, make};

/// Names of the job in plans, one for each form.
pub(crate) const PGN: &str = "convert --to pgn";
pub(crate) const FEN: &str = "convert --to fen";
pub(crate) const BOARDS: &str = "convert --to bulletformat";

/// Name of the file in the folder of a share that holds its games as text or boards.
const WORDS: &str = "words";

/// Name of the option in plans that holds the form, as [`Words`] serializes.
const TO: &str = "to";

/// The record of a share.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Inputs of the plan that the share takes.
    inputs: u64,
    /// Bytes of these inputs.
    bytes: u64,
    /// Games in the file of the share.
    games: u64,
    /// Frames of these games.
    frames: u64,
    /// Bytes of the file of the share.
    written: u64,
    /// Frames without a score that the share left out.
    unscored: u64,
    /// Games and files that the share left out, by the kind of their fault.
    left_out: BTreeMap<String, u64>,
    /// Messages about the first of these.
    faults: Vec<String>,
}

impl Said for Record {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// The name in plans of the job that writes games in this form. Returns `None` for binpacks, which have no shares.
fn name(words: Words) -> Option<&'static str> {
    match words {
        Words::Pgn => Some(PGN),
        Words::Fen => Some(FEN),
        Words::Bulletformat => Some(BOARDS),
        Words::Binpack => None,
    }
}

/// Writes a share of the games, unless the share is done already. Returns the counts and messages of the share.
///
/// Errors: as [`super::notation`].
pub(super) fn share(
    options: &NotationOptions,
    (path, out): (PathBuf, PathBuf),
    share: Share,
    progress: &mut dyn FnMut(u64),
) -> Result<Told> {
    let Some(name) = name(options.words) else {
        let text = "a commit would write all of a binpack again, since its blocks and chains run over the ends of files; convert some \
                    of the files on each machine: binpacks that are put one behind the other are one";
        return Err(Error::config("share", text));
    };
    if options.overwrite {
        return Err(Error::config("share", "a share replaces no file; a commit with overwrite does"));
    }
    let inputs = Inputs::list(std::slice::from_ref(&options.path));
    let units = inputs.units()?;
    if let Some(folder) = inputs.paths.iter().find_map(|(_, listing)| listing.as_ref().ok()?.packs.first()) {
        return Err(of_rows(folder));
    }
    let portion = Portion::of(&units, share);
    let (meter, mut told) = (Meter::default(), Telling::new(options, &out).told);
    let before = meter.now();
    let job = Part { name, options, path, out: &out, inputs, units, portion, progress };
    let Outcome { shared, said, .. } = make(job, share, options.dry_run)?;
    said.iter().for_each(|said| add(&mut told, said));
    (told.seconds, told.share) = (meter.now().wall - before.wall, Some(shared));
    Ok(told)
}

/// The job that makes one share.
struct Part<'a> {
    name: &'static str,
    options: &'a NotationOptions,
    path: PathBuf,
    out: &'a Path,
    inputs: Inputs,
    units: Vec<Unit>,
    portion: Portion,
    progress: &'a mut dyn FnMut(u64),
}

impl Job for Part<'_> {
    type Said = Record;

    fn name(&self) -> &'static str {
        self.name
    }

    fn input(&self) -> &Path {
        &self.path
    }

    fn output(&self) -> &Path {
        self.out
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let options = BTreeMap::from([(TO.to_owned(), json!(self.options.words))]);
        Ok(reports::named(options, std::slice::from_ref(&self.options.path)))
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        reports::check_absent(self.out)
    }

    fn take(self, _: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Record> {
        let Part { options, inputs, portion, progress, .. } = self;
        let path = attempt.folder().join(WORDS);
        let (mut telling, mut staged) = (Telling::new(options, &path), Some(Staged::new(path)?));
        for own in inputs.own(portion).into_iter().flat_map(|own| own.files) {
            match own.file.open() {
                Found::File(file) => telling.file(&file, own.place, &mut staged, &mut |games| {
                    attempt.renew();
                    progress(games);
                })?,
                Found::Fault(e) if own.place.begins() => telling.fault(e)?,
                _ => {}
            }
            attempt.renew();
        }
        telling.end(&mut staged)?;
        if let Some(mut staged) = staged {
            staged.seal()?;
            staged.publish()?;
        }
        let Told { games, frames, bytes: written, unscored, left_out, faults, .. } = telling.told;
        Ok(Record { inputs: of.inputs, bytes: of.bytes, games, frames, written, unscored, left_out, faults })
    }
}

/// Adds the counts and messages of one share to the totals. Keeps at most [`MESSAGES`] messages.
fn add(told: &mut Told, said: &Record) {
    told.games += said.games;
    told.frames += said.frames;
    told.bytes += said.written;
    told.unscored += said.unscored;
    said.left_out.iter().for_each(|(kind, count)| *told.left_out.entry(kind.clone()).or_default() += count);
    let room = MESSAGES.saturating_sub(told.faults.len());
    told.faults.extend(said.faults.iter().take(room).cloned());
}

/// Writes the file of all shares. It calls `progress` after each share.
///
/// Errors: as [`Whole::parts`]; `Config` in `path` if no share has a game; `Config` in `output` if another file is there; `Format` if the
/// file of a share has another length than its record says; `Path`; `Stopped`.
pub(crate) fn commit(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<Told> {
    let words = whole.plan.options.get(TO).cloned().unwrap_or_default();
    let options = NotationOptions {
        path: PathBuf::new(),
        out: whole.output().to_owned(),
        words: serde_json::from_value(words)
            .map_err(|e| Error::config("output", format!("the plan of the shares: {e}")))?,
        overwrite: whole.options.overwrite,
        dry_run: whole.options.dry_run,
        share: None,
        stop: whole.options.stop.clone(),
    };
    let (meter, mut told) = (Meter::default(), Telling::new(&options, whole.output()).told);
    let before = meter.now();
    let parts = whole.parts::<Record>()?;
    parts.iter().for_each(|(_, said)| add(&mut told, said));
    if told.games == 0 {
        return Err(none("no game of these shares", &told.faults));
    }
    let mut staged = if options.dry_run { None } else { Some(Staged::within(options.out.clone())?) };
    let (mut done, all) = (0, whole.plan.inputs);
    for (folder, said) in &parts {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        if let Some(staged) = &mut staged {
            append(&folder.join(WORDS), said.written, staged)?;
        }
        done += said.inputs;
        progress(Joining { done, all });
    }
    if let Some(mut staged) = staged {
        staged.seal()?;
        publish(whole, staged)?;
    }
    told.seconds = meter.now().wall - before.wall;
    Ok(told)
}

/// Gives the staged file its name. Without `overwrite` it keeps a file that has the same bytes: a killed commit made that one.
///
/// Errors: `Config` in `output` if another file is there; `Path`.
fn publish(whole: &Whole, staged: Staged) -> Result<()> {
    let out = whole.output();
    if !whole.options.overwrite && reports::is_there(out)? {
        let refused = |e: io::Error| Error::path(out, &e);
        if is_same(&mut BufReader::new(staged.reopen()?), &mut BufReader::new(File::open(out).map_err(refused)?))
            .map_err(refused)?
        {
            return Ok(());
        }
        return Err(reports::there(out, "overwrite replaces it"));
    }
    staged.publish().map(drop)
}

/// Appends the file of a share at `path` to `staged`. The record of the share says that the file has `bytes` bytes.
///
/// Errors: `Path`; `Format` if the file has another length.
fn append(path: &Path, bytes: u64, staged: &mut Staged) -> Result<()> {
    let refused = |e: io::Error| Error::path(path, &e);
    let there = fs::metadata(path).map_err(refused)?.len();
    if there != bytes {
        let text =
            format!("has {there} bytes, its share wrote {bytes}; remove the folder of the share and make it again");
        return Err(FormatError::new(Kind::Corrupt, text).in_source(path.display().to_string()).into());
    }
    io::copy(&mut File::open(path).map_err(refused)?, staged).map(drop).map_err(refused)
}
