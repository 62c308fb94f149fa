//! A loader of rows left after any batch -> the same batches from a new one, whatever its threads and however many ranks.

use std::time::Duration;

use gristmill_engine::config::IndexConfig;
use gristmill_engine::table::IndexInput;
use gristmill_engine::{IndexLoader, Next};

/// Long enough for any batch on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Batches that each continued run is followed for.
const FOLLOWED: usize = 3;

/// A batch of all ranks: per real row its bytes of all tensors, and how many rows are shown.
type Together = (Vec<Vec<u8>>, usize);

/// The ranks of a run.
struct Run(Vec<IndexLoader>);

impl Run {
    fn of(input: &IndexInput, config: &IndexConfig, world_size: u64, state: Option<&str>) -> Self {
        let rank = |rank| {
            let threads = Some([1, 8, 2][rank as usize % 3] + config.threads.unwrap_or(0));
            let loader = IndexLoader::new(input.clone(), IndexConfig { rank, world_size, threads, ..config.clone() });
            let loader = loader.unwrap();
            state.into_iter().for_each(|state| loader.restore(state).unwrap());
            loader
        };
        Run((0..world_size).map(rank).collect())
    }

    /// The next batch of all ranks together, its rows in their order.
    fn next(&self) -> Option<Together> {
        let (mut ranks, mut shown) = (Vec::new(), 0);
        for loader in &self.0 {
            let batch = match loader.next("", Some(PATIENCE)).unwrap() {
                Next::Batch(batch) => batch,
                Next::End => continue,
                Next::Pending => panic!("no batch within {PATIENCE:?}"),
            };
            let all = batch.columns[0].shape()[0];
            let row = |i: usize| {
                let parts = batch.columns.iter().map(|column| {
                    let row = column.bytes().len() / all;
                    &column.bytes()[i * row..][..row]
                });
                parts.collect::<Vec<&[u8]>>().concat()
            };
            shown += all;
            ranks.push((0..batch.rows).map(row).collect::<Vec<_>>());
        }
        assert!(ranks.is_empty() || ranks.len() == self.0.len(), "all ranks end together");
        let rows: usize = ranks.iter().map(Vec::len).sum();
        let world = ranks.len();
        (world > 0).then(|| ((0..rows).map(|g| ranks[g % world][g / world].clone()).collect(), shown))
    }

    /// The state, which is that of every rank.
    fn state(&self) -> String {
        let states: Vec<String> = self.0.iter().map(|rank| rank.state().unwrap()).collect();
        assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
        states[0].clone()
    }
}

/// Takes the state after every batch, and continues from each with other threads and as many ranks as `worlds` has in turn.
pub(crate) fn check_every_batch(what: &str, input: &IndexInput, config: &IndexConfig, worlds: &[u64]) {
    let running = Run::of(input, config, *worlds.last().unwrap(), None);
    let mut states = vec![running.state()];
    let mut expected: Vec<Together> = Vec::new();
    while let Some(batch) = running.next() {
        expected.push(batch);
        states.push(running.state());
    }
    let epochs = config.epochs.unwrap();
    assert!(epochs > 1 && expected.len() as u64 > 2 * epochs, "{what}: too few batches: {}", expected.len());
    for (after, state) in states.iter().enumerate() {
        let world = worlds[after % worlds.len()];
        let again = IndexConfig { seed: None, threads: Some([3, 1, 5][after % 3]), ..config.clone() };
        let again = Run::of(input, &again, world, Some(state));
        assert_eq!(again.state(), *state, "a state of a state");
        for (number, batch) in expected.iter().enumerate().skip(after).take(FOLLOWED) {
            assert!(again.next().as_ref() == Some(batch), "{what}: batch {number} after {after}, {world} ranks");
        }
        if after + FOLLOWED > expected.len() {
            assert!(again.next().is_none(), "{what}: it ends where the other did");
        }
    }
}
