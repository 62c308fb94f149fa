//! A folder of chess games -> a chunk pack: anew, after a kill, or after what is there. Refuses before anything is changed.

mod assemble;
mod games;

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;

use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

use super::{Existing, OnError, PackOptions, Packed, Progress};
use crate::chunks::chess::CHESS;
use crate::chunks::manifest::Manifest;
use crate::chunks::metadata::{Games as Database, GamesWriter};
use crate::chunks::{self, is_chunks};
use crate::error::{Error, Result};
use crate::job::in_order::InOrder;
use crate::pack::{MANIFEST, METADATA, STAGING};
use crate::store::publish::{self, Found, Staging};
use assemble::{Assembly, Standing};
pub(super) use games::Games;
use games::Hands;

/// Frames of a chunk file, where nothing else is asked for: some 300 MB.
const FILE_FRAMES: u64 = 4_000_000;

/// The name of this form in what [`Packed`] says.
const LAYOUT: &str = "chess chunks";

/// Packs `games`, with options that were checked.
pub(super) fn pack(options: &PackOptions, games: Games, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    if options.layout.is_some() {
        return Err(Error::config("layout", "forms of rows are for 2048; chess games are packed in one way"));
    }
    if options.checkpoint_rows != PackOptions::new("", "").checkpoint_rows {
        let text = "each chunk file is a point to go on from; shard_rows says how many frames one has";
        return Err(Error::config("checkpoint_rows", text));
    }
    if let (OnError::Raise, Some(e)) = (options.on_error, &games.fault) {
        return Err(e.clone().into());
    }
    fits(options)?;
    let found = games.games.len() as u64;
    if options.dry_run {
        let skipped = games.skipped;
        return Ok(Packed { games: found, runs: found, skipped, dry_run: true, ..packed(options) });
    }
    let (staging, standing, known) = match start(options, &games)? {
        Start::From(staging, standing, known) => (staging, *standing, known),
        Start::Complete => return complete(options),
    };
    let (resumed, first) = (standing.games - standing.games_before, standing.done);
    let mut hash = Xxh3::new();
    for i in 0..first {
        hash.update(games.name(i).as_bytes());
        hash.update(b"\n");
    }
    if first > 0 && format!("{:032x}", hash.digest128()) != standing.names {
        let text = format!("games were added, removed or renamed in {}", options.input.display());
        return Err(Error::State(format!("{text} since the job was interrupted; pack it with --overwrite")));
    }
    let mut assembly = Assembly::new(options, &CHESS, staging, standing, known, hash)?;
    let (games, hands) = (Arc::new(games), Hands::default());
    let pieces = games.pieces(first);
    let (count, shared) = (pieces.len(), games.clone());
    let started = InOrder::start(options.workers, count, options.stop.clone(), move |i| hands.pack(&shared, pieces[i]));
    let mut flow = started.map_err(|e| Error::path(&options.input, &e))?;
    while let Some(piece) = flow.next()? {
        for game in piece {
            assembly.take(&games.name(assembly.standing.done), game)?;
        }
        progress(Progress {
            done: assembly.standing.done as u64,
            games: found,
            rows: assembly.standing.frames,
            skipped: (assembly.standing.skipped.len() - assembly.standing.skipped_before) as u64,
        });
    }
    drop(flow);
    finish(options, assembly, found, resumed)
}

/// Publishes what was packed, if it is anything.
fn finish(options: &PackOptions, assembly: Assembly<'_>, found: u64, resumed: u64) -> Result<Packed> {
    let fresh = assembly.standing.games - assembly.standing.games_before;
    let append = assembly.standing.append;
    if fresh == 0 && !append {
        let detail = assembly.standing.skipped.first();
        let detail = detail.map_or(String::new(), |s| format!("; the first, {}: {}: {}", s.file, s.kind, s.detail));
        assembly.staging.discard()?;
        let e = FormatError::new(Kind::Empty, format!("not one game could be taken{detail}"));
        return Err(e.in_source(options.input.display().to_string()).into());
    }
    let (staging, standing) = assembly.complete()?;
    if fresh == 0 {
        staging.discard()?;
    } else {
        let outdated = outdated(options, append)?;
        staging.publish(&outdated)?;
    }
    Ok(Packed {
        games: found,
        known: standing.known,
        runs: standing.games,
        rows: standing.frames,
        files: standing.files.len() as u64,
        skipped: standing.skipped[standing.skipped_before..].to_vec(),
        resumed,
        ..packed(options)
    })
}

/// Files of the pack in the output that the new one has no use for.
fn outdated(options: &PackOptions, append: bool) -> Result<Vec<String>> {
    let mut names = chunks::files(&options.output)?;
    names.retain(|name| !append || name.ends_with("-wal") || name.ends_with("-shm"));
    Ok(names)
}

fn packed(options: &PackOptions) -> Packed {
    Packed { pack: options.output.display().to_string(), layout: LAYOUT, ..Packed::default() }
}

/// What there is where nothing is left to do.
fn complete(options: &PackOptions) -> Result<Packed> {
    let manifest = Manifest::read(&options.output)?;
    Ok(Packed {
        games: manifest.games,
        runs: manifest.games,
        rows: manifest.frames,
        files: manifest.files.len() as u64,
        resumed: manifest.games,
        ..packed(options)
    })
}

