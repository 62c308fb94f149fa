//! `generate chess`: writes games, at a pace if --pace sets one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_engine::runtime::seed;
use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};

use super::{Written, advise};
use crate::args::{GenerateChess, RecordVersion};
use crate::failure::{Failure, Result};
use crate::report;
use crate::stopping;

pub(crate) fn run(args: &GenerateChess) -> Result<()> {
    let seed = args.seed.unwrap_or_else(seed::fresh_root);
    if args.seed.is_none() {
        report::note(&format!("seed {seed}"));
    }
    let mut generator = ChessGenerator::new(ChessOptions {
        folder: args.out.clone(),
        games: args.games,
        first: args.first,
        seed,
        plies_max: args.plies_max as usize,
        version: match args.version {
            RecordVersion::V6 => Version::V6,
            RecordVersion::V7 => Version::V7,
        },
        games_per_tar: args.tar.then_some(args.games_per_tar),
    })?
    .overwriting(args.overwrite);
    let mut written = Written::planned(&args.out, generator.files(), args.games, args.first, seed);
    if !args.dry_run {
        written.done(write(&mut generator, args)?);
    }
    if args.json {
        return Ok(report::json(&written)?);
    }
    let (first, last) = (generator.path(0), generator.path(written.files - 1));
    let size = written.size("positions");
    Ok(report::text_out(&format!(
        "{} games in {} files, {} to {} ({size}), seed {seed}",
        written.games,
        written.files,
        first.display(),
        last.display(),
    ))?)
}

/// Writes all files; positions and bytes.
fn write(generator: &mut ChessGenerator, args: &GenerateChess) -> Result<(u64, u64)> {
    let pause = args.interval.map(Duration::from_secs_f64);
    let mut progress = report::Progress::new(args.games, "games", !args.json);
    let stop = stopping::flag()?;
    let (mut games, mut frames, mut bytes) = (0, 0, 0);
    while let Some(file) = generator.write_next().map_err(|e| advise(e, args.first + args.games))? {
        games += file.games;
        frames += file.frames;
        bytes += file.bytes;
        progress.at(games, &format!("{frames} positions"));
        if let Some(pause) = pause
            && games < args.games
        {
            pause_for(pause, &stop);
        }
        if stop.load(Ordering::Relaxed) && games < args.games {
            progress.end();
            let next = args.first + games;
            return Err(Failure::stopped(format!("{games} games are written; --first {next} resumes with the next")));
        }
    }
    progress.end();
    Ok((frames, bytes))
}

/// Waits until the stop flag is set, at most `pause`.
fn pause_for(pause: Duration, stop: &AtomicBool) {
    const GLANCE: Duration = Duration::from_millis(50);
    let mut left = pause;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(left.min(GLANCE));
        left = left.saturating_sub(GLANCE);
    }
}
