//! One share of a job of packing: its games become a pack of their own, in a folder that has its name when all of it is whole.
//! What a share is, and how it is made once, is a matter of `shares`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use gristmill_engine::chunks::metadata::Games as Database;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::manifest::{Remarked, Skipped};
use gristmill_engine::pack::metadata::Metadata;
use gristmill_engine::pack::{METADATA, layout_name};
use gristmill_engine::{chunks, pack};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::lineage::{Made, Told};
use super::listed::{self, Listed, Taken};
use super::{Existing, OnError, PackOptions, Packed, Progress, one_kind};
use crate::shares::{self, Attempt, Job, Share, Shared, Unit, make};

/// The job in plans, and in the table of commits.
pub(crate) const JOB: &str = "pack";

/// The folder of a share with the pack that it made, if it made one.
pub(super) const PACK: &str = "pack";

/// What a share records beside its pack, for the commit and for a second process at this share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Said {
    /// Its inputs and their bytes.
    pub(super) inputs: u64,
    pub(super) bytes: u64,
    /// Games that were found, that its pack has, and their rows.
    pub(super) games: u64,
    pub(super) runs: u64,
    pub(super) rows: u64,
    /// What was left out: of its inputs and of all when they were listed, and of its games.
    pub(super) own: Vec<Skipped>,
    pub(super) whole: Vec<Skipped>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) remarks: Vec<Remarked>,
    pub(super) told: Told,
}

impl shares::Said for Said {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// Packs a share, with options that were checked, beside the output.
pub(super) fn pack(options: &PackOptions, share: Share, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    if options.existing != Existing::Refuse {
        let text =
            "a share is made once, for a new pack: no share goes with overwrite, resume or append; a commit overwrites";
        return Err(Error::config("share", text));
    }
    let Some((listed, units)) = listed::list(options)? else {
        // A job without shares says why nothing can be packed.
        one_kind(&PackOptions { dry_run: true, ..options.clone() }, progress)?;
        let text = format!("{}: files came while they were listed; start again", options.input.display());
        return Err(Error::config("input", text));
    };
    listed.check(options)?;
    let (layout, codec) = (listed.label(options), options.codec);
    let made = make(Packing { options, listed, units, progress }, share, options.dry_run)?;
    let inputs = made.shared.inputs;
    let packed = match made.said {
        Some(said) if !options.dry_run => of_said(said),
        _ => Packed { games: inputs, runs: inputs, dry_run: options.dry_run, ..Packed::default() },
    };
    Ok(Packed { pack: made.folder.display().to_string(), share: Some(made.shared), layout, codec, ..packed })
}

/// A job of packing that is cut into shares.
struct Packing<'a> {
    options: &'a PackOptions,
    listed: Listed,
    units: Vec<Unit>,
    progress: &'a mut dyn FnMut(Progress),
}

impl Job for Packing<'_> {
    type Said = Said;

    fn name(&self) -> &'static str {
        JOB
    }

    fn input(&self) -> &Path {
        &self.options.input
    }

    fn output(&self) -> &Path {
        &self.options.output
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        recorded(self.options, &self.listed)
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        if !is_there(&self.options.output)? {
            return shares::check_free(&self.options.output);
        }
        let text =
            "there is a pack already: its shares were committed, or it is another; remove it, or take another output";
        Err(Error::config("output", format!("{}: {text}", self.options.output.display())))
    }

    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Said> {
        made(self.options, (self.listed, units), attempt, of, self.progress)
    }
}

/// Whether there is a pack in the folder.
///
/// Errors: `Path`.
pub(crate) fn is_there(folder: &Path) -> Result<bool> {
    Ok(!pack::files(folder)?.is_empty() || !chunks::files(folder)?.is_empty())
}

/// The options that change a byte, as [`PackOptions`] reads them, with the kind of the inputs.
fn recorded(options: &PackOptions, listed: &Listed) -> Result<BTreeMap<String, Value>> {
    let on_error = match options.on_error {
        OnError::Skip => "skip",
        OnError::Quarantine => "quarantine",
        OnError::Raise => "raise",
    };
    let weigh = serde_json::to_value(&options.weigh).map_err(|e| Error::config("weigh", e.to_string()))?;
    let mut recorded = BTreeMap::from([
        ("kind".to_owned(), json!(listed.kind())),
        ("on_error".to_owned(), json!(on_error)),
        ("weigh".to_owned(), weigh),
    ]);
    recorded.extend(options.layout.map(|form| ("layout".to_owned(), json!(layout_name(form)))));
    recorded.extend(options.codec.map(|codec| ("codec".to_owned(), json!(codec))));
    recorded.extend(options.shard_rows.map(|rows| ("shard_rows".to_owned(), json!(rows))));
    Ok(recorded)
}

/// Makes the pack of a share, and its record.
fn made(
    options: &PackOptions,
    (listed, range): (Listed, Range<usize>),
    attempt: &mut Attempt,
    of_share: &Shared,
    progress: &mut dyn FnMut(Progress),
) -> Result<Said> {
    let output = attempt.folder().join(PACK);
    let options = &PackOptions { output: output.clone(), share: None, ..options.clone() };
    let Taken { packed, own, whole } = listed.take(options, range, &mut |now| {
        attempt.renew();
        progress(now);
    })?;
    let mut sources = Made::default();
    let database = output.join(METADATA);
    if packed.runs > 0 && chunks::is_pack(&output)? {
        Database::open(&database)?.each(&mut |game| {
            sources.add(&game.source, game.content, game.stored_bytes);
            Ok(())
        })?;
    } else if packed.runs > 0 {
        Metadata::open(&database)?.extras(&mut |extra| {
            sources.add(&extra.source, extra.stored_xxh3, extra.stored_bytes);
            Ok(())
        })?;
    }
    Ok(Said {
        inputs: of_share.inputs,
        bytes: of_share.bytes,
        games: packed.games,
        runs: packed.runs,
        rows: packed.rows,
        own,
        whole,
        skipped: packed.skipped,
        remarks: packed.remarks,
        told: sources.told(&options.input),
    })
}

/// Turns the record of a share into the result of the job.
fn of_said(said: Said) -> Packed {
    let skipped = said.own.into_iter().chain(said.skipped).collect();
    let Said { games, runs, rows, remarks, .. } = said;
    Packed { games, runs, rows, skipped, remarks, ..Packed::default() }
}
