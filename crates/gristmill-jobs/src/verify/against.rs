//! A chunk pack and the folder that it was made of -> whether every record of the games there is in the pack, bit for bit.
//! Games are found by the hash of their records and then compared; names and order do not matter.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::chunks::is_pack;
use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::error::Result;
use gristmill_engine::open::{OpenSource, open};
use gristmill_engine::pack::METADATA;
use gristmill_engine::store::newest;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};
use xxhash_rust::xxh3::xxh3_128;

use super::{Fault, Progress, Verification, VerifyOptions, fault_of};
use crate::files::{self, Found};
use crate::in_order::InOrder;
use crate::inputs::{OwnFile, Place};
use crate::kinds;
use crate::work::Opened;

/// A pack whose games are looked for.
pub(super) struct Pack {
    folder: PathBuf,
    /// XXH3-128 of the manifest, as 32 hexadecimal digits. It tells packs apart.
    pub(super) identity: String,
    kind: &'static str,
    files: Vec<OpenSource>,
    /// File and chunk of each game, by the hash of its records.
    games: HashMap<u128, (usize, usize)>,
}

impl Pack {
    /// Errors: `Config` for what is no pack of chess games; `Format` with the file.
    fn open(folder: &Path) -> Result<Self> {
        let folder = &*newest(folder)?;
        let refuse = |text: String| Err(gristmill_engine::Error::config("against", text));
        if !is_pack(folder)? {
            return refuse(format!(
                "{} is no pack of whole games; sources can be compared with such only",
                folder.display()
            ));
        }
        let manifest = Manifest::read(folder)?;
        let identity = format!("{:032x}", xxh3_128(manifest.to_json()?.as_bytes()));
        let kind = kinds::of(&manifest.codec).map_err(|e| e.in_source(folder.display().to_string()))?;
        if kind.facts().is_none() {
            return refuse(format!(
                "{} holds chunks of `{}`, which the records alone do not tell apart; games of chess are compared",
                folder.display(),
                kind.name()
            ));
        }
        let files = manifest.files.iter().map(|file| open(folder.join(&file.name)));
        let files = files.collect::<gristmill_format::Result<Vec<_>>>()?;
        let mut games = HashMap::new();
        Games::open(&folder.join(METADATA))?.each(&mut |game| {
            games.insert(game.content, (game.file as usize, game.chunk as usize));
            Ok(())
        })?;
        Ok(Pack { folder: folder.to_owned(), identity, kind: kind.name(), files, games })
    }

    /// Whether the pack has a game of these records.
    ///
    /// Errors: with the place in the pack, where what it has there is another or cannot be read.
    fn has(&self, records: &[u8], chunk: &mut Chunk) -> gristmill_format::Result<bool> {
        let Some((file, number)) = self.games.get(&xxh3_128(records)) else { return Ok(false) };
        let missing = || Error::new(Kind::Missing, format!("chunk file {file}, which the database names"));
        self.files.get(*file).ok_or_else(missing)?.chunk(*number, chunk)?;
        Ok(chunk.records() == records)
    }
}

/// Adds the games below `sources` that are not in the pack to `report`.
///
/// Errors: `Config`, `Stopped`; `Format` for a pack that cannot be opened.
pub(super) fn verify(
    sources: &Path,
    options: &VerifyOptions,
    report: &mut Verification,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let (pack, listing) = (Arc::new(of(options)?), files::list(sources)?);
    let files = listing.files.into_iter().map(|file| OwnFile { file, place: Place::whole() }).collect();
    compare(&pack, sources, files, options, report, progress)?;
    for unlisted in listing.unlisted {
        report.add(options.max_faults, fault_of(sources, &unlisted));
    }
    nothing(sources, options.max_faults, report);
    Ok(())
}

/// Opens the one pack at `options.paths`, with which games are compared.
///
/// Errors: `Config` in `against` if there is not exactly one path, or if no pack of chess games lies there; `Format`, with the file, if
/// the pack cannot be read.
pub(super) fn of(options: &VerifyOptions) -> Result<Pack> {
    let [pack] = options.paths.as_slice() else {
        return Err(gristmill_engine::Error::config("against", "expected one pack to compare the games with"));
    };
    Pack::open(pack)
}

/// Compares the games in `files` with `pack`. Adds a fault to `report` for each game that the pack lacks, and for each file or game that
/// cannot be read, in the order of the files. It calls `progress` after each file.
///
/// Errors: `Path`, with `sources`, if the threads cannot start; `Stopped`.
pub(super) fn compare(
    pack: &Arc<Pack>,
    sources: &Path,
    files: Vec<OwnFile>,
    options: &VerifyOptions,
    report: &mut Verification,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let (count, keep, pack) = (files.len(), options.max_faults, Arc::clone(pack));
    let compare = move |i: usize| one_file(&files[i], &pack, keep);
    let started = InOrder::start(options.workers.min(count.max(1)), count, options.stop.clone(), compare);
    let mut flow = started.map_err(|e| gristmill_engine::Error::path(sources, &e))?;
    while let Some(found) = flow.next()? {
        report.absorb(keep, found);
        progress(report, None);
    }
    Ok(())
}

/// Adds a fault to `report` if the comparison found neither a game nor a fault. The report lists at most `keep` faults.
pub(super) fn nothing(sources: &Path, keep: usize, report: &mut Verification) {
    if report.chunks == 0 && report.fault_count == 0 {
        let e = Error::new(Kind::Empty, "there is no chess game in it to compare with");
        report.add(keep, Fault::new(&e.in_source(sources.display().to_string())));
    }
}

fn one_file(own: &OwnFile, pack: &Pack, keep: usize) -> Verification {
    let mut found = Verification::default();
    match own.file.open() {
        Found::File(file) if file.kind.name() == pack.kind => games(&file, own.place, pack, keep, &mut found),
        _ if !own.place.begins() => {}
        Found::Fault(e) => found.add(keep, Fault::new(&e)),
        _ => found.skipped += 1,
    }
    found
}

fn games(file: &Opened, place: Place, pack: &Pack, keep: usize, found: &mut Verification) {
    found.files += u64::from(place.begins());
    let (mut stored, mut chunk, mut packed) = (Vec::new(), Chunk::default(), Chunk::default());
    for i in (0..file.source.len()).filter(|i| place.has(file, *i)) {
        found.chunks += 1;
        let read = file.fetch(i, &mut stored).and_then(|()| file.decode(i, &stored, &mut chunk));
        let compared = read.and_then(|()| pack.has(chunk.records(), &mut packed));
        found.checked += chunk.frames as u64;
        let e = match compared {
            Ok(true) => continue,
            Ok(false) => {
                let detail = format!("its records are not in {}", pack.folder.display());
                let e = Error::new(Kind::Missing, detail).in_chunk(i).in_source(&file.path);
                file.member(i).map(|name| e.clone().in_member(name)).unwrap_or(e)
            }
            Err(e) => e,
        };
        found.add(keep, Fault::new(&e));
    }
}
