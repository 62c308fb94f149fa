//! A pack, a file or a folder of files, opened once -> its games by place, their records, and each frame as its kind draws it.
//! Reads one game at a time, and keeps the one game of a file that it decoded last. Judges nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_engine::chunks::is_pack;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::error::Result;
use gristmill_engine::lineage::FILE as LINEAGE;
use gristmill_engine::marks::FOLDER as MARKS;
use gristmill_engine::names::{file_name, is_chunks, is_sums};
use gristmill_engine::pack::METADATA;
use gristmill_engine::row_files;
use gristmill_engine::selection::{self, Selection};
use gristmill_engine::store::Residence;
use gristmill_engine::store::files::{is_file, is_folder};
use gristmill_engine::store::newest;
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, detect};

use super::{FramePlace, FrameView, pack_frame};
use crate::files::{self, Closed, Found, Listing};
use crate::work::Opened;
use crate::work::drawn::record;

/// Games that are shown one by one.
pub struct Shelf {
    path: PathBuf,
    holds: Holds,
}

enum Holds {
    Pack(Box<Selection>),
    File(Box<Opened>, Mutex<Option<(usize, Arc<Chunk>)>>),
    Folder(Vec<Item>),
}

/// What lies in a folder.
enum Item {
    Pack(String),
    File(Closed),
}

/// One game of a shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    /// Its place, from 0.
    pub place: usize,
    /// Its number for people: the id in the database of a pack, else its place.
    pub id: u64,
    /// How many frames it has.
    pub frames: u64,
    /// Where it came from, or the member that holds it.
    pub source: Option<String>,
}

impl Shelf {
    /// Opens what lies at `path`.
    ///
    /// Errors: as the pack's or the file's; `Empty` for a folder without files.
    pub fn open(path: &Path) -> Result<Self> {
        let path = newest(path)?.into_owned();
        let holds = match is_folder(&path)? {
            true if is_pack(&path)? || is_file(&path.join(METADATA))? => {
                Holds::Pack(Box::new(Selection::all(selection::open(&path, Residence::Mapped)?)))
            }
            true => {
                let items = items(files::list(&path)?);
                if items.is_empty() {
                    let e = Error::new(Kind::Empty, "a folder without files");
                    return Err(e.in_source(path.display().to_string()).into());
                }
                Holds::Folder(items)
            }
            false => match files::file(&path) {
                Found::File(file) => Holds::File(Box::new(file), Mutex::default()),
                Found::Fault(e) => return Err(e.into()),
                Found::Other | Found::Pack(_) | Found::Unlisted(_) => {
                    let e = Error::new(Kind::UnknownFormat, "no data");
                    return Err(e.in_source(path.display().to_string()).into());
                }
            },
        };
        Ok(Shelf { path, holds })
    }

    /// The games of a selection of a pack.
    pub fn of(selection: Selection) -> Self {
        Shelf { path: selection.pack().folder().to_owned(), holds: Holds::Pack(Box::new(selection)) }
    }

    /// What was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All frames of the pack, where it is one.
    pub fn pack(&self) -> Option<&Selection> {
        match &self.holds {
            Holds::Pack(all) => Some(all),
            _ => None,
        }
    }

