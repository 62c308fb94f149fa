//! One share of a job of packing: its games become a pack of their own, in a folder that has its name when all of it is whole.
//! Does nothing where the share is there, and takes away nothing that another process makes.

use std::collections::BTreeMap;

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

/// What a share says beside its pack.
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
    let Some((listed, units)) = listed::list(options)? else {
        // It says why nothing can be packed.
        one_kind(&PackOptions { dry_run: true, ..options.clone() }, progress)?;
        return Err(Error::State(format!(
            "{}: files came while they were listed; start again",
            options.input.display()
        )));
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
    if options.dry_run {
        let (share, inputs) = (Some(of_share), range.len() as u64);
        return Ok(Packed { pack: shown, share, games: inputs, runs: inputs, dry_run: true, ..Packed::default() });
    }
    if !pack::files(&options.output)?.is_empty() || !chunks::files(&options.output)?.is_empty() {
        let text =
            "there is a pack already: its shares were committed, or it is another; remove it, or take another output";
        return Err(Error::config("output", format!("{}: {text}", options.output.display())));
    }
    folder.agree(&plan)?;
    let there = |said: Said| {
        folder.tidy(&plan, share);
        Packed { share: Some(Shared { there: true, ..of_share.clone() }), ..of_said(said, shown.clone()) }
    };
    if let Some(said) = folder.done::<Said>(&plan, share)? {
        return Ok(there(said));
    }
    let mut attempt = folder.begin(&plan, share)?;
    match made(options, (listed, range), &mut attempt, &of_share, progress) {
        Ok(said) => {
            attempt.publish(&plan, share, &said)?;
            folder.tidy(&plan, share);
            // Of another process that was done before, what it made.
            let said = folder.done(&plan, share)?.unwrap_or(said);
            Ok(Packed { share: Some(of_share.clone()), ..of_said(said, shown) })
        }
        Err(e) => {
            // Where another process was done meanwhile, ours was not needed.
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

/// Makes the pack of a share, and what is said of it.
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

/// What a share says, as the job says it.
fn of_said(said: Said, pack: String) -> Packed {
    let skipped = said.own.into_iter().chain(said.skipped).collect();
    let Said { games, runs, rows, remarks, .. } = said;
    Packed { pack, games, runs, rows, skipped, remarks, ..Packed::default() }
}
