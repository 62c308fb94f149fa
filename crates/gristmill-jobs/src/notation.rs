//! Games of any form, in files or packs -> one file: text of their moves or positions, boards, chains. Games that no words can tell
//! are left out and named; the file appears whole or not at all.

mod part;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds;
use gristmill_engine::pack::METADATA;
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::newest;
use gristmill_engine::store::place::writable;
use gristmill_engine::store::publish::Staged;
use gristmill_format::source::Chunk;
use serde::Serialize;

pub(crate) use self::part::{BOARDS, FEN, PGN, commit};
use crate::files::{self, Found};
use crate::inputs::Place;
use crate::merge::danger;
use crate::meter::Meter;
use crate::shares::{Share, Shared};
pub use crate::work::Words;
use crate::work::{Opened, Scribe, Work, is_unreadable};

/// Messages about what was left out that are kept for people to read.
const MESSAGES: usize = 20;

/// Bytes that are written at a time.
const PIECE: usize = 1 << 20;

/// What to tell, and where.
#[derive(Debug, Clone)]
pub struct NotationOptions {
    /// A file, or a folder with everything below it, a pack among them.
    pub path: PathBuf,
    /// The file that is made.
    pub out: PathBuf,
    /// What it says.
    pub words: Words,
    /// Replace a file that is there.
    pub overwrite: bool,
    /// Read everything, and write nothing.
    pub dry_run: bool,
    /// The share of the games to write. It lies beside the output until a commit. `None` writes all games.
    pub share: Option<Share>,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// The file.
    pub output: String,
    /// What it says.
    pub to: Words,
    /// Games in it.
    pub games: u64,
    /// Frames of these games.
    pub frames: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Frames without a score that were left out, where the form has none without.
    pub unscored: u64,
    /// What the form needs and the data does not say.
    pub made_up: Vec<&'static str>,
    /// Games and files that were left out, by the kind of their fault.
    pub left_out: BTreeMap<String, u64>,
    /// What was wrong with them, at most the first few.
    pub faults: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took by the clock.
    pub seconds: f64,
    /// The share whose numbers these are. `None` if they are those of all games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Shared>,
}

/// Tells all games at a path, in order of name and number. `progress` gets the number of games so far.
///
/// Errors: `Config` if the output is there or lies inside the input; `Path`; `Format` if a file cannot be read; `Stopped`. A share also
/// gives the errors of [`crate::shares::make`], and `Config` in `share` for binpacks, which have no shares, and for `overwrite`.
pub fn notation(options: &NotationOptions, progress: &mut dyn FnMut(u64)) -> Result<Told> {
    let (path, out) = (newest(&options.path)?.into_owned(), writable(&options.out, "output")?.into_owned());
    danger::check(std::slice::from_ref(&path), &out)?;
    if let Some(share) = options.share {
        return part::share(options, (path, out), share, progress);
    }
    if out.exists() && !options.overwrite {
        let text = format!("{}: there is something already; --overwrite replaces it", out.display());
        return Err(Error::config("output", text));
    }
    let (meter, mut telling) = (Meter::default(), Telling::new(options, &out));
    let before = meter.now();
    let mut staged = if options.dry_run { None } else { Some(Staged::within(out)?) };
    files::walk(&path, &mut |found| match found {
        Found::File(file) => telling.file(&file, Place::whole(), &mut staged, progress),
        Found::Fault(e) => telling.fault(e),
        Found::Unlisted(unlisted) => Err(Error::State(format!("files could not be listed: {}", unlisted.latest))),
        Found::Pack(folder) => Err(of_rows(&folder)),
        Found::Other => Ok(()),
    })?;
    if telling.told.games == 0 {
        return Err(none(&format!("no game in {}", path.display()), &telling.told.faults));
    }
    telling.end(&mut staged)?;
    if let Some(mut staged) = staged {
        staged.seal()?;
        staged.publish()?;
    }
    telling.told.seconds = meter.now().wall - before.wall;
    Ok(telling.told)
}

/// The error for a pack of rows of 2048 in `folder`.
fn of_rows(folder: &Path) -> Error {
    let text = format!("{} is a pack of rows of 2048, which cannot be written in this form", folder.display());
    Error::config("path", text)
}

/// The error if the job could write no game. `what` begins the message; the first of `faults` ends it.
fn none(what: &str, faults: &[String]) -> Error {
    let first = faults.first().map(|fault| format!("; the first that was left out: {fault}"));
    Error::config("path", format!("{what} could be written{}", first.unwrap_or_default()))
}

struct Telling<'a> {
    options: &'a NotationOptions,
    told: Told,
    /// What writes the chunks of each kind that was met, by its name.
    scribes: Vec<(&'static str, Box<dyn Scribe>)>,
    text: Vec<u8>,
    stored: Vec<u8>,
    chunk: Chunk,
}

