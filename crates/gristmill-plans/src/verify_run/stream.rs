//! What processes of a stream say they delivered <-> the frames that its plan gives at those numbers, record by record. The
//! stream is run again without its bytes, from its beginning, as all ranks together have it.

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::ledger::{Account, Delivered, Digests, PlanOf};
use gristmill_engine::pipeline::{Reads, SeenBatch, Sight, SightOptions, differences};

use super::digests::WrongRecord;
use super::{NamedRow, NotCompared, Place, Progress, Stretch};

/// What the records of an output are, beside its plan.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) wrong_records: Vec<WrongRecord>,
    pub(super) not_compared: Option<NotCompared>,
    /// Some of the rows that are missing or came more than once.
    pub(super) rows: Vec<NamedRow>,
}

/// A record, and what the plan gives for its batches as far as it was run.
struct Record<'a> {
    ledger: usize,
    rank: usize,
    world: usize,
    says: &'a Delivered,
    plan: Digests,
}

/// Compares all records of an output, and names rows of what is `listed`. A chunk whose frames were counted is only read
/// where something differs: it may have gone bad since.
///
/// Errors: `State` for a configuration that is not the run's; as the start of the stream.
pub(super) fn compare(
    of: (&Account, &str),
    config: &DataLoaderConfig,
    listed: &[(&'static str, &Vec<Stretch>)],
    max_rows: usize,
    progress: Progress<'_>,
) -> Result<Compared> {
    let config = of_run(config, &of.0.processes[0].begin.plan)?;
    let found = run(of, &config, listed, (max_rows, Reads::Uncounted), progress)?;
    if found.wrong_records.is_empty() {
        return Ok(found);
    }
    run(of, &config, listed, (max_rows, Reads::All), progress)
}

/// The configuration of a run, for all of its ranks together.
fn of_run(config: &DataLoaderConfig, plan: &PlanOf) -> Result<DataLoaderConfig> {
    let PlanOf::Stream { config: noted, seed } = plan else {
        return Err(Error::State("it is of rows of a pack".to_owned()));
    };
    let mut differences = differences(config, noted)?;
    if let Some(configured) = config.seed.filter(|configured| configured != seed) {
        differences.push(format!("seed: noted {seed}, configured {configured}"));
    }
    if !differences.is_empty() {
        let text = format!("the ledger is of another configuration: {}", differences.join("; "));
        return Err(Error::State(text));
    }
    Ok(DataLoaderConfig { seed: Some(*seed), rank: None, world_size: None, ..config.clone() })
}

fn run(
    (account, output): (&Account, &str),
    config: &DataLoaderConfig,
    listed: &[(&'static str, &Vec<Stretch>)],
    (max_rows, reads): (usize, Reads),
    progress: Progress<'_>,
) -> Result<Compared> {
    let mut waiting = records(account, output);
    let ends = listed.iter().flat_map(|(_, all)| all.iter().map(|stretch| stretch.end));
    let end = waiting.iter().map(|record| record.says.end).chain(ends).max().unwrap_or(0);
    let sight = Sight::new(config, None, &SightOptions { output: output.to_owned(), first: 0, reads })?;
    let (mut found, mut open) = (Compared::default(), Vec::<Record<'_>>::new());
    let wrong = |record: &Record<'_>| WrongRecord {
        ledger: account.files[record.ledger].display().to_string(),
        first: record.says.first,
        end: record.says.end,
    };
    for number in 0..end {
        progress(number, end);
        let batch = match sight.next_batch(&mut || true) {
            Ok(Some(batch)) => batch,
            // What was delivered after the end of the plan is not of it.
            Ok(None) => {
                found.wrong_records.extend(open.iter().chain(&waiting).map(wrong));
                break;
            }
            Err(error) => {
                found.not_compared = Some(NotCompared { from: number, why: error.to_string() });
                break;
            }
        };
        while waiting.last().is_some_and(|record| record.says.first <= number) {
            open.extend(waiting.pop());
        }
        open.iter_mut().for_each(|record| record.add(&sight, &batch));
        let (done, still) = open.into_iter().partition(|record| record.says.end == number + 1);
        open = still;
        let done: Vec<Record<'_>> = done;
        found
            .wrong_records
            .extend(done.iter().filter(|record| !record.plan.iter().eq(&record.says.digests)).map(wrong));
        for (fault, stretches) in listed {
            for stretch in stretches.iter().filter(|stretch| (stretch.first..stretch.end).contains(&number)) {
                let rows = (0..batch.rows.len()).filter(|row| stretch.has(*row as u64));
                found.rows.extend(rows.take(max_rows - found.rows.len()).map(|row| {
                    let place = Place::Frame(sight.origin(batch.rows[row]));
                    NamedRow { fault, batch: number, row, epoch: None, place }
                }));
            }
        }
    }
    Ok(found)
}

/// All records of an output, the first last.
fn records<'a>(account: &'a Account, output: &str) -> Vec<Record<'a>> {
    let mut records = Vec::new();
    for process in &account.processes {
        let (rank, world) = (process.begin.rank as usize, process.begin.world_size.max(1) as usize);
        let own = process.delivered.iter().filter(|says| says.output == output);
        records.extend(own.map(|says| Record { ledger: process.file, rank, world, says, plan: Digests::default() }));
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.says.first));
    records
}

impl Record<'_> {
    /// Adds the share that its rank has of a batch.
    fn add(&mut self, sight: &Sight, batch: &SeenBatch) {
        for row in batch.rows.iter().skip(self.rank).step_by(self.world) {
            self.plan.frame(sight.file_hash(*row), row.chunk, row.frame);
        }
    }
}
