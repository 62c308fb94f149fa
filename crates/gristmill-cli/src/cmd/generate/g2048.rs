//! `generate 2048`: writes raw logs, on all cores.

use gristmill_engine::Error;
use gristmill_engine::job::generate::{G2048Generator, G2048Options};
use gristmill_engine::runtime::seed;
use serde::Serialize;

use crate::args::GenerateG2048;
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

pub(crate) fn run(args: &GenerateG2048) -> Result<()> {
    // Seeds of games are written as ten digits; a drawn one looks like those of real logs.
    let seed = args.seed.unwrap_or_else(|| seed::fresh_root() >> 32);
    if args.seed.is_none() {
        report::note(&format!("seed {seed}"));
    }
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let generator = G2048Generator::new(G2048Options {
        folder: args.out.clone(),
        games: args.games,
        first: args.first,
        seed,
        depth: args.depth,
        moves_max: args.moves_max.unwrap_or(u64::MAX),
        level: args.level,
        threads: args.threads.unwrap_or_else(cores),
    })?;
    let mut written = Written {
        folder: args.out.display().to_string(),
        files: 2 * args.games,
        games: args.games,
        frames: None,
        bytes: None,
        seed,
        first: args.first,
        last: args.first + args.games - 1,
        dry_run: args.dry_run,
    };
    if !args.dry_run {
        let (frames, bytes) = write(&generator, args)?;
        written.frames = Some(frames);
        written.bytes = Some(bytes);
    }
    if args.json {
        return Ok(report::json(&written)?);
    }
    let ([first, _], [last, _]) = (generator.paths(written.first), generator.paths(written.last));
    let size = match (written.frames, written.bytes) {
        (Some(frames), Some(bytes)) => format!("{frames} moves, {}", report::bytes(bytes)),
        _ => "dry run: nothing was written".to_owned(),
    };
    let (first, last) = (first.display(), last.display());
    Ok(report::text_out(&format!("{} games, {first} to {last} ({size}), seed {seed}", written.games))?)
}

/// Writes all games; moves and bytes.
fn write(generator: &G2048Generator, args: &GenerateG2048) -> Result<(u64, u64)> {
    let mut progress = report::Progress::new(args.games, "games", !args.json);
    let (mut games, mut frames, mut bytes) = (0, 0, 0);
    let wrote = generator.run(&mut |game| {
        games += game.games;
        frames += game.frames;
        bytes += game.bytes;
        progress.at(games, &format!("{frames} moves"));
    });
    progress.end();
    wrote.map_err(|e| advise(e, args))?;
    Ok((frames, bytes))
}

/// Says how to go on where an earlier run ended.
fn advise(e: Error, args: &GenerateG2048) -> Failure {
    match e {
        Error::Path { kind: std::io::ErrorKind::AlreadyExists, .. } => {
            let next = args.first + args.games;
            Failure::Failed(format!("{e}; choose another folder, or go on with --first {next}"))
        }
        e => e.into(),
    }
}