impl<'a> Telling<'a> {
    fn new(options: &'a NotationOptions, out: &Path) -> Self {
        let told = Told {
            output: out.display().to_string(),
            to: options.words,
            games: 0,
            frames: 0,
            bytes: 0,
            unscored: 0,
            made_up: Vec::new(),
            left_out: BTreeMap::new(),
            faults: Vec::new(),
            dry_run: options.dry_run,
            seconds: 0.0,
            share: None,
        };
        Telling { options, told, scribes: Vec::new(), text: Vec::new(), stored: Vec::new(), chunk: Chunk::default() }
    }

    /// Leaves a game or a file out; one that could not be read ends the job, since its content is unknown.
    fn fault(&mut self, e: gristmill_format::Error) -> Result<()> {
        if is_unreadable(&e) {
            return Err(e.into());
        }
        *self.told.left_out.entry(e.kind().name().to_owned()).or_default() += 1;
        if self.told.faults.len() < MESSAGES {
            self.told.faults.push(e.to_string());
        }
        Ok(())
    }

    /// Writes what there is so far.
    fn flush(&mut self, staged: &mut Option<Staged>) -> Result<()> {
        if let Some(staged) = staged {
            staged.append(&self.text)?;
        }
        self.told.bytes += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }

    /// Writes what was held back.
    fn end(&mut self, staged: &mut Option<Staged>) -> Result<()> {
        for (_, scribe) in &mut self.scribes {
            scribe.end(&mut self.text);
            self.told.made_up.extend(scribe.made_up());
        }
        self.flush(staged)
    }

    /// Writes the chunks of `file` that `place` gives to this process. After each [`PIECE`] bytes it calls `progress` with the number of
    /// games so far.
    fn file(
        &mut self,
        file: &Opened,
        place: Place,
        staged: &mut Option<Staged>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let tags = said(file).unwrap_or_default();
        for fault in file.source.faults().iter().filter(|_| place.begins()) {
            self.fault(fault.clone().in_source(&file.path))?;
        }
        for i in (0..file.source.len()).filter(|i| place.has(file, *i)) {
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let before = self.text.len();
            let told = file.fetch(i, &mut self.stored).and_then(|()| {
                file.decode(i, &self.stored, &mut self.chunk)?;
                if let Some(tags) = tags.get(&(i as u64)) {
                    self.chunk.said.clone_from(tags);
                }
                let told = scribe(&mut self.scribes, file.kind, self.options.words)
                    .and_then(|scribe| scribe.add(&self.chunk, &mut self.text));
                told.map_err(|e| e.in_chunk(i).in_source(&file.path))
            });
            let frames = match told {
                Ok(frames) => frames,
                Err(e) => {
                    self.text.truncate(before);
                    self.fault(e)?;
                    continue;
                }
            };
            self.told.games += 1;
            self.told.frames += frames;
            self.told.unscored += self.chunk.frames as u64 - frames;
            if self.text.len() >= PIECE {
                self.flush(staged)?;
                progress(self.told.games);
            }
        }
        Ok(())
    }
}

/// What writes chunks of a kind, made where it was not met before.
///
/// Errors: `Unsupported` for words that the kind does not have.
fn scribe<'a>(
    scribes: &'a mut Vec<(&'static str, Box<dyn Scribe>)>,
    kind: &dyn Work,
    words: Words,
) -> gristmill_format::Result<&'a mut Box<dyn Scribe>> {
    let number = match scribes.iter().position(|(name, _)| *name == kind.name()) {
        Some(number) => number,
        None => {
            scribes.push((kind.name(), kind.scribe(words)?));
            scribes.len() - 1
        }
    };
    Ok(&mut scribes[number].1)
}

/// What the database of a pack says of the games in one of its files, by their numbers there; none for any other file.
fn said(file: &Opened) -> Option<BTreeMap<u64, Vec<(String, String)>>> {
    let codec = kinds::codec_named(file.kind.name()).filter(|codec| codec.format() == file.source.describe().format)?;
    let path = Path::new(&file.path);
    let folder = path.parent().filter(|folder| matches!(is_file(&folder.join(METADATA)), Ok(true)))?;
    let files = Manifest::read(folder).ok()?.files;
    let number = files.iter().position(|one| path.file_name().is_some_and(|name| name == &*one.name))?;
    let first = files[..number].iter().map(|one| one.games).sum::<u64>();
    let mut found = BTreeMap::new();
    let read = Games::open(&folder.join(METADATA)).and_then(|games| {
        games.of(first..first + files[number].games, &mut |game| {
            found.insert(game.chunk, codec.said(&game.facts));
            Ok(())
        })
    });
    read.ok().map(|()| found)
}
