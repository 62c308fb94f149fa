//! The shares of a job of packing -> the pack that one process would have made, byte for byte: the same code gets their games, in
//! their order. Refuses a missing share and one of another kind; publishes the pack whole, as every job does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::WRITER;
use gristmill_engine::pack::{MANIFEST, STAGING};
use gristmill_engine::store::files::read;
use gristmill_engine::store::place::writable;
use gristmill_engine::store::publish;
use gristmill_engine::{chunks, pack};
use gristmill_format::{Error as FormatError, Kind};
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
/// Errors: `Config` in `output` where there are no shares, where shares are missing, which it names, where another version made them, or
/// where a pack is there; `Path` of kind `ResourceBusy` where another process commits them now; `Format` for damaged shares. After
/// an error the shares are all there, unless another process committed them.
pub fn commit(options: &CommitOptions, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    let options = &CommitOptions { output: writable(&options.output, "output")?.into_owned(), ..options.clone() };
    let folder = Folder::beside(&options.output)?;
    let plan = folder.plan()?;
    let there = !pack::files(&options.output)?.is_empty() || !chunks::files(&options.output)?.is_empty();
    let shown = options.output.display();
    let Some(plan) = plan else {
        if there {
            folder.remove()?;
            return Err(already(options));
        }
        return shares(&options.output).and(Err(Error::Stopped));
    };
    if plan.writer != WRITER {
        let text = format!("{} made the shares in {}, this is {WRITER}", plan.writer, folder.path().display());
        return Err(Error::config(
            "output",
            format!("{text}; commit them with that, or remove them and make them again"),
        ));
    }
    let (meter, parts) = (Meter::default(), parts(&folder, &plan, options)?);
    let before = meter.now();
    if there && !options.overwrite && !is_published(&folder, options)? && !is_half_published(&folder, options)? {
        return Err(Error::config("output", format!("{shown}: there is a pack already; overwrite replaces it")));
    }
    if options.dry_run {
        return Ok(Packed { pack: shown.to_string(), dry_run: true, ..sums(&parts) });
    }
    let all = sums(&parts);
    let packed = joined(options, &folder, &plan, parts, progress)?;
    folder.remove()?;
    let packed = packed.unwrap_or(Packed { pack: shown.to_string(), ..all });
    let now = meter.now();
    Ok(Packed { seconds: now.wall - before.wall, cpu_seconds: now.cpu - before.cpu, peak_rss: peak_rss(), ..packed })
}

/// Whether the pack in the output is the one that these shares became.
fn is_published(folder: &Folder, options: &CommitOptions) -> Result<bool> {
    is_noted(folder, &options.output.join(MANIFEST))
}

/// Whether a commit of these shares was killed, or is at work, between the first and the last file that it publishes.
fn is_half_published(folder: &Folder, options: &CommitOptions) -> Result<bool> {
    let is_begun = publish::is_interrupted(&options.output, STAGING);
    Ok(is_begun && is_noted(folder, &publish::place_of(&options.output, STAGING, MANIFEST))?)
}

/// Whether a manifest is the one that a commit of these shares noted.
fn is_noted(folder: &Folder, manifest: &Path) -> Result<bool> {
    read(manifest, MOST)?.map_or(Ok(false), |manifest| folder.committed(xxh3_128(&manifest)))
}

/// The refusal of a commit of shares that are a pack already.
fn already(options: &CommitOptions) -> Error {
    let text = "there is a pack, and no shares: they were committed already";
    Error::config("output", format!("{}: {text}", options.output.display()))
}

/// Reads what all shares say, in order.
///
/// Errors: `Config` in `output`, naming the shares that are missing; `Format` for damaged ones.
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
        let e = FormatError::new(Kind::Corrupt, text).in_source(folder.path().display().to_string());
        return Err(e.into());
    }
    Ok(parts)
}

/// The refusal that names the shares that are not done.
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
    let advice = format!("`gristmill shares {shown}` lists them, `gristmill pack IN {shown} --share N/OF` makes one");
    Error::config("output", format!("{shown}: {text}; {advice}"))
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

/// Makes the pack; none where another process published it meanwhile.
fn joined(
    options: &CommitOptions,
    folder: &Folder,
    plan: &Plan,
    parts: Vec<Part>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Packed>> {
    let recorded: BTreeMap<_, _> = plan.options.iter().filter(|(name, _)| *name != "kind").collect();
    let recorded = serde_json::to_string(&recorded).map_err(|e| Error::State(e.to_string()))?;
    let making = &PackOptions {
        input: folder.path().to_owned(),
        output: options.output.clone(),
        // The shares have all that a killed commit left.
        existing: Existing::Overwrite,
        stop: options.stop.clone(),
        ..PackOptions::from_json(&recorded)?
    };
    let commit = Committing { options, folder, plan };
    match parts.iter().find_map(|part| part.pack.as_deref()) {
        Some(first) if chunks::is_pack(first)? => begin::join(making, ChunkParts::boxed(parts)?, &commit, progress),
        _ => begin::join(making, RowParts(parts), &commit, progress),
    }
}

/// A commit whose pack is being made.
struct Committing<'a> {
    options: &'a CommitOptions,
    folder: &'a Folder,
    plan: &'a Plan,
}

impl begin::Commit for Committing<'_> {
    fn is_published(&self) -> Result<bool> {
        match self.folder.plan()? {
            Some(now) if now == *self.plan => is_published(self.folder, self.options),
            _ => Err(already(self.options)),
        }
    }

    fn note(&self, manifest: &Path) -> Result<()> {
        self.folder.note_commit(xxh3_128(&read(manifest, MOST)?.unwrap_or_default()))
    }
}
