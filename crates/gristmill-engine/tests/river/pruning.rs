//! Games that come and leave the disk for long: neither the state nor the loader remembers those that nobody can reach.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, merge_states};

use super::games::{generate, hashes, loader, next, of_pool, options, preset};

/// Games of the window.
const POOL: u64 = 20;

/// Games that come at a time.
const FEW: u64 = 30;

fn live(folder: &Path, journal: Option<PathBuf>) -> Lc0Preset {
    Lc0Preset { watch: Some(true), pool: POOL, journal, ..preset(folder) }
}

fn name(game: u64) -> String {
    format!("training.{game}.gz")
}

/// Ids and names of the files that a state remembers.
fn files(state: &str) -> Vec<(u64, String)> {
    let state: serde_json::Value = serde_json::from_str(state).unwrap();
    let one = |file: &serde_json::Value| (file["id"].as_u64().unwrap(), file["name"].as_str().unwrap().to_owned());
    state["files"]["load"].as_array().unwrap().iter().map(one).collect()
}

/// A state that remembers at most this number of files; waits for the loader to have seen what left.
fn small(loader: &DataLoader, most: usize) -> String {
    let start = Instant::now();
    loop {
        let state = loader.state().unwrap();
        if files(&state).len() <= most {
            return state;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{} files", files(&state).len());
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct Games {
    all: tempfile::TempDir,
    live: tempfile::TempDir,
    come: u64,
}

impl Games {
    fn new(games: u64) -> Self {
        let [all, live] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        generate(options(all.path(), games));
        Games { all, live, come: 0 }
    }

    fn come(&mut self, games: u64) {
        for game in self.come + 1..=self.come + games {
            std::fs::hard_link(self.all.path().join(name(game)), self.live.path().join(name(game))).unwrap();
        }
        self.come += games;
    }

    /// All but the newest leave the disk.
    fn leave(&self, but: u64) {
        for game in 1..=self.come - but {
            let _ = std::fs::remove_file(self.live.path().join(name(game)));
        }
    }
}

/// Takes batches until this number of chunks was in the window, and a pass more, so that no copy of the draws has older ones.
fn take_until(loader: &DataLoader, chunks: u64) {
    while of_pool(loader, "chunks_total") < chunks {
        next(loader, "");
    }
    (0..700).for_each(|_| _ = next(loader, ""));
}

#[test]
fn what_left_the_disk_and_every_window_is_forgotten_and_runs_resume_exactly() {
    let notes = tempfile::tempdir().unwrap();
    let mut games = Games::new(POOL + 5 * FEW);
    games.come(POOL);
    let run = live(games.live.path(), Some(notes.path().join("journal")));
    let original = loader(&run);
    next(&original, "");
    let mut sizes = Vec::new();
    for _ in 0..4 {
        games.come(FEW);
        take_until(&original, games.come);
        games.leave(POOL);
        let state = small(&original, POOL as usize + 2);
        sizes.push(state.len());
    }
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!(most - least < 2000, "the state does not grow: {sizes:?}");

    // What is new stays apart from what was: the next game has an id of its own, in a run that resumes, too.
    let state = original.state().unwrap();
    let last = files(&state).into_iter().map(|(id, _)| id).max().unwrap();
    assert_eq!(last, games.come - 1, "ids are never given twice");
    games.come(FEW);
    let mut since = Vec::new();
    while of_pool(&original, "chunks_total") < games.come {
        since.extend(hashes(&original, "", 1));
    }
    since.extend(hashes(&original, "", 700));
    let after = original.state().unwrap();
    let behind = hashes(&original, "", 40);
    original.stop();
    // With the journal, arrivals after the earlier state happen again at their own draws.
    for (journal, from, expected) in [(true, &state, &since), (true, &after, &behind), (false, &after, &behind)] {
        let journal = journal.then(|| notes.path().join("journal"));
        let resumed = loader(&Lc0Preset { journal, ..run.clone() });
        resumed.restore(from).unwrap();
        assert_eq!(&hashes(&resumed, "", expected.len()), expected);
        small(&resumed, (POOL + FEW) as usize + 2);
        resumed.stop();
    }
}

/// A rank that forgot a file would take it in once more where the parts of all ranks are put together.
#[test]
fn ranks_forget_nothing() {
    let mut games = Games::new(POOL + 2 * FEW);
    games.come(POOL);
    let run = live(games.live.path(), None);
    let shared = Lc0Preset { lanes: Some(2), ..run.clone() };
    let rank = |rank| loader(&Lc0Preset { rank: Some(rank), world_size: Some(2), ..shared.clone() });
    let (alone, ranks) = (loader(&run), [rank(0), rank(1)]);
    let step = || ranks.iter().for_each(|rank| _ = next(rank, ""));
    next(&alone, "");
    step();
    games.come(FEW);
    take_until(&alone, games.come);
    while ranks.iter().map(|rank| of_pool(rank, "chunks_total")).sum::<u64>() < games.come {
        step();
    }
    // A rank gives half of a batch: its draws go on half as fast.
    (0..2000).for_each(|_| step());
    // The newest games of one lane reach further back than those of all.
    let stay = POOL + FEW / 2;
    games.leave(stay);
    // By now the ranks have seen it leave, too.
    small(&alone, stay as usize + 2);
    let states = ranks.each_ref().map(|rank| rank.state().unwrap());
    for state in &states {
        assert_eq!(files(state).len() as u64, games.come, "each rank remembers all");
    }
    let expected = ranks.each_ref().map(|rank| hashes(rank, "", 30));
    let whole = merge_states(&states).unwrap();
    for (number, expected) in [0, 1].into_iter().zip(expected) {
        let resumed = rank(number);
        resumed.restore(&whole).unwrap();
        assert_eq!(hashes(&resumed, "", 30), expected);
    }
}

#[test]
fn what_is_on_disk_stays_known_and_what_comes_back_is_new() {
    let mut games = Games::new(POOL + 2 * FEW);
    games.come(POOL);
    let original = loader(&live(games.live.path(), None));
    next(&original, "");
    games.come(FEW);
    take_until(&original, games.come);
    let all = files(&original.state().unwrap()).len() as u64;
    assert_eq!(all, POOL + FEW, "nothing has left");
    // A run that resumes takes none of the old ones in again.
    let state = original.state().unwrap();
    let expected = hashes(&original, "", 30);
    let resumed = loader(&live(games.live.path(), None));
    resumed.restore(&state).unwrap();
    assert_eq!(hashes(&resumed, "", 30), expected);
    assert_eq!(of_pool(&resumed, "chunks_total"), games.come);
    resumed.stop();

    games.leave(POOL);
    small(&original, POOL as usize + 2);
    let back = games.live.path().join(name(1));
    std::fs::hard_link(games.all.path().join(name(1)), back).unwrap();
    while of_pool(&original, "chunks_total") < games.come + 1 {
        next(&original, "");
    }
    let state = original.state().unwrap();
    let id = files(&state).into_iter().find(|(_, file)| *file == name(1)).unwrap().0;
    assert_eq!(id, games.come, "a number of its own");
    let expected = hashes(&original, "", 30);
    let resumed = loader(&live(games.live.path(), None));
    resumed.restore(&state).unwrap();
    assert_eq!(hashes(&resumed, "", 30), expected);
}
