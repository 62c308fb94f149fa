//! `pack`: raw games in, a pack out. After an interrupt `--resume` resumes.

use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
use std::path::Path;

use gristmill_engine::Error;
use gristmill_engine::config::PositionSamplingConfig;
use gristmill_engine::pack::STAGING;
use gristmill_engine::store::publish::is_staged;
use gristmill_format::Kind;
use gristmill_format::g2048::RowForm;
use gristmill_jobs::delivery::Delivery;
use gristmill_jobs::pack::{self, Existing, PackOptions, Storing};
use gristmill_jobs::recover::RecoverOptions;

use super::delivery::deliver;
use super::shares::AGAIN_OF_SHARE;
use crate::args::pack::{Codec, Layout, OnError, Pack};
use crate::failure::{Failure, Result};
use crate::report::{self, packing};
use crate::stopping;

/// What comes before a job can resume whose output could not be written.
const ROOM: &str = "make room on the disk, or raise the quota or the limit of the size of files (ulimit -f), then ";

pub(crate) fn run(args: &Pack) -> Result<()> {
    let (input, output) = args.places()?;
    let Some(input) = input else { return abandon(args, output) };
    let existing = match (args.overwrite, args.resume, args.append) {
        (true, ..) => Existing::Overwrite,
        (_, true, _) => Existing::Resume,
        (.., true) => Existing::Append,
        _ => Existing::Refuse,
    };
    let delivery = match args.share {
        // The job puts a share beside its output itself, also in a bucket.
        Some(_) => Delivery::Here(output.to_owned()),
        None => existing.delivery(output, args.dry_run)?,
    };
    let mut options = PackOptions::new(input, delivery.folder());
    (options.existing, options.grows) = (existing, delivery.grows());
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.share = args.share;
    options.shard_rows = args.shard_rows;
    options.layout = args.layout.map(RowForm::from);
    options.codec = args.codec.map(Storing::from);
    options.checkpoint_rows = args.checkpoint_rows.unwrap_or(options.checkpoint_rows);
    let rules = args.weigh.iter().map(|rule| PositionSamplingConfig::from_words("weigh", rule));
    options.weigh = rules.collect::<Result<_, Error>>()?;
    options.dry_run = args.dry_run;
    options.stop = stopping::flag()?;
    options.on_error = match args.on_error {
        OnError::Skip => pack::OnError::Skip,
        OnError::Quarantine => pack::OnError::Quarantine,
        OnError::Raise => pack::OnError::Raise,
    };
    let mut progress = None;
    let packed = pack::pack(&options, &mut |now| {
        let bar = progress.get_or_insert_with(|| report::Progress::new(now.games, "games", !args.json));
        let skipped = if now.skipped > 0 { format!(", {} left out", now.skipped) } else { String::new() };
        bar.at(now.done, &format!("{} rows{skipped}", now.rows));
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let output = &*options.output;
    let mut packed = packed.map_err(|e| match e {
        Error::Stopped if args.share.is_some() => Failure::stopped(AGAIN_OF_SHARE),
        e if args.share.is_some() => e.into(),
        Error::Stopped => Failure::stopped(left(output, "")),
        Error::Format(e) if args.on_error == OnError::Raise && !matches!(e.kind(), Kind::Io(_)) => {
            Failure::Failed(format!("{e}\n{}", left(output, "mend or remove the game, then ")))
        }
        Error::Format(e) if e.place().source.as_deref().is_some_and(|source| Path::new(source).starts_with(output)) => {
            Failure::Failed(format!("{e}\n{}", left(output, ROOM)))
        }
        Error::Format(e) if pack::is_unreadable(&e) => Failure::Failed(format!(
            "{e}\nwhat cannot be read is no bad game, and is not left out: make it readable; {}",
            left(output, "")
        )),
        Error::Path { kind: StorageFull | QuotaExceeded | FileTooLarge, .. } => {
            Failure::Failed(format!("{e}\n{}", left(output, ROOM)))
        }
        Error::Path { .. } | Error::Format(_) => Failure::Failed(format!("{e}\n{}", left(output, ""))),
        e => e.into(),
    })?;
    if packed.share.is_some() {
        return shared(args, &packed);
    }
    packed.pack = deliver(delivery, &options.stop, args.json, "the same command with --resume resumes")?;
    report::either(args.json, &packed, packing::packed)?;
    match packing::left_out(&packed) {
        Some(text) if !args.skip_bad && !packed.dry_run => Err(Failure::LeftOut(text)),
        _ => Ok(()),
    }
}

/// Says what became of a share. What its games lack is a matter of the commit.
fn shared(args: &Pack, packed: &pack::Packed) -> Result<()> {
    Ok(report::either(args.json, packed, packing::shared)?)
}

/// Gives up what an interrupted job left.
fn abandon(args: &Pack, output: &Path) -> Result<()> {
    let only = Some(STAGING.to_owned());
    super::recover::done(
        &RecoverOptions { folder: output.to_owned(), abandon: true, only, dry_run: args.dry_run },
        args.json,
    )
}

/// What a job that did not end left in the output, and what can be done with it.
fn left(output: &Path, before: &str) -> String {
    let shown = output.display();
    if is_staged(output, STAGING) {
        format!(
            "what was packed so far is kept in {}: {before}--resume resumes it, `gristmill pack {shown} --abandon` gives \
             it up; {shown} is otherwise as it was",
            output.join(format!(".{STAGING}.part")).display()
        )
    } else {
        format!("nothing of it is left, and {shown} is as it was")
    }
}

impl From<Layout> for RowForm {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Aligned => RowForm::Aligned,
            Layout::Packed => RowForm::Packed,
        }
    }
}

impl From<Codec> for Storing {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::Zstd => Storing::Zstd,
            Codec::Raw => Storing::Raw,
        }
    }
}
