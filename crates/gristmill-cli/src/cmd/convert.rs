//! `convert`: data in another form. What lies at the path decides which job does it, and which options apply.

use std::sync::Arc;

use gristmill_engine::job::rewrite::{self as job, Recast};
use gristmill_engine::pack::METADATA;
use gristmill_format::chess::Version;

use super::rewrite;
use crate::args::RecordVersion;
use crate::args::convert::{Container, Convert};
use crate::failure::{Failure, Result};

/// Games in a tar, where nothing else is asked for.
const GAMES_PER_TAR: u32 = 1000;

/// What can be converted.
enum Source {
    ChessGames,
    Pack,
}

pub(crate) fn run(args: &Convert) -> Result<()> {
    match source(args) {
        Source::ChessGames => chess(args),
        Source::Pack => {
            let path = args.rewriting.path.display();
            Err(Failure::Usage(format!(
                "{path} is a pack; `gristmill merge {path} --output OUT --layout FORM` rewrites it"
            )))
        }
    }
}

/// What lies at the path: a folder with a pack's database is a pack.
fn source(args: &Convert) -> Source {
    if args.rewriting.path.join(METADATA).is_file() { Source::Pack } else { Source::ChessGames }
}

fn chess(args: &Convert) -> Result<()> {
    let container = match (args.container, args.games_per_tar) {
        (Some(Container::Tar), most) => job::Container::Tars(most.unwrap_or(GAMES_PER_TAR) as usize),
        (_, Some(_)) => return Err(Failure::Usage("--games-per-tar goes with --container tar".to_owned())),
        (Some(Container::Loose), None) => job::Container::Loose,
        (None, None) => job::Container::Same,
    };
    if args.version.is_none() && args.container.is_none() {
        return Err(Failure::Usage("nothing to convert to; give --version, --container or both".to_owned()));
    }
    let version = args.version.map(|version| match version {
        RecordVersion::V6 => Version::V6,
        RecordVersion::V7 => Version::V7,
    });
    let mut recast = Recast::new(version);
    recast.lossy = args.lossy;
    if let Some(theta) = args.st_q_theta {
        if !(0.0..=1.0).contains(&theta) {
            return Err(Failure::Usage(format!("--st-q-theta: {theta}; expected 0 to 1")));
        }
        recast.theta = theta;
    }
    rewrite::run(&args.rewriting, vec![args.rewriting.out.clone()], container, Arc::new(recast))
}
