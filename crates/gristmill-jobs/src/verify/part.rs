//! A share of some inputs -> what was found in it, kept by path and step; the parts of all shares, joined in their order, are what
//! one process finds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::against;
use super::pack::{self, OfPack, Telling};
use super::{Fault, Progress, Verification, VerifyOptions, beside, interrupted, nothing, of_files};
use crate::inputs::Inputs;
use crate::reports::{self, Report, Reported, Reporting, Sharing};
use crate::shares::{Portion, Whole};

/// What was found in a share.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Part {
    /// By path, in the order in which they were given.
    paths: Vec<OfPath>,
}

/// What was found at a path, in the order in which one process looks. A comparison with sources has one of these, for all sources.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OfPath {
    /// In its files.
    files: Verification,
    /// In what lies beside the chunk files of a pack.
    beside: Verification,
    /// In packs of rows, by number.
    packs: BTreeMap<usize, OfPack>,
    /// The fault of a path where no share finds a file of data.
    nothing: Option<Fault>,
}

/// The name of the job in plans.
pub(crate) const JOB: &str = "verify";

/// Names of the options in the plan of a comparison with sources: the path of the sources, and the hash of the pack's manifest.
const AGAINST: &str = "against";
const PACK: &str = "pack";

/// The option with how many faults are listed.
const MAX_FAULTS: &str = "max_faults";

/// Verifies a share of the files at the paths, unless the share is done.
///
/// If `options.against` names sources, shares divide the sources, and each share opens the whole pack.
///
/// Errors: as [`super::verify`]; `Config` in `share` if a path cannot be listed, has no data, or holds what an interrupted job left; as
/// [`crate::shares::make`].
pub fn share(options: &VerifyOptions, sharing: &Sharing, progress: &mut Progress<'_>) -> Result<Reported> {
    crate::in_order::check(options.workers)?;
    for path in &options.paths {
        if let Some(e) = interrupted(path)? {
            return Err(Error::config("share", e.to_string()));
        }
    }
    let mut recorded = BTreeMap::from([(MAX_FAULTS.to_owned(), Value::from(options.max_faults as u64))]);
    if let Some(sources) = &options.against {
        let pack = Arc::new(against::of(options)?);
        recorded.insert(AGAINST.to_owned(), Value::from(sources.display().to_string()));
        recorded.insert(PACK.to_owned(), Value::from(pack.identity.clone()));
        let cut = std::slice::from_ref(sources);
        let reporting = Reporting { job: JOB, paths: &options.paths, cut, options: recorded };
        return reporting.share(sharing, |inputs, portion, renew| {
            let mut found = OfPath::default();
            for own in inputs.own(portion) {
                against::compare(&pack, sources, own.files, options, &mut found.files, &mut |found, of_pack| {
                    renew();
                    progress(found, of_pack);
                })?;
            }
            Ok(Part { paths: vec![found] })
        });
    }
    let paths = &options.paths;
    let reporting = Reporting { job: JOB, paths, cut: paths, options: recorded };
    reporting.share(sharing, |inputs, portion, renew| {
        Part::of(inputs, portion, options, &mut |found, of_pack| {
            renew();
            progress(found, of_pack);
        })
    })
}

/// What the shares found, as one process finds it; it becomes the report.
///
/// Errors: as [`reports::commit`].
pub(crate) fn commit(whole: &Whole) -> Result<Verification> {
    let max_faults = whole.plan.options.get(MAX_FAULTS).and_then(Value::as_u64).unwrap_or_default();
    let max_faults = usize::try_from(max_faults).unwrap_or(usize::MAX);
    reports::commit(whole, |parts: Vec<Part>| {
        let mut all = Part::default();
        parts.into_iter().for_each(|part| all.join(max_faults, part));
        if let Some(sources) = whole.plan.options.get(AGAINST).and_then(Value::as_str) {
            all.paths.iter_mut().for_each(|path| against::nothing(Path::new(sources), max_faults, &mut path.files));
        }
        Ok(all.found(max_faults))
    })
}

impl Report for Part {
    fn counted(&self) -> (u64, u64, u64) {
        let all = self.paths.iter().flat_map(OfPath::all);
        all.fold((0, 0, 0), |(files, chunks, frames), found| {
            (files + found.files, chunks + found.chunks, frames + found.checked)
        })
    }
}

impl Part {
    /// Verifies a portion of the files at the paths.
    fn of(inputs: &Inputs, portion: Portion, options: &VerifyOptions, progress: &mut Progress<'_>) -> Result<Part> {
        let mut paths = Vec::new();
        for ((path, listing), own) in inputs.paths.iter().zip(inputs.own(portion)) {
            let mut found = OfPath::default();
            of_files(path, own.files, options, &mut found.files, progress)?;
            if own.begins {
                beside(path, options, &mut found.beside)?;
            }
            let packs = listing.as_ref().map_or(&[][..], |listing| &listing.packs);
            for (number, place) in own.packs {
                if let Some(folder) = packs.get(number) {
                    let so_far = &found.files;
                    let of_pack = pack::part(folder, place, options, &mut |_, of_pack| progress(so_far, of_pack))?;
                    found.packs.insert(number, of_pack);
                }
            }
            found.nothing = found.is_nothing().then(|| nothing(path));
            paths.push(found);
        }
        Ok(Part { paths })
    }

    /// Takes in the part after it; lists at most `max_faults` faults.
    fn join(&mut self, max_faults: usize, after: Part) {
        self.paths.resize_with(self.paths.len().max(after.paths.len()), OfPath::default);
        for (known, found) in self.paths.iter_mut().zip(after.paths) {
            known.files.absorb(max_faults, found.files);
            known.beside.absorb(max_faults, found.beside);
            for (number, found) in found.packs {
                known.packs.entry(number).or_default().join(max_faults, found);
            }
            known.nothing = known.nothing.take().or(found.nothing);
        }
    }

    /// The report of one process. It lists at most `max_faults` faults.
    fn found(self, max_faults: usize) -> Verification {
        let mut report = Verification::default();
        for path in self.paths {
            let is_nothing = path.is_nothing();
            report.absorb(max_faults, path.files);
            report.absorb(max_faults, path.beside);
            let packs = path.packs.into_values();
            packs.for_each(|found| Telling::default().finish(found, max_faults, &mut report));
            path.nothing.into_iter().filter(|_| is_nothing).for_each(|fault| report.add(max_faults, fault));
        }
        report.examples.iter_mut().for_each(|example| example.redraw());
        report.ok = report.fault_count == 0;
        report
    }
}

impl OfPath {
    fn all(&self) -> impl Iterator<Item = &Verification> {
        [&self.files, &self.beside].into_iter().chain(self.packs.values().flat_map(OfPack::all))
    }

    /// Whether there is neither data nor a fault.
    fn is_nothing(&self) -> bool {
        self.all().all(|found| (found.files, found.fault_count) == (0, 0))
    }
}