fn refuse<T>(options: &PackOptions, message: &str) -> Result<T> {
    Err(Error::config("output", format!("{}: {message}", options.output.display())))
}

/// Refuses what is asked for where the output, without a job on it, shows that it cannot be.
fn fits(options: &PackOptions) -> Result<()> {
    let there = !chunks::files(&options.output)?.is_empty();
    let other = there && !chunks::is_pack(&options.output);
    match options.existing {
        _ if other => refuse(options, "there is a pack of something else; take another folder, or remove it first"),
        _ if publish::is_staged(&options.output, STAGING) => Ok(()),
        Existing::Refuse if there => {
            refuse(options, "there is a pack already; --overwrite replaces it, --append adds what is new")
        }
        Existing::Append if !there => refuse(options, "there is no pack to add to; leave --append out"),
        _ => Ok(()),
    }
}

/// Where packing starts.
enum Start {
    /// From here; the hashes are those of games that were in the pack before.
    From(Staging, Box<Standing>, HashSet<u128>),
    /// Nowhere: the pack is complete.
    Complete,
}

fn start(options: &PackOptions, games: &Games) -> Result<Start> {
    let (staging, found) = Staging::open(&options.output, STAGING)?;
    let there = chunks::is_pack(&options.output);
    let left = staging.path(METADATA).exists();
    match options.existing {
        Existing::Resume if staging.path(MANIFEST).exists() => {
            let append = Manifest::read(staging.path("").as_path())?.files.len() > staged(&staging)?;
            let outdated = outdated(options, append)?;
            staging.publish(&outdated)?;
            Ok(Start::Complete)
        }
        Existing::Resume if left => resume(options, staging),
        Existing::Resume if there => {
            staging.discard()?;
            Ok(Start::Complete)
        }
        Existing::Refuse | Existing::Append if found == Found::Published => {
            staging.discard()?;
            refuse(options, "an interrupted job was completed there now; look at it, then say --overwrite or --append")
        }
        Existing::Refuse | Existing::Append if left => {
            refuse(options, "an interrupted job is here; go on with --resume, or start again with --overwrite")
        }
        Existing::Append => append(options, staging, games),
        _ => {
            staging.clear()?;
            let mut standing = Box::new(Standing { file_frames: file_frames(options), ..Standing::default() });
            standing.skipped.clone_from(&games.skipped);
            Ok(Start::From(staging, standing, HashSet::new()))
        }
    }
}

fn file_frames(options: &PackOptions) -> u64 {
    options.shard_rows.unwrap_or(FILE_FRAMES)
}

/// Chunk files in the staging.
fn staged(staging: &Staging) -> Result<usize> {
    Ok(staging.names()?.iter().filter(|name| is_chunks(name)).count())
}

/// Goes on where an interrupted job closed its last file.
fn resume(options: &PackOptions, staging: Staging) -> Result<Start> {
    let text = GamesWriter::open(staging.path(METADATA), &CHESS)?.progress()?;
    let Some(text) = text else {
        return refuse(options, "the interrupted job had not begun; start it again with --overwrite or --append");
    };
    let other = |e| Error::State(format!("the interrupted job was of another version: {e}"));
    let standing: Standing = serde_json::from_str(&text).map_err(other)?;
    if options.shard_rows.is_some_and(|rows| rows != standing.file_frames) {
        let text = format!("the interrupted job makes files of {} frames; leave it out", standing.file_frames);
        return Err(Error::config("shard_rows", text));
    }
    for name in staging.names()? {
        if is_chunks(&name) && !standing.files.iter().any(|file| file.name == name) {
            let path = staging.path(&name);
            fs::remove_file(&path).map_err(|e| Error::path(path, &e))?;
        }
    }
    let known =
        if standing.append { Database::open(&options.output.join(METADATA))?.contents()? } else { HashSet::new() };
    Ok(Start::From(staging, Box::new(standing), known))
}

/// Adds to the pack that is there: new files behind its own.
fn append(options: &PackOptions, staging: Staging, games: &Games) -> Result<Start> {
    let manifest = Manifest::read(&options.output)?;
    if manifest.codec != CHESS.name {
        return refuse(options, &format!("the pack holds chunks of `{}`, not of `{}`", manifest.codec, CHESS.name));
    }
    staging.clear()?;
    let path = options.output.join(METADATA);
    let known = Database::open(&path)?.contents()?;
    if known.len() as u64 > manifest.games {
        let e = FormatError::new(Kind::Corrupt, "the games are not those of the manifest; see `gristmill verify`");
        return Err(e.in_source(path.display().to_string()).into());
    }
    fs::copy(&path, staging.path(METADATA)).map_err(|e| Error::path(path, &e))?;
    let mut skipped = manifest.skipped;
    skipped.retain(|before| games.skipped.iter().all(|now| now.file != before.file));
    let skipped_before = skipped.len();
    skipped.extend(games.skipped.iter().cloned());
    let standing = Standing {
        append: true,
        file_frames: file_frames(options),
        games: manifest.games,
        games_before: manifest.games,
        frames: manifest.frames,
        files_before: manifest.files.len(),
        files: manifest.files,
        stored_bytes: manifest.stored_bytes,
        skipped_before,
        skipped,
        ..Standing::default()
    };
    Ok(Start::From(staging, Box::new(standing), known))
}
