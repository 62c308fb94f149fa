//! Ranks that gave one number to different files: what each read and took in stays with its file, life after life.

use std::path::Path;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::runtime::journal::{Journal, Opening};
use gristmill_engine::{DataLoader, Missing};
use gristmill_generate::ChessOptions;

use super::games::{config, generate, hash, hashes, loader, next, of_pool, options, preset};

fn rank(folder: &Path, journal: &Path, rank: u32, replay: bool) -> DataLoader {
    let journal = Some(journal.to_owned());
    let options = Lc0Preset {
        watch: Some(true),
        pool: 60,
        reservoir: Some(40),
        seed: Some(4),
        journal,
        replay,
        ..preset(folder)
    };
    let (rank, world_size) = (Some(rank), Some(2));
    DataLoader::new(DataLoaderConfig { lanes: Some(2), rank, world_size, ..config(&options) }).unwrap()
}

fn admissions(journal: &Path) -> usize {
    std::fs::read_to_string(journal).unwrap().matches("\"admit\"").count()
}

fn link_all(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let _ = std::fs::hard_link(entry.path(), to.join(entry.file_name()));
    }
}

#[test]
fn what_ranks_read_of_files_of_one_number_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let journal = at("journal");
    let folders = [0, 1].map(|r| at(&format!("games-{r}")));
    folders.iter().for_each(|games| generate(options(games, 30)));
    let ranks = [0, 1].map(|r| rank(&folders[r as usize], &journal, r, false));
    let mut seen = ranks.each_ref().map(|rank| hashes(rank, "", 2));
    // Each finds others, and gives them the same numbers: the second has more of them.
    for (r, (rank, seen)) in ranks.iter().zip(&mut seen).enumerate() {
        let found = [3, 12][r];
        let new = at(&format!("new-{r}"));
        generate(ChessOptions { first: 100 + 100 * r as u64, ..options(&new, found) });
        link_all(&new, &folders[r]);
        while admissions(&at(&format!("journal.{r}-of-2"))) < found as usize {
            seen.push(hash(&next(rank, "").unwrap()));
        }
    }
    ranks.iter().for_each(|rank| drop(rank.stop()));
    let games = at("games-0");
    link_all(&at("games-1"), &games);
    for life in 2..4 {
        for (r, seen) in (0..2).zip(&mut seen) {
            let again = rank(&games, &journal, r, false);
            assert_eq!(hashes(&again, "", seen.len()), *seen, "rank {r} in life {life}");
            seen.extend(hashes(&again, "", 30));
            again.stop();
        }
    }
    // Where all times are others, what was read tells which file is which.
    let copies = at("copies");
    std::fs::create_dir(&copies).unwrap();
    for entry in std::fs::read_dir(&games).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), copies.join(entry.file_name())).unwrap();
    }
    for (r, seen) in (0..2).zip(&seen) {
        let again = rank(&copies, &journal, r, true);
        assert_eq!(hashes(&again, "", seen.len()), *seen, "rank {r} once more");
    }
}

#[test]
fn a_game_that_was_found_and_not_taken_in_before_a_kill_comes() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (journal, state) = (notes.path().join("journal"), notes.path().join("state"));
    let live = Lc0Preset { watch: Some(true), pool: 20, journal: Some(journal.clone()), ..preset(folder.path()) };
    generate(options(folder.path(), 12));
    let first = loader(&live);
    let seen = hashes(&first, "", 5);
    first.save(&state).unwrap();
    first.stop();
    // Who resumes with no journal, and finds a game, tells of it when it begins its own; and is killed at once.
    generate(ChessOptions { first: 50, ..options(folder.path(), 1) });
    let found = std::fs::metadata(folder.path().join("training.50.gz")).unwrap();
    let file = serde_json::json!({"id": 12, "name": "training.50.gz", "size": found.len()});
    let known = serde_json::json!({"known": {"loader": "load", "files": [file]}});
    Journal::opened(&journal, Opening::Again).unwrap().append(&[known]).unwrap();
    let takes = |again: DataLoader| {
        while next(&again, "").is_some() && of_pool(&again, "chunks_total") < 13 {}
        again.stop();
    };
    let again = loader(&live);
    again.load(&state, Missing::Refuse).unwrap();
    takes(again);
    let taken = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(taken.matches("training.50.gz").count(), 2, "noted once more, with its draw: {taken}");
    std::fs::remove_file(&state).unwrap();
    let again = loader(&live);
    assert_eq!(hashes(&again, "", 5), seen);
    takes(again);
}
