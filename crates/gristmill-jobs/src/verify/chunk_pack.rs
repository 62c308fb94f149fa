//! The folder of a chunk pack -> whether files, manifest and database tell the same of its games.
//! The games themselves are checked file by file.

use std::path::Path;

use gristmill_engine::chunks::manifest::{ChunkFileEntry, Manifest};
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::chunks::sums::read as kept;
use gristmill_engine::chunks::{files, is_chunks, is_sums};
use gristmill_engine::error::Result;
use gristmill_engine::kinds;
use gristmill_engine::kinds::packs::{weigh_file, wrong_opening};
use gristmill_engine::pack::{MANIFEST, METADATA, OPENING};
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::{Residence, open_file};
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::container::sums;
use gristmill_format::source::{Span, read_span};
use gristmill_format::{Error, Kind};

use super::{Fault, Verification};
use crate::pack::is_unreadable;

/// Adds what does not fit to `found`.
pub(super) fn verify(folder: &Path, keep: usize, found: &mut Verification) {
    let mut tell = |name: &str, detail: String| {
        let e = Error::new(Kind::Corrupt, detail).in_source(folder.join(name).display().to_string());
        found.add(keep, Fault::new(&e));
    };
    let (mut whole, mut as_listed, mut unread) = (true, true, Vec::new());
    match Manifest::read(folder) {
        Ok(manifest) => {
            let (mut listed, mut missing) = (Vec::new(), Vec::new());
            for file in &manifest.files {
                match is_file(&folder.join(&file.name)) {
                    Ok(true) => listed.push(file),
                    Ok(false) => missing.push(file),
                    Err(e) => unread.push(e),
                }
            }
            for file in missing {
                tell(&file.name, "the manifest lists it; it is not there".to_owned());
                (whole, as_listed) = (false, false);
            }
            let there = files(folder).unwrap_or_default().into_iter().filter(|name| is_chunks(name));
            for name in there.filter(|name| manifest.files.iter().all(|file| file.name != *name)) {
                tell(&name, "the manifest does not list it".to_owned());
                whole = false;
            }
            // What is wrong with a damaged index is reported where files are checked, a missing file above.
            for file in listed {
                match index(&folder.join(&file.name)) {
                    Ok(index) => {
                        let Some(detail) = differs(file, &index) else { continue };
                        tell(MANIFEST, detail);
                    }
                    Err(e) if is_unreadable(&e) => unread.push(e),
                    Err(_) => continue,
                }
                as_listed = false;
            }
        }
        Err(e) => match refused(&e) {
            Some(e) => unread.push(e),
            None => tell(MANIFEST, what(&e)),
        },
    }
    if matches!(is_file(&folder.join(METADATA)), Ok(false)) {
        return tell(METADATA, "it is not there".to_owned());
    }
    // Games are numbered over all files: where one is missing, the others do not have their numbers.
    if whole
        && let Ok(pack) = ChunkPack::open(folder, Residence::Mapped)
        && let Err(e) = games(&pack, &mut |detail| tell(METADATA, detail))
    {
        match refused(&e) {
            Some(e) => unread.push(e),
            None => tell(METADATA, what(&e)),
        }
    }
    for name in files(folder).into_iter().flatten().filter(|name| as_listed && is_sums(name)) {
        // An unreadable file is not reported as damaged, nor as one to delete.
        let readable = open_file(&folder.join(&name)).and_then(|bytes| {
            let len = bytes.len()?;
            read_span(&*bytes, Span::WHOLE, len, &mut Vec::new())
        });
        if let Err(e) = readable {
            unread.push(e);
        } else if let Some(detail) = wrong_sums(folder, &name) {
            tell(&name, detail);
        }
    }
    if let Some(detail) = wrong_opening(folder).filter(|_| as_listed) {
        tell(OPENING, detail.to_owned());
    }
    unread.iter().for_each(|e| found.add(keep, Fault::new(e)));
}

/// The index of a chunk file.
fn index(path: &Path) -> gristmill_format::Result<ChunkFile> {
    open_file(path).and_then(|bytes| ChunkFile::open(&*bytes)).map_err(|e| e.in_source(path.display().to_string()))
}

/// The error of a file that could not be read, if that is what it is.
fn refused(e: &gristmill_engine::Error) -> Option<Error> {
    match e {
        gristmill_engine::Error::Format(e) if is_unreadable(e) => Some(e.clone()),
        gristmill_engine::Error::Path { path, kind, message } => {
            Some(Error::new(Kind::Io(*kind), message.clone()).in_source(path.display().to_string()))
        }
        _ => None,
    }
}

