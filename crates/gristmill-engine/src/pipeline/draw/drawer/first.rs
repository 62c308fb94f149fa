//! The files of a first scan -> a drawer for each lane of one input, with the newest sources in its window, and what was gone.
//! Leaves no file out that an earlier run drew from.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::{ExtractOrder, KeyOrder};
use gristmill_stages::stage::ChunkRef;
use gristmill_stages::stage::extract::Extract;

use super::{Drawer, Drawing};
use crate::pipeline::draw::anchors::Anchors;
use crate::pipeline::draw::deal::{First, deal};
use crate::pipeline::draw::left::has_left;
use crate::pipeline::draw::outage::{Outages, of_reading};
use crate::pipeline::draw::recorded::Recorded;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::plan::{BranchPlan, DrawPlan};

/// What a first admission goes by when it opens files.
pub(in crate::pipeline) struct Opening<'a> {
    /// Ends it early.
    pub(in crate::pipeline) stop: &'a AtomicBool,
    /// Files that cannot be read now.
    pub(in crate::pipeline) outages: &'a Outages,
    /// Whether files that are not there as they were are left out.
    pub(in crate::pipeline) skip: bool,
    /// Whether an earlier run may have made draws from these files: it had all of them, and so must this one.
    pub(in crate::pipeline) drawn: bool,
    /// Of each lane, files that came after the first scan.
    pub(in crate::pipeline) later: &'a [HashSet<u64>],
}

/// What came of a first admission.
#[derive(Debug)]
pub(in crate::pipeline) enum Begun {
    /// A drawer for each lane, with the ids of files that are gone and would have been in it, and whether any lane of any rank has a chunk.
    Whole(Vec<(Drawer, Vec<u64>)>, bool),
    /// A file cannot be read now that belongs to it: it is to be made again.
    Lacks(u64),
}

/// The error of a run that cannot begin again with the files that there are.
pub(in crate::pipeline) fn unable(text: &str) -> Error {
    let advice = "the run cannot start again without it: put it back, resume from a state, or use another journal";
    Error::State(format!("{text}; {advice}"))
}

impl Drawer {
    /// The first admission, of all lanes of one input: the newest sources of the first scan, as many as each window holds.
    ///
    /// A container that cannot be indexed is left out, the log counts it; of each lane the ids of files that are gone are returned, too.
    /// Errors: `State` for a recorded file that is not there as it was, unless such are skipped; what reading says where the
    /// stream does not wait.
    pub(in crate::pipeline) fn first(
        plans: &[Arc<BranchPlan>],
        root: u64,
        log: &Roster,
        files: &[Recorded],
        anchors: &Anchors,
        Opening { stop, outages, skip, drawn, later }: Opening<'_>,
    ) -> Result<Begun> {
        let Some(plan) = plans.first() else { return Ok(Begun::Whole(Vec::new(), false)) };
        let is_first = |file: &&Recorded| later.iter().any(|later| !later.contains(&file.id));
        let mut order: Vec<&Recorded> = files.iter().filter(is_first).collect();
        if plan.key_order == KeyOrder::Bytes {
            order.sort_by_key(|file| (gristmill_runtime::key::of_name(&file.name), &file.name));
        }
        let mut firsts: Vec<First> = plans.iter().map(|plan| First::of(plan)).collect();
        let (mut gone, mut missed, mut found) = (vec![Vec::new(); plans.len()], None, false);
        for file in order.iter().rev() {
            // Indexing many containers takes long: a stop need not wait for it.
            if firsts.iter().all(First::is_full) || stop.load(Ordering::Relaxed) {
                break;
            }
            if outages.rests(file.id) {
                return Ok(Begun::Lacks(file.id));
            }
            let opened = log.open(file.id);
            if log.missed(file.id, &opened) {
                // The rest is missed, too, as far as it is away: all of them are opened again in a moment.
                outages.rest(file.id);
                missed = Some(file.id);
                continue;
            }
            if let Some(refused) = opened.as_ref().err().and_then(of_reading) {
                outages.failed(file.id, refused)?;
                return Ok(Begun::Lacks(file.id));
            }
            outages.over(file.id, opened.is_ok());
            let source = match opened {
                Ok(source) => source,
                Err(Error::State(text)) if !skip => return Err(unable(&text)),
                Err(e) if has_left(&e) && drawn && !skip => return Err(unable(&log.lost(file.id, &e))),
                Err(e) => {
                    for ((gone, first), later) in gone.iter_mut().zip(&firsts).zip(later).filter(|_| has_left(&e)) {
                        gone.extend((!first.is_full() && !later.contains(&file.id)).then_some(file.id));
                    }
                    if let Error::Format(e) = e {
                        log.log().note(&e);
                    }
                    continue;
                }
            };
            let (dealt, all) = deal(plans, &source);
            found |= all > 0;
            for ((first, later), chunks) in firsts.iter_mut().zip(later).zip(dealt) {
                if !later.contains(&file.id) {
                    first.take(file.id, &source, chunks, all);
                }
            }
        }
        if let Some(id) = missed {
            return Ok(Begun::Lacks(id));
        }
        let drawers = plans.iter().zip(firsts).map(|(plan, first)| Drawer::of_first(plan, root, first.cut(), anchors));
        Ok(Begun::Whole(drawers.zip(gone).collect(), found))
    }

    fn of_first(plan: &Arc<BranchPlan>, root: u64, first: First, anchors: &Anchors) -> Self {
        let mut drawer = Drawer::new(plan, root);
        for (key, chunks) in first.counted.into_iter().rev() {
            if let Some(mut anchor) = anchors.of(&plan.stage) {
                let after = plan.key_order.compare(&key, &anchor.key).is_gt();
                anchor.found(&key, chunks, after);
            }
        }
        let mut list = Vec::new();
        if let Drawing::Pool(pool) = &mut drawer.drawing {
            pool.begin(first.passed);
        }
        for (id, source, chunks) in first.kept.into_iter().rev() {
            let member = drawer.join(id, source, chunks.len());
            match &mut drawer.drawing {
                Drawing::Pool(pool) => pool.admit(member, chunks),
                Drawing::Extract(_) => list.extend(chunks.into_iter().map(|chunk| ChunkRef { source: member, chunk })),
            }
        }
        if let DrawPlan::Extract { order, epochs } = plan.draw {
            let shuffle = (order == ExtractOrder::Shuffled).then_some(drawer.key);
            drawer.drawing = Drawing::Extract(Extract::new(list, shuffle, epochs));
        }
        drawer
    }
}
