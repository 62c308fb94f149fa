//! A folder of chess games or demonstrations -> a chunk pack, from where [`begin`](super::begin) says.
//! Refuses before anything is changed.

mod assemble;
mod demos;
pub(super) mod games;
pub(super) mod joined;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::codec::Codec;
use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::Games as Database;
use gristmill_engine::chunks::open::File;
use gristmill_engine::chunks::{self, file_name, is_chunks};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::pack::{MANIFEST, METADATA};
use gristmill_engine::pipeline::acceptance::weigher;
use gristmill_engine::store::publish::Staging;
use gristmill_format::container::sums;
use gristmill_format::weigh::Weigher;
use gristmill_format::{Error as FormatError, Kind};
use serde::Deserialize;

use super::begin::{self, Layout, Making, Start};
use super::{Existing, OnError, PackOptions, Packed, Progress, Storing, is_unreadable};
use crate::kinds::offers;
use assemble::{Assembly, Rules, STORED, Standing};
pub(super) use demos::{Demos, LABEL};
pub(super) use games::Games;

/// The default number of frames in a chunk file: some 300 MB.
const FILE_FRAMES: u64 = 4_000_000;

/// Receives the pack as far as it is, and how many games were found so far.
type Finds<'a> = dyn FnMut(&Assembly<'_>, u64) + 'a;

/// What is packed: games of one kind, in an order that the input alone decides.
pub(super) trait Input {
    /// What becomes of them.
    fn codec(&self) -> &'static dyn Codec;

    /// The name of this form in what [`Packed`] says.
    fn label(&self) -> &'static str;

    /// What could not be opened or listed, and the first error among that: one of reading, where there is one.
    fn unusable(&self) -> (&[Skipped], Option<&FormatError>);

    /// A packed game that all others of the pack are to be like.
    fn first(&self) -> Option<Vec<u8>> {
        None
    }

    /// How many games there are.
    ///
    /// Errors: what cannot be counted.
    fn count(&self, options: &PackOptions) -> Result<u64>;

    /// Gives every game to `assembly`, in order, and says how many there were.
    ///
    /// Errors: as [`Assembly::take`] and [`Assembly::recall`]; `Stopped`.
    fn feed(self: Box<Self>, assembly: &mut Assembly<'_>, found: &mut Finds<'_>) -> Result<u64>;
}

/// Refuses options that do not go with an input, and inputs that cannot be read.
///
/// Errors: `Config` with the option; `Format` with the place.
pub(super) fn check(input: &dyn Input, options: &PackOptions) -> Result<()> {
    if options.layout.is_some() {
        return Err(Error::config("layout", "forms of rows are for 2048; other data is packed in one way"));
    }
    if options.checkpoint_rows != PackOptions::new("", "").checkpoint_rows {
        let text = "a job resumes after each chunk file; shard_rows says how many frames one has";
        return Err(Error::config("checkpoint_rows", text));
    }
    match input.unusable().1.filter(|e| options.on_error == OnError::Raise || is_unreadable(e)) {
        Some(e) => Err(e.clone().into()),
        None => {
            offers(input.codec().name(), options.codec)?;
            rules(options, input.codec()).map(drop)
        }
    }
}

impl begin::Games for Box<dyn Input> {
    type Layout = Chunks;
    type Making<'a> = Assembly<'a>;

    fn check(&self, options: &PackOptions) -> Result<()> {
        check(&**self, options)
    }

    fn planned(&self, options: &PackOptions) -> Result<Packed> {
        let found = self.count(options)?;
        let skipped = self.unusable().0.to_vec();
        let before = (options.existing == Existing::Append).then(|| Manifest::read(options.before()).ok()).flatten();
        Ok(Packed {
            layout: self.label(),
            codec: options.codec.or(before.as_ref().and_then(stored)),
            games: found,
            runs: found,
            skipped,
            ..Packed::default()
        })
    }

    fn complete(&self, options: &PackOptions) -> Result<Packed> {
        let manifest = Manifest::read(options.folder_of(MANIFEST))?;
        Ok(Packed {
            layout: self.label(),
            codec: stored(&manifest),
            games: manifest.games,
            runs: manifest.games,
            rows: manifest.frames,
            files: manifest.files.len() as u64,
            resumed: manifest.games,
            ..Packed::default()
        })
    }

    fn begin<'a>(&self, options: &'a PackOptions, from: Start<Standing>) -> Result<Assembly<'a>> {
        let (codec, skipped) = (self.codec(), self.unusable().0);
        let (staging, standing, known) = match from {
            Start::Fresh(staging) => {
                let (file_frames, codec) = (file_frames(options), options.codec);
                let standing = Standing { file_frames, codec, skipped: skipped.to_vec(), ..Standing::default() };
                (staging, standing, HashSet::new())
            }
            Start::After(staging) => append(options, codec, staging, skipped)?,
            Start::From(staging, standing) => resume(options, staging, *standing)?,
            Start::Nothing => return begin::refuse(options, "there is nothing to resume"),
        };
        // Of the pack that is added to, or else of what comes first.
        let first = match (codec.varies(), standing.append) {
            (false, _) => None,
            (true, true) => first_of(options.before())?,
            (true, false) => self.first(),
        };
        Assembly::new(options, (codec, self.label(), first), staging, standing, rules(options, codec)?, known)
    }

    fn take(self, making: &mut Assembly<'_>, progress: &mut dyn FnMut(Progress)) -> Result<u64> {
        self.feed(making, &mut |assembly, games| {
            progress(Progress {
                done: assembly.standing.done as u64,
                games,
                rows: assembly.standing.frames,
                skipped: (assembly.standing.skipped.len() - assembly.standing.skipped_before) as u64,
            });
        })
    }
}

