//! `generate chess`: writes games, at a pace if one is asked for.

use std::time::Duration;

use gristmill_engine::job::generate::{ChessGenerator, ChessOptions};
use gristmill_engine::runtime::seed;
use gristmill_format::chess::Version;

use super::{Written, advise};
use crate::args::{GenerateChess, RecordVersion};
use crate::failure::Result;
use crate::report;

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
    })?;
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
    let (mut games, mut frames, mut bytes) = (0, 0, 0);
    while let Some(file) = generator.write_next().map_err(|e| advise(e, args.first + args.games))? {
        games += file.games;
        frames += file.frames;
        bytes += file.bytes;
        progress.at(games, &format!("{frames} positions"));
        if let Some(pause) = pause
            && games < args.games
        {
            std::thread::sleep(pause);
        }
    }
    progress.end();
    Ok((frames, bytes))
}
