//! Counts of a share of some inputs -> counts of all, in any parts: sums, tallies and histograms that depend on the numbers alone.
//! What one process counts is one such part.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gristmill_engine::error::Result;
use gristmill_engine::runtime::spread::Tally;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::demo::DemoCounting;
use super::g2048::{Counted, StepCounting};
use super::start::Start;
use super::{MILLION, Stats, StatsOptions, count};
use crate::reports::{self, Report, Reported, Reporting, Sharing};
use crate::shares::Whole;

/// The name of the job in plans.
pub(crate) const JOB: &str = "stats";

/// Counts a share of the files at the paths, unless the share is done. It calls `progress` for each file.
///
/// Errors: as [`super::stats`]; `Config` in `share` where a path cannot be listed, or has nothing; as [`crate::shares::make`].
pub fn share(
    paths: &[PathBuf],
    options: &StatsOptions,
    sharing: &Sharing,
    progress: &mut dyn FnMut(&Stats),
) -> Result<Reported> {
    crate::in_order::check(options.workers)?;
    let recorded = [("q_weight", options.q_weight), ("pol_scale", options.pol_scale)];
    let recorded = recorded.into_iter().map(|(name, weight)| (name.to_owned(), json!(weight)));
    let reporting = Reporting { job: JOB, paths, cut: paths, options: recorded.collect() };
    reporting.share(sharing, |inputs, portion, renew| {
        count(inputs, portion, options, &mut |stats| {
            renew();
            progress(stats);
        })
    })
}

/// What the shares counted, as one process counts it; it becomes the report.
///
/// Errors: as [`reports::commit`].
pub(crate) fn commit(whole: &Whole) -> Result<Stats> {
    reports::commit(whole, |parts: Vec<Part>| {
        let mut all = Part::default();
        parts.into_iter().for_each(|part| all.join(part));
        Ok(all.stats())
    })
}

impl Report for Part {
    fn counted(&self) -> (u64, u64, u64) {
        let Stats { files, chunks, frames, .. } = self.stats;
        self.packs.iter().fold((files, chunks, frames), |(files, chunks, frames), (_, of)| {
            (files + of.counted.files, chunks + of.counted.games, frames + of.counted.rows)
        })
    }
}

/// What was counted of a part of some inputs: joined with the parts after it, in the order of the inputs, it is what one process
/// counts of all.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) stats: Stats,
    pub(super) length: Tally,
    pub(super) plies: Tally,
    pub(super) visits: Tally,
    pub(super) legal: Tally,
    pub(super) weights: Tally,
    pub(super) start: Start,
    pub(super) steps: StepCounting,
    pub(super) demos: DemoCounting,
    /// Packs of rows of which a share has some, in order.
    pub(super) packs: Vec<(Input, OfPack)>,
    /// Of inputs that could not be read, in order, the first reason of each.
    unread: Vec<(Input, String)>,
}

/// A place in the inputs, in the order of one process: for each path its files, then its packs, then the folders that cannot be listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Input {
    path: u64,
    place: u64,
}

impl Input {
    pub(super) fn files(path: u64) -> Self {
        Input { path, place: 0 }
    }

    pub(super) fn pack(path: u64, number: u64) -> Self {
        Input { path, place: 1 + number }
    }

    pub(super) fn unlisted(path: u64) -> Self {
        Input { path, place: u64::MAX }
    }
}

/// Why none of a pack counts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Bad {
    /// It is damaged.
    Damaged,
    /// It could not be read, for this reason.
    Unread(String),
}

/// What was counted of rows of a pack, and of the pack.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OfPack {
    pub(super) counted: Counted,
    pub(super) steps: StepCounting,
    /// What is wrong with its rows, and with its database, which is read after them.
    pub(super) bad: [Option<Bad>; 2],
}

impl OfPack {
    /// Takes in what was counted of the rows after it.
    fn join(&mut self, after: OfPack) {
        self.counted.join(after.counted);
        self.steps.join(after.steps);
        self.bad.iter_mut().zip(after.bad).for_each(|(known, bad)| *known = known.take().or(bad));
    }
}

impl Part {
    /// Counts inputs that could not be read, and why.
    pub(super) fn unread(&mut self, input: Input, count: u64, why: String) {
        self.stats.unreadable += count;
        if self.unread.last().is_none_or(|(known, _)| *known != input) {
            self.unread.push((input, why));
        }
    }

    /// Takes in a pack, of which all was counted.
    pub(super) fn take(&mut self, input: Input, found: OfPack) {
        match found.bad.into_iter().flatten().next() {
            None => {
                self.stats.files += found.counted.files;
                self.stats.chunks += found.counted.games;
                self.stats.frames += found.counted.rows;
                self.stats.stored_bytes += found.counted.bytes;
                self.stats.inflated_bytes += found.counted.bytes;
                self.steps.join(found.steps);
            }
            Some(Bad::Damaged) => self.stats.bad_files += 1,
            Some(Bad::Unread(why)) => self.unread(input, 1, why),
        }
    }

    /// Takes in the part after it.
    fn join(&mut self, after: Part) {
        self.stats.join(after.stats);
        self.length.join(after.length);
        self.plies.join(after.plies);
        self.visits.join(after.visits);
        self.legal.join(after.legal);
        self.weights.join(after.weights);
        self.start.join(after.start);
        self.steps.join(after.steps);
        self.demos.join(after.demos);
        self.unread.extend(after.unread);
        for (input, found) in after.packs {
            match self.packs.last_mut().filter(|(known, _)| *known == input) {
                Some((_, known)) => known.join(found),
                None => self.packs.push((input, found)),
            }
        }
    }

    /// The distributions.
    pub(super) fn stats(mut self) -> Stats {
        std::mem::take(&mut self.packs).into_iter().for_each(|(input, found)| self.take(input, found));
        let first = self.unread.into_iter().min_by_key(|(input, _)| *input);
        Stats {
            first_unreadable: first.map(|(_, why)| why),
            length: self.length.spread(),
            plies: self.plies.spread(),
            visits: self.visits.spread(),
            legal_moves: self.legal.spread(),
            weights: self.weights.spread().scaled(f64::from(MILLION)),
            start: self.start.policy(),
            g2048: self.steps.finish(),
            demos: self.demos.finish(),
            ..self.stats
        }
    }
}

impl Stats {
    /// Adds the counts of the part after it.
    fn join(&mut self, after: Stats) {
        self.files += after.files;
        self.skipped += after.skipped;
        self.bad_files += after.bad_files;
        self.unreadable += after.unreadable;
        self.chunks += after.chunks;
        self.bad_chunks += after.bad_chunks;
        self.frames += after.frames;
        self.stored_bytes += after.stored_bytes;
        self.inflated_bytes += after.inflated_bytes;
        self.results.white += after.results.white;
        self.results.draw += after.results.draw;
        self.results.black += after.results.black;
        self.adjudicated += after.adjudicated;
        self.maximum_length += after.maximum_length;
        self.unweighed += after.unweighed;
        let add = |counts: &mut BTreeMap<u32, u64>, more: BTreeMap<u32, u64>| {
            more.into_iter().for_each(|(number, count)| *counts.entry(number).or_default() += count);
        };
        add(&mut self.men, after.men);
        add(&mut self.versions, after.versions);
        add(&mut self.input_formats, after.input_formats);
        after.kinds.into_iter().for_each(|(name, counts)| self.kinds.entry(name).or_default().join(counts));
    }
}
