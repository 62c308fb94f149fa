//! `generate chess`: writes games, at a pace if one is asked for.

use std::time::Duration;

use gristmill_engine::Error;
use gristmill_engine::job::generate::{ChessGenerator, ChessOptions};
use gristmill_engine::runtime::seed;
use gristmill_format::chess::Version;
use serde::Serialize;

use crate::args::{GenerateChess, RecordVersion};
use crate::failure::{Failure, Result};
use crate::report;

/// What was (or, in a dry run, would be) written.
#[derive(Debug, Serialize)]
struct Written {
    folder: String,
    files: u64,
    games: u64,
    /// Absent in a dry run, which plays no game.
    frames: Option<u64>,
    bytes: Option<u64>,
    seed: u64,
    first: u64,
    last: u64,
    dry_run: bool,
}

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
    let mut written = Written {
        folder: args.out.display().to_string(),
        files: generator.files(),
        games: args.games,
        frames: None,
        bytes: None,
        seed,
        first: args.first,
        last: args.first + args.games - 1,
        dry_run: args.dry_run,
    };
    if !args.dry_run {
        let (frames, bytes) = write(&mut generator, args)?;
        written.frames = Some(frames);
        written.bytes = Some(bytes);
    }
    if args.json {
        return Ok(report::json(&written)?);
    }
    let (first, last) = (generator.path(0), generator.path(written.files - 1));
    let size = match (written.frames, written.bytes) {
        (Some(frames), Some(bytes)) => format!("{frames} positions, {}", report::bytes(bytes)),
        _ => "dry run: nothing was written".to_owned(),
    };
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
    while let Some(file) = generator.write_next().map_err(|e| advise(e, args))? {
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

/// Says how to go on where an earlier run ended.
fn advise(e: Error, args: &GenerateChess) -> Failure {
    match e {
        Error::Path { kind: std::io::ErrorKind::AlreadyExists, .. } => {
            let next = args.first + args.games;
            Failure::Failed(format!("{e}; choose another folder, or go on with --first {next}"))
        }
        e => e.into(),
    }
}
