//! `convert`: data in another form. What lies at the path decides which job does it, and which options apply.

use std::sync::Arc;

use gristmill_engine::Error;
use gristmill_engine::pack::METADATA;
use gristmill_format::chess::Version;
use gristmill_jobs::convert::{self as rows, ConvertOptions, Kind};
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::rewrite::{self as job, Recast};

use super::delivery::deliver;
use super::{demos, notation, rewrite};
use crate::args::RecordVersion;
use crate::args::convert::{Chess, Container, Convert, G2048, To};
use crate::failure::{Failure, Result};
use crate::report::{self, converting};
use crate::stopping;

/// Games in a tar, unless the command line says otherwise.
const GAMES_PER_TAR: u32 = 1000;

pub(crate) fn run(args: &Convert) -> Result<()> {
    if let Some(words) = notation::asked(args) {
        return notation::run(args, words);
    }
    let kind = match Kind::of(&args.rewriting.path, &args.rewriting.out)? {
        Kind::Games if args.demos.said().is_some() => Kind::Demonstrations,
        kind => kind,
    };
    match kind {
        Kind::Games => chess(args),
        Kind::Rows => {
            if args.rewriting.share.is_some() {
                let path = args.rewriting.path.display();
                let why = "which are put in order together; convert folders one by one, and merge the packs";
                return Err(Failure::Usage(format!("--share: {path} holds rows of 2048, {why}")));
            }
            g2048(args)
        }
        Kind::Demonstrations => demonstrations(args),
    }
}

fn demonstrations(args: &Convert) -> Result<()> {
    let Chess { version: None, st_q_theta: None, container: None, games_per_tar: None } = args.chess else {
        return Err(Failure::Usage("options of chess games do not apply to demonstrations".to_owned()));
    };
    if args.g2048.to.is_some() || args.lossy {
        return Err(Failure::Usage(
            "the name of OUT decides the form of demonstrations (.tar.zst, .tgz, .tar, .npz); --to and --lossy do not \
             apply"
                .to_owned(),
        ));
    }
    demos::convert(args)
}

/// Refuses options of demonstrations where there are none.
fn no_demonstrations(args: &Convert) -> Result<()> {
    match args.demos.said() {
        None => Ok(()),
        Some(option) => {
            let path = args.rewriting.path.display();
            Err(Failure::Usage(format!("{option} is for demonstrations; {path} holds none")))
        }
    }
}

fn g2048(args: &Convert) -> Result<()> {
    let (words, path) = (&args.g2048, args.rewriting.path.display());
    no_demonstrations(args)?;
    let Chess { version: None, st_q_theta: None, container: None, games_per_tar: None } = args.chess else {
        return Err(Failure::Usage(format!("{path} holds rows of 2048; options of chess games do not apply")));
    };
    let to = match words.to {
        Some(To::Aligned48) => rows::To::Aligned48,
        Some(To::Packed46) => rows::To::Packed46,
        Some(To::SelfPlay) => rows::To::SelfPlay,
        Some(To::Legacy) => rows::To::Legacy,
        Some(To::Exponents) => rows::To::Exponents,
        Some(To::V6 | To::V7 | To::Pgn | To::Fen | To::Bulletformat | To::Binpack) => {
            return Err(Failure::Usage(format!("{path} holds rows of 2048; this --to is for games of chess")));
        }
        None => return Err(Failure::Usage(format!("{path} holds rows of 2048; say what they become with --to FORM"))),
    };
    let delivery = Delivery::to(&args.rewriting.out, Earlier::Removed, args.rewriting.dry_run)?;
    let options = ConvertOptions {
        input: args.rewriting.path.clone(),
        output: delivery.folder(),
        to,
        join: words.join.clone(),
        inner: words.inner,
        lossy: args.lossy,
        defaults: words.defaults,
        renumber: words.renumber,
        shard_rows: words.shard_rows,
        overwrite: words.overwrite,
        dry_run: args.rewriting.dry_run,
        stop: stopping::flag()?,
    };
    let mut progress = None;
    let converted = rows::convert(&options, &mut |done, all| {
        progress.get_or_insert_with(|| report::Progress::new(all, "rows", !args.rewriting.json)).at(done, "");
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let mut converted = converted.map_err(|e| match e {
        Error::Stopped => Failure::stopped("the output is as it was"),
        e => e.into(),
    })?;
    converted.output = deliver(delivery, &options.stop, args.rewriting.json, "the same command begins again")?;
    if args.rewriting.json {
        return Ok(report::json(&converted)?);
    }
    Ok(report::text_out(&converting::text(&converted))?)
}

fn chess(args: &Convert) -> Result<()> {
    let to = match args.g2048.to {
        None => None,
        Some(To::V6) => Some(RecordVersion::V6),
        Some(To::V7) => Some(RecordVersion::V7),
        Some(_) => {
            let path = args.rewriting.path.display();
            let text = format!("this --to is for folders of 2048 rows; there is no {METADATA} in {path}");
            return Err(Failure::Usage(format!("{text}. Games of chess become v6 or v7")));
        }
    };
    let G2048 { to: _, join, inner: false, defaults: false, renumber: false, shard_rows: None, overwrite: _ } =
        &args.g2048
    else {
        return Err(Failure::Usage("options of rows of 2048 do not apply to games of chess".to_owned()));
    };
    if !join.is_empty() {
        return Err(Failure::Usage("--join is for rows of 2048".to_owned()));
    }
    if to.is_some() && args.chess.version.is_some() {
        return Err(Failure::Usage("--to v6 and v7 say what --version says; give one of them".to_owned()));
    }
    let version = args.chess.version.or(to);
    if args.g2048.overwrite {
        return Err(Failure::Usage("--overwrite is for rows and demonstrations; games go to a new folder".to_owned()));
    }
    let words = &args.chess;
    if args.lossy && version.is_none() {
        return Err(Failure::Usage("--lossy goes with --version".to_owned()));
    }
    let container = match (words.container, words.games_per_tar) {
        (Some(Container::Tar), most) => job::Container::Tars(most.unwrap_or(GAMES_PER_TAR) as usize),
        (_, Some(_)) => return Err(Failure::Usage("--games-per-tar goes with --container tar".to_owned())),
        (Some(Container::Loose), None) => job::Container::Loose,
        (None, None) => job::Container::Same,
    };
    if version.is_none() && words.container.is_none() {
        return Err(Failure::Usage("nothing to convert to; give --version, --container or both".to_owned()));
    }
    let version = version.map(|version| match version {
        RecordVersion::V6 => Version::V6,
        RecordVersion::V7 => Version::V7,
    });
    let mut recast = Recast::new(version);
    recast.lossy = args.lossy;
    if let Some(theta) = words.st_q_theta {
        if !(0.0..=1.0).contains(&theta) {
            return Err(Failure::Usage(format!("--st-q-theta: {theta}; expected 0 to 1")));
        }
        recast.theta = theta;
    }
    rewrite::run(&args.rewriting, Vec::new(), container, Arc::new(recast))
}