impl Making for Assembly<'_> {
    fn taken(&self) -> u64 {
        self.standing.games - self.standing.games_before
    }

    fn appends(&self) -> bool {
        self.standing.append
    }

    fn unmade(self) -> (Staging, Vec<Skipped>) {
        (self.staging, self.standing.skipped)
    }

    fn complete(self) -> Result<(Staging, Packed)> {
        let layout = self.label;
        let (staging, standing) = self.finish()?;
        let packed = Packed {
            layout,
            codec: standing.codec,
            known: standing.known,
            runs: standing.games,
            rows: standing.frames,
            files: standing.files.len() as u64,
            skipped: standing.skipped[standing.skipped_before..].to_vec(),
            ..Packed::default()
        };
        Ok((staging, packed))
    }
}

/// The rules that weigh games: the one of the column `weight`, and those of the options.
///
/// Errors: `Config` in `weigh`.
fn rules(options: &PackOptions, codec: &dyn Codec) -> Result<Rules> {
    let refuse = |text: &str| Err(Error::config("weigh", text));
    let Some(own) = codec.weigher() else {
        return if options.weigh.is_empty() { Ok(Rules::default()) } else { refuse("only positions of chess weigh") };
    };
    let mut rules: Vec<Arc<dyn Weigher>> = vec![own];
    for rule in &options.weigh {
        let rule = weigher("", Some(rule)).map_err(|e| match e {
            Error::Config { message, .. } => Error::config("weigh", message),
            e => e,
        })?;
        if rule.uniform().is_some() {
            return refuse("all positions weigh the same by it; set diff_focus_q_weight or diff_focus_pol_scale");
        }
        if rules.iter().all(|before| before.id() != rule.id()) {
            rules.push(rule);
        }
    }
    Ok(rules.into())
}

/// Packs of chunk files, as a job writes them.
pub(super) struct Chunks;

impl Layout for Chunks {
    type Standing = Standing;

    fn files(folder: &Path) -> Result<Vec<String>> {
        chunks::files(folder)
    }

    fn is_other(folder: &Path) -> Result<bool> {
        Ok(!chunks::is_pack(folder)?)
    }

    fn stranger(standing: &Standing) -> Option<&str> {
        standing.files.iter().map(|file| &*file.name).find(|name| !is_chunks(name))
    }

    fn close(staging: &Staging) -> Result<bool> {
        let staged = staging.names()?.iter().filter(|name| is_chunks(name)).count();
        Ok(Manifest::read(&staging.path(""))?.files.len() > staged)
    }
}

/// The first packed game of the pack in a folder.
fn first_of(folder: &Path) -> Result<Option<Vec<u8>>> {
    let path = folder.join(file_name(0));
    Ok(Some(File::open(&path)?.game(0)?.to_vec()))
}

/// The codec that the last job on a pack noted.
fn stored(manifest: &Manifest) -> Option<Storing> {
    let asked = manifest.lineage.iter().rev().find_map(|step| step.options.get(STORED))?;
    Storing::deserialize(asked).ok()
}

fn file_frames(options: &PackOptions) -> u64 {
    options.shard_rows.unwrap_or(FILE_FRAMES)
}

/// Where a job stands; the hashes are those of games that were in the pack before.
type From = (Staging, Standing, HashSet<u128>);

/// Resumes where an interrupted job closed its last file.
fn resume(options: &PackOptions, staging: Staging, standing: Standing) -> Result<From> {
    if options.shard_rows.is_some_and(|rows| rows != standing.file_frames) {
        let text = format!("the interrupted job makes files of {} frames; leave it out", standing.file_frames);
        return Err(Error::config("shard_rows", text));
    }
    if let Some(codec) = options.codec.filter(|codec| Some(*codec) != standing.codec) {
        let began = standing.codec.map_or("with none".to_owned(), |codec| format!("with `{}`", codec.name()));
        let text = format!("the interrupted job began {began}, not with `{}`; leave it out", codec.name());
        return Err(Error::config("codec", text));
    }
    for name in staging.names()? {
        let chunks = sums::named(&name).map_or(name.clone(), |(chunks, _)| chunks);
        if is_chunks(&chunks) && !standing.files.iter().any(|file| file.name == chunks) {
            let path = staging.path(&name);
            fs::remove_file(&path).map_err(|e| Error::path(path, &e))?;
        }
    }
    let known =
        if standing.append { Database::open(&options.before().join(METADATA))?.contents()? } else { HashSet::new() };
    Ok((staging, standing, known))
}

/// Adds to an existing pack: new files after its own.
fn append(
    options: &PackOptions,
    codec: &'static dyn Codec,
    mut staging: Staging,
    unusable: &[Skipped],
) -> Result<From> {
    let manifest = Manifest::read(options.before())?;
    if manifest.codec != codec.name() {
        return begin::refuse(
            options,
            &format!("the pack holds chunks of `{}`, not of `{}`", manifest.codec, codec.name()),
        );
    }
    staging.clear(Existing::Append.job())?;
    let path = options.before().join(METADATA);
    let known = Database::open(&path)?.contents()?;
    if known.len() as u64 > manifest.games {
        let e = FormatError::new(Kind::Corrupt, "the games are not those of the manifest; see `gristmill verify`");
        return Err(e.in_source(path.display().to_string()).into());
    }
    staging.bring(options.before(), METADATA)?;
    let storing = options.codec.or(stored(&manifest));
    let mut skipped = manifest.skipped;
    skipped.retain(|before| unusable.iter().all(|now| now.file != before.file));
    let skipped_before = skipped.len();
    skipped.extend(unusable.iter().cloned());
    let standing = Standing {
        append: true,
        codec: storing,
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
    Ok((staging, standing, known))
}
