//! Faults found in parts of a pack, and in the pack as a whole -> the report on all of it. Shares that are joined in order give the
//! report of one process.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::block::Stretch;
use super::ledger::{Database, Ledger};
use crate::verify::{Fault, Verification};

/// What was found in a pack, in the order in which one process looks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::verify) struct OfPack {
    /// When it was opened.
    pub(super) opened: Verification,
    /// What the process with its first byte knows of it.
    pub(super) about: Option<About>,
    /// In its rows.
    rows: Vec<Group>,
    /// When files were held against the manifest, by number.
    pub(super) files: BTreeMap<usize, Verification>,
    /// When the manifest was held against the pack.
    pub(super) manifest: Verification,
    /// When files were held against their checksums, by number.
    pub(super) sums: BTreeMap<usize, Verification>,
    /// In the file of what opening needs, which was made of a pack without faults.
    pub(super) opening: Option<Fault>,
    /// In the values beside the rows.
    pub(super) values: Verification,
    /// How many faults of rows are listed, and of which checks the first is drawn.
    #[serde(skip)]
    listed: usize,
    #[serde(skip)]
    drawn: BTreeSet<&'static str>,
}

/// What is needed to tell of all rows together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct About {
    /// Whether all files could be opened.
    pub(super) all: bool,
    /// The paths of those that could, by number.
    pub(super) paths: Vec<String>,
    pub(super) database: Database,
}

/// What was found in neighbouring blocks, and then what has to be seen beside all other rows.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Group {
    found: Verification,
    then: Vec<Then>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Then {
    Stretch(Stretch),
    /// A block of a file, by number, that could not be read.
    Unread(usize, Fault),
}

impl OfPack {
    /// Takes in the next block.
    pub(super) fn block(&mut self, keep: usize, mut found: Verification, stretches: Vec<Stretch>) {
        // The faults of a stretch come before those of the next block.
        if found.fault_count > 0 || self.rows.is_empty() {
            self.rows.push(Group::default());
        }
        let Some(group) = self.rows.last_mut() else { return };
        // One process lists no more of these, either.
        let room = keep.saturating_sub(self.listed);
        self.listed += found.faults.len().min(room);
        found.examples.retain(|example| self.drawn.insert(example.fault.check()));
        group.found.absorb(room, found);
        for stretch in stretches {
            match group.then.last_mut() {
                Some(Then::Stretch(known)) if known.run == stretch.run => known.rows.join(&stretch.rows),
                _ => group.then.push(Then::Stretch(stretch)),
            }
        }
    }

    /// Takes in the next block, of file `file`, which could not be read.
    pub(super) fn unread(&mut self, file: usize, fault: Fault) {
        if self.rows.is_empty() {
            self.rows.push(Group::default());
        }
        let Some(Group { then, .. }) = self.rows.last_mut() else { return };
        if !then.iter().any(|then| matches!(then, Then::Unread(known, _) if *known == file)) {
            then.push(Then::Unread(file, fault));
        }
    }

    /// Takes in what was found in the rows after it.
    pub(in crate::verify) fn join(&mut self, keep: usize, after: OfPack) {
        self.opened.absorb(keep, after.opened);
        self.about = self.about.take().or(after.about);
        self.rows.extend(after.rows);
        self.files.extend(after.files);
        self.manifest.absorb(keep, after.manifest);
        self.sums.extend(after.sums);
        self.opening = self.opening.take().or(after.opening);
        self.values.absorb(keep, after.values);
    }

    /// All of it, as far as it is known before the rows are seen together.
    pub(in crate::verify) fn all(&self) -> impl Iterator<Item = &Verification> {
        let rows = self.rows.iter().map(|group| &group.found);
        let files = self.files.values().chain(self.sums.values());
        [&self.opened, &self.manifest, &self.values].into_iter().chain(rows).chain(files)
    }
}

/// Reports what was found in rows as they come, in their order.
#[derive(Default)]
pub(in crate::verify) struct Telling {
    about: Option<(Ledger, Vec<String>, bool)>,
    unread: BTreeSet<usize>,
    /// How many faults were reported before those of the pack.
    before: Option<u64>,
}

impl Telling {
    /// Adds what was found so far to `report`, which lists at most `keep` faults, and takes it away.
    pub(super) fn tell(&mut self, found: &mut OfPack, keep: usize, report: &mut Verification) {
        self.before.get_or_insert(report.fault_count);
        report.absorb(keep, std::mem::take(&mut found.opened));
        if let Some(About { all, paths, database }) = found.about.take() {
            self.about = Some((Ledger::new(database), paths, all));
        }
        for group in found.rows.drain(..) {
            report.absorb(keep, group.found);
            for then in group.then {
                match (then, &mut self.about) {
                    (Then::Stretch(stretch), Some((ledger, paths, _))) => {
                        let path = paths.get(stretch.file).map_or("", String::as_str);
                        ledger.add(&stretch, path, &mut |fault| report.add(keep, fault));
                    }
                    // A file that ends too early is reported once, by its first missing block.
                    (Then::Unread(file, fault), _) if self.unread.insert(file) => report.add(keep, fault),
                    _ => {}
                }
            }
        }
    }

    /// Adds all of it to `report`.
    pub(in crate::verify) fn finish(mut self, mut found: OfPack, keep: usize, report: &mut Verification) {
        self.tell(&mut found, keep, report);
        if let Some((ledger, _, all)) = self.about {
            ledger.finish(all && self.unread.is_empty(), &mut |fault| report.add(keep, fault));
        }
        found.files.into_values().for_each(|found| report.absorb(keep, found));
        report.absorb(keep, found.manifest);
        found.sums.into_values().for_each(|found| report.absorb(keep, found));
        if self.before == Some(report.fault_count) {
            found.opening.into_iter().for_each(|fault| report.add(keep, fault));
        }
        report.absorb(keep, found.values);
    }
}
