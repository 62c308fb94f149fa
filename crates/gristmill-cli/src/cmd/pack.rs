//! `pack`: raw games in, a pack out. An interrupt leaves what `--resume` goes on with.

use gristmill_engine::Error;
use gristmill_engine::config::PositionSamplingConfig;
use gristmill_engine::job::pack::{self, Existing, PackOptions};
use gristmill_format::g2048::RowForm;

use crate::args::pack::{Layout, OnError, Pack};
use crate::failure::{Failure, Result};
use crate::report::{self, packing};
use crate::stopping;

pub(crate) fn run(args: &Pack) -> Result<()> {
    let mut options = PackOptions::new(&args.input, &args.output);
    options.workers = args.workers.map_or(options.workers, usize::from);
    options.shard_rows = args.shard_rows;
    options.layout = args.layout.map(RowForm::from);
    options.checkpoint_rows = args.checkpoint_rows.unwrap_or(options.checkpoint_rows);
    let rules = args.weigh.iter().map(|rule| PositionSamplingConfig::from_words("weigh", rule));
    options.weigh = rules.collect::<Result<_, Error>>()?;
    options.dry_run = args.dry_run;
    options.stop = stopping::flag()?;
    options.existing = match (args.overwrite, args.resume, args.append) {
        (true, ..) => Existing::Overwrite,
        (_, true, _) => Existing::Resume,
        (.., true) => Existing::Append,
        _ => Existing::Refuse,
    };
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
    let packed = packed.map_err(|e| match e {
        Error::Stopped => Failure::Failed("stopped; --resume goes on from here".to_owned()),
        Error::Format(_) if args.on_error == OnError::Raise => {
            Failure::Failed(format!("{e}\nmend or remove the game, then go on with --resume"))
        }
        Error::Format(e) if pack::is_unreadable(&e) => Failure::Failed(format!(
            "{e}\nwhat cannot be read is no bad game, and is not left out: make it readable, then run this again with \
             --resume, or as it was where nothing was packed yet"
        )),
        e => e.into(),
    })?;
    report::either(args.json, &packed, packing::packed)?;
    match packing::left_out(&packed) {
        Some(text) if !args.skip_bad && !packed.dry_run => Err(Failure::LeftOut(text)),
        _ => Ok(()),
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
