//! A run over rows whose states lie on a disk, as `Engine::save` publishes them: one process of it, from the state that is there. Every
//! batch is compared to the byte with the oracle's, and the ledger with the batches that survive.

use std::time::Duration;

use gristmill_engine::Next;

use super::scenario::Scenario;
use super::{Found, Run, ledger};
use crate::chooser::Chooser;
use crate::run::published::Publishing;

/// One process, which takes batches up to the end of its only start. `compared`: the ledger against the page, too.
pub(crate) fn process(scenario: &Scenario, publishing: &Publishing, number: u64, compared: bool) -> Found<()> {
    let mut run = Run::new(scenario, scenario.ledger.then(|| publishing.folder()));
    let start = scenario.starts.first().ok_or("a run without a start")?;
    let chooser = Chooser::new(scenario.seed).apart(1 + number);
    let (world, _table, loader) = run.loader(start, 0, &chooser)?;
    let mut chooser = chooser.apart(7);
    let mut next = publishing.load(&loader)?;
    let mut since = 0;
    while next < start.batches {
        since += 1;
        if since > publishing.patience {
            return Err(format!("no batch in {} steps", publishing.patience));
        }
        if chooser.below(4) > 0 && !world.sleeps() {
            world.step();
            continue;
        }
        match loader.next("", Some(Duration::ZERO)).map_err(|e| format!("it ended with an error: {e}"))? {
            Next::Pending => world.step(),
            Next::End if run.beyond(next) < run.oracle.batches() => {
                return Err(format!("it ended before batch {next}"));
            }
            Next::End => break,
            Next::Batch(batch) => {
                run.compare(&batch, (run.beyond(next), 0, 1))?;
                (next, since) = (batch.number + 1, 0);
                publishing.save(&loader, next)?;
            }
        }
    }
    let hung = loader.stop();
    world.clear();
    if !hung.is_empty() {
        return Err(format!("threads hang where there are none: {hung:?}"));
    }
    let folder = run.folder.as_ref().filter(|_| compared);
    folder.map_or(Ok(()), |folder| ledger::check(folder, scenario, &run.oracle, next))
}
