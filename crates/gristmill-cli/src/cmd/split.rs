//! `split`: each game, byte for byte, or trajectory to one of several folders.

use std::sync::Arc;

use gristmill_engine::stage::split::Fold;
use gristmill_jobs::rewrite::{By as Going, Container, Split as Splitting};

use super::{demos, rewrite};
use crate::args::rewrite::{By, Split};
use crate::failure::{Failure, Result};

pub(crate) fn run(args: &Split) -> Result<()> {
    if demos::lie_at(&args.rewriting.path)? {
        if args.by == By::Content {
            let text = "--by content: demonstrations have no symmetries; leave it out".to_owned();
            return Err(Failure::Usage(text));
        }
        return demos::split(args);
    }
    if args.members.is_some() || args.files_per_shard.is_some() {
        return Err(Failure::Usage(
            "--members and --files-per-shard are for demonstrations; games stay as they are, byte for byte".to_owned(),
        ));
    }
    let by = match args.by {
        By::Name => Going::Name,
        By::File => Going::File,
        By::Content => Going::Content,
    };
    let split = Splitting::new(args.into.iter().map(|(_, weight)| *weight).collect(), by, fold(args))?;
    let sides = args.into.iter().map(|(name, _)| name.clone()).collect();
    rewrite::run(&args.rewriting, sides, Container::Same, Arc::new(split))
}

/// The fold of the command line; `None` without --folds.
pub(super) fn fold(args: &Split) -> Option<Fold> {
    Some(Fold { of: args.folds?, number: args.fold? })
}
