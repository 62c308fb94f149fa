//! `convert` to PGN and FEN, bulletformat and binpack: games of any form as one file.

use gristmill_engine::Error;
use gristmill_jobs::notation::{NotationOptions, Told, Words, notation};

use super::shares::AGAIN_OF_SHARE;
use crate::args::convert::{Chess, Convert, G2048, To};
use crate::failure::{Failure, Result};
use crate::report::{self, converting};
use crate::stopping;

/// What the words ask for: by `--to`, or by the name of the output; none for anything else.
pub(super) fn asked(args: &Convert) -> Option<Words> {
    let named = |endings: &[&str]| {
        let found = args.rewriting.out.extension();
        found.is_some_and(|found| endings.iter().any(|ending| found.eq_ignore_ascii_case(ending)))
    };
    match args.g2048.to {
        Some(To::Pgn) => Some(Words::Pgn),
        Some(To::Fen) => Some(Words::Fen),
        Some(To::Bulletformat) => Some(Words::Bulletformat),
        Some(To::Binpack) => Some(Words::Binpack),
        None if named(&["pgn"]) => Some(Words::Pgn),
        None if named(&["fen"]) => Some(Words::Fen),
        None if named(&["bf", "bullet", "bulletformat"]) => Some(Words::Bulletformat),
        None if named(&["binpack"]) => Some(Words::Binpack),
        _ => None,
    }
}

pub(super) fn run(args: &Convert, words: Words) -> Result<()> {
    let Chess { version: None, st_q_theta: None, container: None, games_per_tar: None } = args.chess else {
        return Err(Failure::Usage("options of records do not apply to text".to_owned()));
    };
    let G2048 { to: _, join, inner: false, defaults: false, renumber: false, shard_rows: None, overwrite } =
        &args.g2048
    else {
        return Err(Failure::Usage("options of rows of 2048 do not apply to text".to_owned()));
    };
    if !join.is_empty() || args.lossy || args.demos.said().is_some() {
        return Err(Failure::Usage("--join, --lossy and options of demonstrations do not apply to text".to_owned()));
    }
    let options = NotationOptions {
        path: args.rewriting.path.clone(),
        out: args.rewriting.out.clone(),
        words,
        overwrite: *overwrite,
        dry_run: args.rewriting.dry_run,
        share: args.rewriting.share,
        stop: stopping::flag()?,
    };
    let told = notation(&options, &mut |_| {}).map_err(|e| match e {
        Error::Stopped if options.share.is_some() => Failure::stopped(AGAIN_OF_SHARE),
        Error::Stopped => Failure::stopped("the output is as it was"),
        e => e.into(),
    })?;
    if told.share.is_some() {
        // A share exits with 0 even if it left games out: the commit reports them by its exit code.
        return Ok(report::either(args.rewriting.json, &told, converting::told)?);
    }
    self::told(args.rewriting.json, &told)
}

/// Prints the result of the job.
///
/// Errors: `Faults` if the job left out games or files.
pub(super) fn told(json: bool, told: &Told) -> Result<()> {
    report::either(json, told, converting::told)?;
    if told.left_out.is_empty() { Ok(()) } else { Err(Failure::Faults) }
}