    /// How many packs and files there are, where it is a folder of them.
    pub fn items(&self) -> Option<usize> {
        match &self.holds {
            Holds::Folder(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The path of a pack or file of the folder, by its place, packs first; [`Shelf::open`] opens it.
    pub fn item(&self, place: usize) -> Option<&str> {
        let Holds::Folder(items) = &self.holds else { return None };
        items.get(place).map(|item| match item {
            Item::Pack(path) => path,
            Item::File(file) => file.path(),
        })
    }

    /// What lies at a place of the folder, by its first bytes: `pack`, the kind of the frames of a file, or `data` where the file
    /// itself says it; none for what is of no known format, or cannot be read.
    pub fn kind_of(&self, place: usize) -> Option<&'static str> {
        let Holds::Folder(items) = &self.holds else { return None };
        match items.get(place)? {
            Item::Pack(_) => Some("pack"),
            Item::File(file) => Some(detect::kind(file.format()?).unwrap_or("data")),
        }
    }

    /// What the file or pack says it is; empty of a folder.
    pub fn format(&self) -> String {
        match &self.holds {
            Holds::Pack(all) => all.pack().form().to_owned(),
            Holds::File(file, _) => file.source.describe().format.to_owned(),
            Holds::Folder(_) => String::new(),
        }
    }

    /// The name of the kind that its frames are of; empty of a folder, and of a pack of rows.
    pub fn kind(&self) -> &'static str {
        match &self.holds {
            Holds::Pack(all) => all.pack().as_a::<ChunkPack>().map_or("", |pack| pack.codec().name()),
            Holds::File(file, _) => file.kind.name(),
            Holds::Folder(_) => "",
        }
    }

    /// How many games there are; 0 of a folder, whose files are shelves of their own.
    pub fn len(&self) -> usize {
        match &self.holds {
            Holds::Pack(all) => all.games().len(),
            Holds::File(file, _) => file.source.len(),
            Holds::Folder(_) => 0,
        }
    }

    /// Whether there is no game.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place of the game of this number.
    pub fn place_of(&self, id: u64) -> Option<usize> {
        match &self.holds {
            Holds::Pack(all) => all.games().binary_search(&id).ok(),
            _ => usize::try_from(id).ok().filter(|place| *place < self.len()),
        }
    }

    /// The name of a game's member in its file, without decoding it.
    pub fn member(&self, place: usize) -> Option<&str> {
        match &self.holds {
            Holds::File(file, _) => file.member(place),
            _ => None,
        }
    }

    /// A game by its place.
    ///
    /// Errors: `Missing` for a place beyond the last; those of a game that cannot be read.
    pub fn game(&self, place: usize) -> Result<Game> {
        match &self.holds {
            Holds::Pack(all) => {
                let id = *all.games().get(place).ok_or_else(|| self.lacks(place))?;
                let frames = all.pack().frames_of(&[id])?.len();
                Ok(Game { place, id, frames, source: all.pack().source(id) })
            }
            Holds::File(file, _) => {
                let frames = self.chunk(place)?.frames as u64;
                Ok(Game { place, id: place as u64, frames, source: file.member(place).map(str::to_owned) })
            }
            Holds::Folder(_) => Err(self.lacks(place)),
        }
    }

    /// The layout of the records of a game.
    ///
    /// Errors: as [`Shelf::game`].
    pub fn layout(&self, game: &Game) -> Result<Option<Layout>> {
        match &self.holds {
            Holds::Pack(all) => Ok(Some(all.layout().clone())),
            _ => Ok(self.chunk(game.place)?.layout.as_deref().cloned()),
        }
    }

    /// The record of a frame of a game.
    ///
    /// Errors: as [`Shelf::game`]; `Missing` for a frame beyond the last.
    pub fn record(&self, game: &Game, frame: u64) -> Result<Vec<u8>> {
        self.records(game, &[frame])
    }

    /// The records of frames of a game, back to back.
    ///
    /// Errors: as [`Shelf::record`].
    pub fn records(&self, game: &Game, frames: &[u64]) -> Result<Vec<u8>> {
        if let Some(frame) = frames.iter().find(|frame| **frame >= game.frames) {
            let detail = format!("there is no frame {frame}; game {} has {}, counted from 0", game.id, game.frames);
            return Err(Error::new(Kind::Missing, detail).in_source(self.path.display().to_string()).into());
        }
        if let Holds::Pack(all) = &self.holds {
            let there = all.pack().frames_of(&[game.id])?;
            return all.gather(&frames.iter().map(|frame| there.row(*frame)).collect::<Vec<_>>());
        }
        let chunk = self.chunk(game.place)?;
        let record = |frame: &u64| chunk.record(usize::try_from(*frame).unwrap_or(usize::MAX)).to_vec();
        Ok(frames.iter().flat_map(record).collect())
    }

    /// A frame of a game as its kind draws it; with `full` every field and every move.
    ///
    /// Errors: as [`Shelf::record`]; those of a record that cannot be drawn.
    pub fn frame(&self, game: &Game, frame: u64, full: bool) -> Result<FrameView> {
        let bytes = self.record(game, frame)?;
        self.drawn(game, frame, &bytes, self.layout(game)?.as_ref(), full)
    }

    /// As [`Shelf::frame`], of a record of this layout that was read before.
    ///
    /// Errors: those of a record that cannot be drawn.
    pub fn drawn(
        &self,
        game: &Game,
        frame: u64,
        bytes: &[u8],
        layout: Option<&Layout>,
        full: bool,
    ) -> Result<FrameView> {
        let at = usize::try_from(frame).unwrap_or(usize::MAX);
        let place = FramePlace {
            chunk: game.place,
            frame: at,
            frames: usize::try_from(game.frames).unwrap_or(usize::MAX),
            member: game.source.clone(),
            record: layout.filter(|_| full).map(|layout| record::record(layout, bytes)),
        };
        match &self.holds {
            Holds::Pack(all) => pack_frame::drawn(all, place, bytes),
            Holds::File(file, _) => {
                let drawn = file.kind.view(place, layout, bytes);
                Ok(drawn.map_err(|e| e.in_frame(at).in_chunk(game.place).in_source(&file.path))?)
            }
            Holds::Folder(_) => Err(self.lacks(game.place)),
        }
    }

    /// A game of the file, decoded.
    fn chunk(&self, place: usize) -> Result<Arc<Chunk>> {
        let Holds::File(file, kept) = &self.holds else { return Err(self.lacks(place)) };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, chunk)) = kept.as_ref().filter(|(there, _)| *there == place) {
            return Ok(Arc::clone(chunk));
        }
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        file.fetch(place, &mut stored)?;
        file.decode(place, &stored, &mut chunk)?;
        let chunk = Arc::new(chunk);
        *kept = Some((place, Arc::clone(&chunk)));
        Ok(chunk)
    }

    fn lacks(&self, place: usize) -> gristmill_engine::Error {
        let detail = format!("there is no game {place}; there are {}, counted from 0", self.len());
        Error::new(Kind::Missing, detail).in_source(self.path.display().to_string()).into()
    }
}

/// The packs of a folder, and the files that belong to none of them.
fn items(listing: Listing) -> Vec<Item> {
    let folder = |file: &Closed| Path::new(file.path()).parent().map(Path::to_owned).unwrap_or_default();
    let is_first = |file: &&Closed| file.named(&file_name(0)) && Path::new(file.path()).ends_with(file_name(0));
    let packs: BTreeSet<PathBuf> =
        listing.packs.into_iter().chain(listing.files.iter().filter(is_first).map(folder)).collect();
    let is_part = |file: &Closed| {
        let (folder, name) = (folder(file), Path::new(file.path()).file_name().unwrap_or_default().to_string_lossy());
        match packs.contains(&folder) {
            true => row_files::is_part(&name) || is_chunks(&name) || is_sums(&name) || name == LINEAGE,
            false => folder.ends_with(MARKS) && folder.parent().is_some_and(|folder| packs.contains(folder)),
        }
    };
    let files = listing.files.into_iter().filter(|file| !is_part(file)).map(Item::File);
    packs.iter().map(|pack| Item::Pack(pack.display().to_string())).chain(files).collect()
}
