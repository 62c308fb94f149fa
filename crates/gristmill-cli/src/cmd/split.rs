//! `split`: each game, byte for byte, or trajectory to one of several folders.

use std::path::{Component, Path};
use std::sync::Arc;

use gristmill_engine::stage::split::Fold;
use gristmill_jobs::rewrite::{By as Going, Container, Split as Splitting};

use super::{demos, rewrite};
use crate::args::rewrite::{By, Split};
use crate::failure::{Failure, Result};

pub(crate) fn run(args: &Split) -> Result<()> {
    if args.rewriting.share.is_some() {
        return Err(Failure::Usage(
            "--share: a game goes where its name or content says, whatever else is there: split some of the files on each machine, \
             or read a side with `feed --split`, which copies nothing"
                .to_owned(),
        ));
    }
    let mut outs = Vec::new();
    for (name, _) in &args.into {
        let mut parts = Path::new(name).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !plain || name.starts_with('.') {
            let text = format!("--into: `{name}` is no name of a folder below OUT; expected one such as `train`");
            return Err(Failure::Usage(text));
        }
        outs.push(args.rewriting.out.join(name));
    }
    if demos::lie_at(&args.rewriting.path)? {
        if args.by == By::Content {
            let text = "--by content: demonstrations have no symmetries; leave it out".to_owned();
            return Err(Failure::Usage(text));
        }
        return demos::split(args);
    }
    if args.members.is_some() {
        return Err(Failure::Usage(
            "--members is for demonstrations; games stay as they are, byte for byte".to_owned(),
        ));
    }
    let by = match args.by {
        By::Name => Going::Name,
        By::File => Going::File,
        By::Content => Going::Content,
    };
    let split = Splitting::new(args.into.iter().map(|(_, weight)| *weight).collect(), by, fold(args))?;
    rewrite::run(&args.rewriting, outs, Container::Same, Arc::new(split))
}

/// The fold of the command line; `None` without --folds.
pub(super) fn fold(args: &Split) -> Option<Fold> {
    Some(Fold { of: args.folds?, number: args.fold? })
}