/// What is wrong with the sums of this name. Those of the rule that is known here are made again and compared.
fn wrong_sums(folder: &Path, name: &str) -> Option<String> {
    let (chunks, rule) = sums::named(name)?;
    let path = folder.join(&chunks);
    // A file that cannot be opened was reported before.
    let Ok(index) = index(&path) else {
        return matches!(is_file(&path), Ok(false)).then(|| format!("there is no {chunks}; delete it"));
    };
    let Some(kept) = kept(&path, &index, rule) else {
        return Some(format!("it is damaged, or not of {chunks} as it is; it is not used, and can be deleted"));
    };
    let weigher = kinds::codec(index.codec()).ok()?.weigher().filter(|weigher| weigher.id() == rule)?;
    let made = weigh_file(&path, &*weigher).ok()?;
    let game = made.iter().zip(&kept).position(|(made, kept)| made != kept)?;
    Some(format!("game {game} of {chunks} weighs {}, it says {}; delete it", made[game], kept[game]))
}

/// What is wrong, without the file, which is reported beside it.
fn what(e: &gristmill_engine::Error) -> String {
    match e {
        gristmill_engine::Error::Format(e) => e.detail().to_owned(),
        gristmill_engine::Error::Path { message, .. } => message.clone(),
        e => e.to_string(),
    }
}

/// What the manifest says otherwise of a file than its index does.
fn differs(said: &ChunkFileEntry, index: &ChunkFile) -> Option<String> {
    let (name, identity) = (&said.name, format!("{:016x}", index.identity()));
    let counts = [("games", said.games, index.len() as u64), ("frames", said.frames, index.total_frames())];
    if said.index_xxh3 != identity {
        return Some(format!("it lists {name} with the checksum {}, the file has {identity}", said.index_xxh3));
    }
    let (what, said, is) = counts.into_iter().find(|(_, said, is)| said != is)?;
    Some(format!("it lists {name} with {said} {what}, the file has {is}"))
}

/// The same for one chunk file, where it lies in a pack: what manifest and database say of this one.
pub(super) fn verify_file(path: &Path, keep: usize, found: &mut Verification) {
    let named = path
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| is_chunks(name) && matches!(is_file(path), Ok(true)));
    let folder = path.parent().filter(|folder| matches!(is_file(&folder.join(MANIFEST)), Ok(true)));
    let (Some(name), Some(folder)) = (named, folder) else { return };
    // A damaged index is reported where its chunks are checked.
    let index = match index(path) {
        Ok(index) => index,
        Err(e) => {
            if is_unreadable(&e) {
                found.add(keep, Fault::new(&e));
            }
            return;
        }
    };
    let mut tell = |name: &str, detail: String| {
        let e = Error::new(Kind::Corrupt, detail).in_source(folder.join(name).display().to_string());
        found.add(keep, Fault::new(&e));
    };
    let number = match Manifest::read(folder) {
        Err(e) => return tell(MANIFEST, what(&e)),
        Ok(manifest) => match manifest.files.iter().position(|file| file.name == name) {
            None => return tell(MANIFEST, format!("it does not list {name}")),
            Some(number) => {
                if let Some(detail) = differs(&manifest.files[number], &index) {
                    tell(MANIFEST, detail);
                }
                number as u64
            }
        },
    };
    let mut next = 0;
    let each = Games::open(&folder.join(METADATA)).and_then(|games| {
        games.each(&mut |game| {
            if game.file == number {
                let said = (game.chunk, game.frames, game.source.as_str());
                let is = (next as u64, u64::from(index.frames(next)), index.name(next));
                if said != is {
                    tell(METADATA, format!("game {} is {said:?} (chunk, frames, source), {name} says {is:?}", game.id));
                }
                next += 1;
            }
            Ok(())
        })
    });
    match each {
        Err(e) => tell(METADATA, what(&e)),
        Ok(()) if next != index.len() => {
            tell(METADATA, format!("it has {next} games of {name}, there are {}", index.len()));
        }
        Ok(()) => {}
    }
}

/// Holds the rows of the database against the games.
fn games(pack: &ChunkPack, tell: &mut dyn FnMut(String)) -> Result<()> {
    let mut next = 0;
    Games::open(&pack.folder().join(METADATA))?.each(&mut |game| {
        let there = pack.frames(game.id);
        let source = pack.source(game.id);
        if game.id != next || there != Some((game.first_frame, game.frames)) || source != game.source {
            let is = there
                .map_or("no such game".to_owned(), |(first, frames)| format!("{} of {source}", range(first, frames)));
            let said = range(game.first_frame, game.frames);
            tell(format!("game {} is {said} of {}, the chunk files have {is}", game.id, game.source));
        }
        next = game.id + 1;
        Ok(())
    })?;
    if next != pack.games() {
        tell(format!("its games end before number {next}, the chunk files have {}", pack.games()));
    }
    Ok(())
}

fn range(first: u64, frames: u64) -> String {
    format!("frames {first}..{}", first.saturating_add(frames))
}
