//! `generate 2048`: writes raw logs, on all cores.

use gristmill_engine::runtime::seed;
use gristmill_generate::{G2048Generator, G2048Options};

use super::{Written, advise};
use crate::args::GenerateG2048;
use crate::failure::Result;
use crate::report;

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
    })?
    .overwriting(args.overwrite);
    let mut written = Written::planned(&args.out, 2 * args.games, args.games, args.first, seed);
    if !args.dry_run {
        written.done(write(&generator, args)?);
    }
    if args.json {
        return Ok(report::json(&written)?);
    }
    let ([first, _], [last, _]) = (generator.paths(written.first), generator.paths(written.last));
    let size = written.size("moves");
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
    wrote.map_err(|e| advise(e, args.first + args.games))?;
    Ok((frames, bytes))
}
