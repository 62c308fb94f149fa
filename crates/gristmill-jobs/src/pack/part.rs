//! One share of a job of packing: its games become a pack of their own, in a folder that has its name when all of it is whole.
//! Does nothing where the share is there, and takes away nothing that another process makes.

use std::collections::BTreeMap;
use std::fs;
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
use super::{Existing, OnError, PackOptions, Packed, Progress, Shared, one_kind};
use crate::shares::{Attempt, Folder, Plan, Share, Unit, cut};

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

/// Packs a share, with options that were checked, beside the output.
pub(super) fn pack(options: &PackOptions, share: Share, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    if options.existing != Existing::Refuse {
        let text =
            "a share is made once, for a new pack: no share goes with overwrite, resume or append; a commit overwrites";
        return Err(Error::config("share", text));
    }
    if is_below(&options.output, &options.input) {
        let (input, output) = (options.input.display(), options.output.display());
        let text = format!(
            "{output}: lies within {input}, where shares would be inputs of other shares; take a folder elsewhere"
        );
        return Err(Error::config("output", text));
    }
    let Some((listed, units)) = listed::list(options)? else {
        // A job without shares says why nothing can be packed.
        one_kind(&PackOptions { dry_run: true, ..options.clone() }, progress)?;
        let text = format!("{}: files came while they were listed; start again", options.input.display());
        return Err(Error::config("input", text));
    };
    listed.check(options)?;
    let folder = Folder::beside(&options.output)?;
    let plan = Plan::new("pack", recorded(options, &listed)?, &units, share.of());
    let range = cut(&units, share);
    let of_share = Shared {
        share: share.to_string(),
        plan: plan.name.clone(),
        inputs: range.len() as u64,
        bytes: units[range.clone()].iter().map(|unit: &Unit| unit.bytes).sum(),
        there: false,
    };
    let shown = folder.of(&plan, share).display().to_string();
    let done = if folder.has(&plan)? { folder.done::<Said>(&plan, share)? } else { None };
    if done.is_none() && (!pack::files(&options.output)?.is_empty() || !chunks::files(&options.output)?.is_empty()) {
        let text =
            "there is a pack already: its shares were committed, or it is another; remove it, or take another output";
        return Err(Error::config("output", format!("{}: {text}", options.output.display())));
    }
    if options.dry_run {
        let (share, inputs) = (Some(Shared { there: done.is_some(), ..of_share }), range.len() as u64);
        return Ok(Packed { pack: shown, share, games: inputs, runs: inputs, dry_run: true, ..Packed::default() });
    }
    let there = |said: Said| {
        folder.tidy(&plan, share);
        Packed { share: Some(Shared { there: true, ..of_share.clone() }), ..of_said(said, shown.clone()) }
    };
    if let Some(said) = done {
        return Ok(there(said));
    }
    folder.agree(&plan)?;
    let mut attempt = folder.begin(&plan, share)?;
    match made(options, (listed, range), &mut attempt, &of_share, progress) {
        Ok(said) => {
            attempt.publish(&plan, share, &said)?;
            folder.tidy(&plan, share);
            // Where another process was done first, its share counts.
            let said = folder.done(&plan, share)?.unwrap_or(said);
            Ok(Packed { share: Some(of_share.clone()), ..of_said(said, shown) })
        }
        Err(e) => {
            // Another process made this share meanwhile: our error stops nobody.
            if let Ok(Some(said)) = folder.done::<Said>(&plan, share) {
                return Ok(there(said));
            }
            if !matches!(e, Error::Stopped) && folder.plan().is_ok_and(|now| now.is_some()) {
                folder.fail(&plan, share, &e.to_string());
            }
            Err(e)
        }
    }
}

/// Whether what is made beside `output` lies in the folder `input`, or below it. Nothing is below what is not of this machine.
fn is_below(output: &Path, input: &Path) -> bool {
    let whole = |path: &Path| fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok();
    // The first folder that is there: those below it are made.
    let folder = output.ancestors().skip(1).find_map(whole);
    folder.zip(whole(input)).is_some_and(|(folder, input)| folder.starts_with(input))
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
    recorded.extend(options.shard_rows.map(|rows| ("shard_rows".to_owned(), json!(rows))));
    Ok(recorded)
}

/// Makes the pack of a share, and its record.
fn made(
    options: &PackOptions,
    (listed, range): (Listed, std::ops::Range<usize>),
    attempt: &mut Attempt,
    of_share: &Shared,
    progress: &mut dyn FnMut(Progress),
) -> Result<Said> {
    let output = attempt.pack();
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
fn of_said(said: Said, pack: String) -> Packed {
    let skipped = said.own.into_iter().chain(said.skipped).collect();
    let Said { games, runs, rows, remarks, .. } = said;
    Packed { pack, games, runs, rows, skipped, remarks, ..Packed::default() }
}
