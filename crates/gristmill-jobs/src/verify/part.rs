//! A share of some inputs -> what was found in it, kept by path and step; the parts of all shares, joined in their order, are what
//! one process finds.

use std::collections::BTreeMap;

use gristmill_engine::error::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Fault, Progress, Verification, VerifyOptions, beside, interrupted, nothing, of_files, pack};
use crate::inputs::Inputs;
use crate::shares::{Portion, Share};

/// What was found in a share.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// By path, in the order in which they were given.
    paths: Vec<OfPath>,
}

/// What was found at a path, in the order in which one process looks.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OfPath {
    /// In its files.
    files: Verification,
    /// In what lies beside the chunk files of a pack.
    beside: Verification,
    /// In packs of rows, by number.
    packs: BTreeMap<usize, Verification>,
    /// The fault of a path where no share finds a file of data.
    nothing: Option<Fault>,
}

impl Part {
    /// Verifies a share of what lies at the paths.
    ///
    /// Errors: as [`super::verify`]; `Config` in `share` where something cannot be listed.
    pub fn of(options: &VerifyOptions, share: Share, progress: &mut Progress<'_>) -> Result<Part> {
        crate::in_order::check(options.workers)?;
        for path in &options.paths {
            if let Some(e) = interrupted(path)? {
                return Err(Error::config("share", e.to_string()));
            }
        }
        let inputs = Inputs::list(&options.paths);
        let mut paths = Vec::new();
        for ((path, listing), own) in inputs.paths.iter().zip(inputs.own(Portion::of(&inputs.units()?, share))) {
            let mut found = OfPath::default();
            of_files(path, own.files, options, &mut found.files, progress)?;
            if own.begins {
                beside(path, options, &mut found.beside)?;
            }
            for (number, folder) in listing.iter().flat_map(|listing| listing.packs.iter().enumerate()) {
                if own.packs.contains(&number) {
                    let of_pack = found.packs.entry(number).or_default();
                    pack::verify(folder, options, of_pack, progress)?;
                }
            }
            found.nothing = found.is_nothing().then(|| nothing(path));
            paths.push(found);
        }
        Ok(Part { paths })
    }

    /// Takes in the part after it; lists at most `max_faults` faults.
    pub fn join(&mut self, max_faults: usize, after: Part) {
        self.paths.resize_with(self.paths.len().max(after.paths.len()), OfPath::default);
        for (known, found) in self.paths.iter_mut().zip(after.paths) {
            known.files.absorb(max_faults, found.files);
            known.beside.absorb(max_faults, found.beside);
            for (number, found) in found.packs {
                known.packs.entry(number).or_default().absorb(max_faults, found);
            }
            known.nothing = known.nothing.take().or(found.nothing);
        }
    }

    /// What one process finds, of which at most `max_faults` faults are listed.
    pub fn found(self, max_faults: usize) -> Verification {
        let mut report = Verification::default();
        for path in self.paths {
            let is_nothing = path.is_nothing();
            report.absorb(max_faults, path.files);
            report.absorb(max_faults, path.beside);
            path.packs.into_values().for_each(|found| report.absorb(max_faults, found));
            path.nothing.into_iter().filter(|_| is_nothing).for_each(|fault| report.add(max_faults, fault));
        }
        report.examples.iter_mut().for_each(|example| example.redraw());
        report.ok = report.fault_count == 0;
        report
    }
}

impl OfPath {
    /// Whether there is neither data nor a fault.
    fn is_nothing(&self) -> bool {
        let all = [&self.files, &self.beside].into_iter().chain(self.packs.values());
        all.into_iter().all(|found| (found.files, found.fault_count) == (0, 0))
    }
}
