//! The shares of a job of packing -> the pack that one process would have made, byte for byte: what they took goes in their order
//! through the same hands. Refuses where one is missing or of another kind; publishes the pack as every job does, whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::WRITER;
use gristmill_engine::pack::MANIFEST;
use gristmill_engine::store::files::read;
use gristmill_engine::store::place::writable;
use gristmill_engine::{chunks, pack};
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_128;

use super::chunks::joined::ChunkParts;
use super::lineage::Told;
use super::part::Said;
use super::rows::RowParts;
use super::{Existing, PackOptions, Packed, Progress, begin};
use crate::meter::{Meter, peak_rss};
use crate::shares::{Folder, PACK, Plan, Share, State, shares};

/// Largest manifest that is read.
const MOST: u64 = 256 << 20;

/// At most this many shares are named in an error.
const NAMED: usize = 20;

/// Which shares to make a pack of, and how.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommitOptions {
    /// The folder of the pack, beside which the shares are.
    pub output: PathBuf,
    /// Replace a pack that is there.
    pub overwrite: bool,
    /// See whether all shares are there, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl CommitOptions {
    /// Reads the options from JSON; what is unknown is refused with the nearest known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::from_json(text)
    }
}

/// A share that is done.
pub(super) struct Part {
    /// The folder of its pack; none where it took no game.
    pub(super) pack: Option<PathBuf>,
    pub(super) said: Said,
}

/// Makes the pack of all shares beside the output, and removes them. It calls `progress` now and then.
///
/// Errors: `Config` where there are no shares, or a pack is there; `State` naming the shares that are missing, or made by another
/// version; `Path` of kind `ResourceBusy` where another process is at it; those of damaged shares. After an error the shares are all
/// there.
pub fn commit(options: &CommitOptions, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    let options = &CommitOptions { output: writable(&options.output, "output")?.into_owned(), ..options.clone() };
    let folder = Folder::beside(&options.output)?;
    let plan = folder.plan()?;
    let there = !pack::files(&options.output)?.is_empty() || !chunks::files(&options.output)?.is_empty();
    let shown = options.output.display();
    let Some(plan) = plan else {
        if there {
            folder.remove()?;
            let text = format!("{shown}: there is a pack, and no shares: they were committed already");
            return Err(Error::config("output", text));
        }
        return shares(&options.output).and(Err(Error::Stopped));
    };
    if plan.writer != WRITER {
        let text = format!("{} made the shares in {}, this is {WRITER}", plan.writer, folder.path().display());
        return Err(Error::State(format!("{text}; commit them with that, or remove them and make them again")));
    }
    let (meter, parts) = (Meter::default(), parts(&folder, &plan, options)?);
    let before = meter.now();
    if there && !options.overwrite {
        let manifest = read(&options.output.join(MANIFEST), MOST)?.unwrap_or_default();
        if !options.dry_run && folder.committed(xxh3_128(&manifest))? {
            folder.remove()?;
            return Ok(Packed { pack: shown.to_string(), ..sums(&parts) });
        }
        return Err(Error::config("output", format!("{shown}: there is a pack already; overwrite replaces it")));
    }
    if options.dry_run {
        return Ok(Packed { pack: shown.to_string(), dry_run: true, ..sums(&parts) });
    }
    let packed = joined(options, &folder, &plan, parts, progress)?;
    folder.remove()?;
    let now = meter.now();
    Ok(Packed { seconds: now.wall - before.wall, cpu_seconds: now.cpu - before.cpu, peak_rss: peak_rss(), ..packed })
}

/// All shares, in order.
fn parts(folder: &Folder, plan: &Plan, options: &CommitOptions) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for number in 1..=plan.shares {
        let share = Share::new(number, plan.shares)?;
        let Some(said) = folder.done::<Said>(plan, share)? else { return Err(missing(options)) };
        let pack = (said.runs > 0).then(|| folder.of(plan, share).join(PACK));
        parts.push(Part { pack, said });
    }
    let sum = |of: fn(&Said) -> u64| parts.iter().map(|part| of(&part.said)).sum::<u64>();
    if (sum(|said| said.inputs), sum(|said| said.bytes)) != (plan.inputs, plan.bytes) {
        let text = "the shares do not have the inputs of their plan; remove it and make them again";
        return Err(Error::State(format!("{}: {text}", folder.path().display())));
    }
    Ok(parts)
}

/// What is not done, by name.
fn missing(options: &CommitOptions) -> Error {
    let all = match shares(&options.output) {
        Ok(all) => all,
        Err(e) => return e,
    };
    let left: Vec<_> = all.shares.iter().filter(|share| share.state != State::Done).collect();
    let mut said: Vec<String> = left
        .iter()
        .take(NAMED)
        .map(|share| match (&share.why, share.noted) {
            (Some(why), _) => format!("{} failed: {why}", share.share),
            (_, Some(_)) => format!("{} runs", share.share),
            _ => format!("{} is missing", share.share),
        })
        .collect();
    if left.len() > NAMED {
        said.push(format!("and {} more", left.len() - NAMED));
    }
    let shown = options.output.display();
    let text = format!("{} of {} shares are done; {}", all.done, all.plan.shares, said.join("; "));
    Error::State(format!(
        "{shown}: {text}; `gristmill shares {shown}` lists them, `gristmill pack IN {shown} --share N/OF` makes one"
    ))
}

/// What shares come to.
fn sums(parts: &[Part]) -> Packed {
    let sum = |of: fn(&Said) -> u64| parts.iter().map(|part| of(&part.said)).sum::<u64>();
    Packed { games: sum(|s| s.games), runs: sum(|s| s.runs), rows: sum(|s| s.rows), ..Packed::default() }
}

/// What all shares told.
pub(super) fn told(parts: &[Part]) -> Told {
    let name = parts.first().map(|part| part.said.told.name.clone()).unwrap_or_default();
    let folders: BTreeMap<_, _> = parts.iter().flat_map(|part| part.said.told.folders.clone()).collect();
    Told { name, folders }
}

/// Makes the pack.
fn joined(
    options: &CommitOptions,
    folder: &Folder,
    plan: &Plan,
    parts: Vec<Part>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Packed> {
    let recorded: BTreeMap<_, _> = plan.options.iter().filter(|(name, _)| *name != "kind").collect();
    let recorded = serde_json::to_string(&recorded).map_err(|e| Error::State(e.to_string()))?;
    let making = &PackOptions {
        input: folder.path().to_owned(),
        output: options.output.clone(),
        // A commit that was killed left nothing that is worth more than its shares.
        existing: Existing::Overwrite,
        stop: options.stop.clone(),
        ..PackOptions::from_json(&recorded)?
    };
    let noting = |manifest: &Path| folder.note_commit(xxh3_128(&read(manifest, MOST)?.unwrap_or_default()));
    match parts.iter().find_map(|part| part.pack.as_deref()) {
        Some(first) if chunks::is_pack(first)? => begin::join(making, ChunkParts::boxed(parts)?, &noting, progress),
        _ => begin::join(making, RowParts(parts), &noting, progress),
    }
}
