//! The shares of a job of packing -> the pack that one process would have made, byte for byte: the same code gets their games, in
//! their order. Refuses a missing share and one of another kind; publishes the pack whole, as every job does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gristmill_engine::chunks;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::{MANIFEST, STAGING};
use gristmill_engine::store::files::read;
use gristmill_engine::store::publish;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::chunks::joined::ChunkParts;
use super::lineage::Told;
use super::listed::label;
use super::part::{PACK, Said, is_there};
use super::rows::RowParts;
use super::{Existing, PackOptions, Packed, Progress, begin};
use crate::meter::{Meter, peak_rss};
use crate::shares::{Joining, Whole};

/// Largest manifest that is read.
const MOST: u64 = 256 << 20;

/// A share that is done.
pub(super) struct Part {
    /// The folder of its pack; none where it took no game.
    pub(super) pack: Option<PathBuf>,
    pub(super) said: Said,
}

/// Makes the pack of all shares beside the output. It calls `progress` now and then.
///
/// Errors: `Config` in `output` where shares are missing, which it names, or where a pack is there; `Path` of kind `ResourceBusy` where
/// another process commits them now; `Format` for damaged shares. After an error the shares are all there, unless another process
/// committed them.
pub(crate) fn commit(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<Packed> {
    let parts = whole
        .parts::<Said>()?
        .into_iter()
        .map(|(folder, said)| Part { pack: (said.runs > 0).then(|| folder.join(PACK)), said });
    let (meter, parts) = (Meter::default(), parts.collect::<Vec<_>>());
    let (before, shown) = (meter.now(), whole.output().display());
    if is_there(whole.output())? && !whole.options.overwrite && !is_published(whole)? && !is_half_published(whole)? {
        return Err(Error::config("output", format!("{shown}: there is a pack already; overwrite replaces it")));
    }
    let making = making(whole)?;
    let kind = whole.plan.options.get("kind").and_then(Value::as_str).unwrap_or_default();
    let all = Packed { pack: shown.to_string(), layout: label(kind, &making), codec: making.codec, ..sums(&parts) };
    if whole.options.dry_run {
        return Ok(Packed { dry_run: true, ..all });
    }
    let games = &mut |now: Progress| progress(Joining { done: now.done, all: now.games });
    let packed = match parts.iter().find_map(|part| part.pack.as_deref()) {
        Some(first) if chunks::is_pack(first)? => {
            begin::join(&making, ChunkParts::boxed(parts)?, &Committing(whole), games)?
        }
        _ => begin::join(&making, RowParts(parts), &Committing(whole), games)?,
    };
    let (packed, now) = (packed.unwrap_or(all), meter.now());
    Ok(Packed { seconds: now.wall - before.wall, cpu_seconds: now.cpu - before.cpu, peak_rss: peak_rss(), ..packed })
}

/// Whether the pack in the output is the one that these shares became.
fn is_published(whole: &Whole) -> Result<bool> {
    is_noted(whole, &whole.output().join(MANIFEST))
}

/// Whether a commit of these shares was killed, or is at work, between the first and the last file that it publishes.
fn is_half_published(whole: &Whole) -> Result<bool> {
    let is_begun = publish::is_interrupted(whole.output(), STAGING);
    Ok(is_begun && is_noted(whole, &publish::place_of(whole.output(), STAGING, MANIFEST))?)
}

/// Whether a manifest is the one that a commit of these shares noted.
fn is_noted(whole: &Whole, manifest: &Path) -> Result<bool> {
    read(manifest, MOST)?.map_or(Ok(false), |manifest| whole.folder.committed(xxh3_128(&manifest)))
}

/// Adds up the games and rows of all shares.
fn sums(parts: &[Part]) -> Packed {
    let sum = |of: fn(&Said) -> u64| parts.iter().map(|part| of(&part.said)).sum::<u64>();
    Packed { games: sum(|s| s.games), runs: sum(|s| s.runs), rows: sum(|s| s.rows), ..Packed::default() }
}

/// Joins what the shares say of their sources.
pub(super) fn told(parts: &[Part]) -> Told {
    let name = parts.first().map(|part| part.said.told.name.clone()).unwrap_or_default();
    let folders: BTreeMap<_, _> = parts.iter().flat_map(|part| part.said.told.folders.clone()).collect();
    Told { name, folders }
}

/// How the pack is made: as one process would have been told to, over what a killed commit left.
fn making(whole: &Whole) -> Result<PackOptions> {
    let recorded: BTreeMap<_, _> = whole.plan.options.iter().filter(|(name, _)| *name != "kind").collect();
    let recorded = serde_json::to_string(&recorded).map_err(|e| Error::State(e.to_string()))?;
    Ok(PackOptions {
        input: whole.folder.path().to_owned(),
        output: whole.output().to_owned(),
        // The shares have all that a killed commit left.
        existing: Existing::Overwrite,
        stop: whole.options.stop.clone(),
        ..PackOptions::from_json(&recorded)?
    })
}

/// A commit whose pack is being made.
struct Committing<'a>(&'a Whole);

impl begin::Commit for Committing<'_> {
    fn is_published(&self) -> Result<bool> {
        if self.0.is_there()? { is_published(self.0) } else { Err(Whole::already(self.0.output())) }
    }

    fn note(&self, manifest: &Path) -> Result<()> {
        self.0.folder.note_commit(xxh3_128(&read(manifest, MOST)?.unwrap_or_default()))
    }
}
