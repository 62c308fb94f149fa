//! The input of a job -> the units that shares are cut of, each with its bytes: logs with their sidecars, data sets, or files of games.
//! Takes the kind that a job without shares would take, and opens only the files that tell which that is.

use std::ops::Range;

use gristmill_engine::error::Result;
use gristmill_engine::kinds::{self, Way};
use gristmill_engine::pack::layout_name;
use gristmill_engine::pack::manifest::Skipped;

use super::begin::{self, Games as _};
use super::chunks::games::{OfKind, below};
use super::chunks::{Demos, Games, Input, LABEL, check};
use super::discover::{self, Discovered};
use super::start::left_out;
use super::{PackOptions, Packed, Progress, strangers};
use crate::files::{self, Found, Listing};
use crate::shares::Unit;

/// The kind of logs of 2048, as a plan records it.
const ROWS: &str = "rows";

/// The kind of data sets of demonstrations.
const SETS: &str = "demonstrations";

/// An input that was listed, by how a job packs it.
pub(super) enum Listed {
    Rows(Discovered),
    Sets(Demos),
    Files(Listing, OfKind),
}

/// What a share took of the input.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) packed: Packed,
    /// What was left out of these inputs when they were listed.
    pub(super) own: Vec<Skipped>,
    /// What was left out of all inputs when they were listed.
    pub(super) whole: Vec<Skipped>,
}

/// Lists the input, and the units that shares are cut of. None where there is nothing to pack.
///
/// Errors: those of the files.
pub(super) fn list(options: &PackOptions) -> Result<Option<(Listed, Vec<Unit>)>> {
    let root = &options.input;
    for (kind, way) in kinds::packable() {
        match way {
            Way::Rows => {
                let mut logs = discover::discover(root);
                if !logs.sidecars.is_empty() {
                    logs.faults.extend(strangers::beside_logs(root, kind.games()));
                    let units = logs.units(root)?;
                    return Ok(Some((Listed::Rows(logs), units)));
                }
            }
            Way::Sets => {
                if let Ok(Some(demos)) = Demos::list(options) {
                    let units = demos.units()?;
                    return Ok(Some((Listed::Sets(demos), units)));
                }
            }
            Way::Chunks(..) => {}
        }
    }
    let listing = files::list(root)?;
    let Some(of) = kind_of(&listing) else { return Ok(None) };
    let units =
        listing.files.iter().map(|file| Unit { name: below(root, file.path()), bytes: file.bytes(), inputs: 1 });
    let units = units.collect();
    Ok(Some((Listed::Files(listing, of), units)))
}

/// Finds the kind of some files: of the kinds that have a game among them, the first in the table of kinds. Opens files until no
/// other kind can come before.
fn kind_of(listing: &Listing) -> Option<OfKind> {
    let ways: Vec<OfKind> = kinds::packable()
        .filter_map(|(kind, way)| match way {
            Way::Chunks(codec, packing) => Some((kind, codec, packing)),
            _ => None,
        })
        .collect();
    let mut best = ways.len();
    for file in &listing.files {
        if best == 0 {
            break;
        }
        let Found::File(opened) = file.open() else { continue };
        if !opened.source.is_empty() {
            best = ways[..best].iter().position(|(kind, ..)| kind.name() == opened.kind.name()).unwrap_or(best);
        }
    }
    ways.into_iter().nth(best)
}

/// The name that the form of a pack has in what [`Packed`] says, by the kind of the inputs as a plan records it.
pub(super) fn label(kind: &str, options: &PackOptions) -> &'static str {
    let of = |(known, way): (&'static dyn kinds::Kind, Way)| match way {
        Way::Chunks(_, packing) if known.name() == kind => Some(packing.label),
        _ => None,
    };
    match kind {
        ROWS => layout_name(options.layout.unwrap_or_default()),
        SETS => LABEL,
        _ => kinds::packable().find_map(of).unwrap_or_default(),
    }
}

impl Listed {
    /// The name under which a plan records what is packed.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Listed::Rows(_) => ROWS,
            Listed::Sets(_) => SETS,
            Listed::Files(_, (kind, ..)) => kind.name(),
        }
    }

    /// The name of the form of the pack in what [`Packed`] says.
    pub(super) fn label(&self, options: &PackOptions) -> &'static str {
        label(self.kind(), options)
    }

    /// Refuses options that do not suit the input, and inputs that cannot become a pack.
    ///
    /// Errors: as those of a job without shares.
    pub(super) fn check(&self, options: &PackOptions) -> Result<()> {
        match self {
            Listed::Rows(logs) => logs.check(options),
            Listed::Sets(demos) => check(demos, options),
            Listed::Files(_, of) => check(&Games::of(&options.input, [], *of), options),
        }
    }

    /// Packs the units of this range.
    ///
    /// Errors: those of a job without shares.
    pub(super) fn take(
        self,
        options: &PackOptions,
        range: Range<usize>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Taken> {
        let mut taken = Taken::default();
        match self {
            Listed::Rows(logs) => {
                taken.whole = left_out(options, &logs);
                let sidecars: Vec<String> = logs.sidecars.into_iter().take(range.end).skip(range.start).collect();
                if !sidecars.is_empty() {
                    taken.packed = begin::part(options, Discovered { sidecars, ..Discovered::default() }, progress)?;
                }
            }
            Listed::Sets(demos) => {
                let (demos, skipped) = demos.some(range.clone());
                taken.whole = skipped;
                if !range.is_empty() {
                    taken.packed = begin::part(options, Box::new(demos) as Box<dyn Input>, progress)?;
                }
            }
            Listed::Files(listing, of) => {
                let root = &options.input;
                let like = if of.1.varies() { first(options, &listing, of) } else { None };
                let files = listing.files.into_iter().take(range.end).skip(range.start);
                let mut games = Games::of(root, files, of);
                games.like = like;
                taken.own = std::mem::take(&mut games.skipped);
                games.unlisted(root, listing.unlisted);
                taken.whole = std::mem::take(&mut games.skipped);
                if !range.is_empty() {
                    taken.packed = begin::part(options, Box::new(games) as Box<dyn Input>, progress)?;
                }
            }
        }
        Ok(taken)
    }
}

/// Packs the first sound game of the whole input: each share compares its own games with that.
fn first(options: &PackOptions, listing: &Listing, of: OfKind) -> Option<Vec<u8>> {
    listing.files.iter().find_map(|file| Games::of(&options.input, [file.clone()], of).first())
}
