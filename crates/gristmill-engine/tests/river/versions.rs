//! A file seen twice under one name and size, away for a while, or under another name: a run that resumes from its
//! state or journal, live or held, gives the batches that it gave.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Missing};
use gristmill_generate::ChessOptions;

use super::games::{generate, hash, hashes, loader, next, of_pool, options, preset};

/// A folder with six games and a tar of ten, and what is written beside it.
struct Place {
    games: tempfile::TempDir,
    notes: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let games = tempfile::tempdir().unwrap();
        generate(options(games.path(), 6));
        generate(ChessOptions { first: 101, games_per_tar: Some(10), ..options(games.path(), 10) });
        Place { games, notes: tempfile::tempdir().unwrap() }
    }

    fn run(&self, held: bool) -> Lc0Preset {
        let spill = held.then(|| self.notes.path().join("spill"));
        let journal = Some(self.notes.path().join("journal"));
        Lc0Preset { watch: Some(true), reservoir: Some(60), spill, journal, ..preset(self.games.path()) }
    }

    fn tar(&self) -> PathBuf {
        let mut names = fs::read_dir(self.games.path()).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.extension().is_some_and(|e| e == "tar")).unwrap()
    }

    fn game(&self, name: &str) -> PathBuf {
        self.games.path().join(name)
    }
}

/// Writes a file again as it is: another file with another time under the same name.
fn again(path: &Path) {
    let new = path.with_file_name(".again");
    fs::write(&new, fs::read(path).unwrap()).unwrap();
    fs::rename(&new, path).unwrap();
}

/// Takes batches until the window has seen that many chunks.
fn until(loader: &DataLoader, total: u64, seen: &mut Vec<u64>) {
    let start = Instant::now();
    while of_pool(loader, "chunks_total") < total {
        assert!(start.elapsed() < Duration::from_secs(60), "{total} chunks: {:#?}", loader.metrics());
        seen.push(hash(&next(loader, "").unwrap()));
    }
}

fn from(run: &Lc0Preset, state: &str) -> DataLoader {
    let loader = loader(run);
    loader.restore(state).unwrap();
    loader
}

#[test]
fn a_tar_that_is_written_again_as_it_was_is_told_from_itself() {
    for held in [false, true] {
        let place = Place::new();
        let run = place.run(held);
        let original = loader(&run);
        let mut seen = hashes(&original, "", 3);
        let mut states = vec![(seen.len(), original.state().unwrap())];
        again(&place.tar());
        until(&original, 26, &mut seen);
        for _ in 0..3 {
            states.push((seen.len(), original.state().unwrap()));
            seen.extend(hashes(&original, "", 12));
        }
        seen.extend(hashes(&original, "", 60));
        original.stop();
        for (at, state) in states {
            let restored = from(&run, &state);
            assert_eq!(hashes(&restored, "", seen.len() - at), seen[at..], "from batch {at}, held: {held}");
        }
        let begun = loader(&run);
        assert_eq!(hashes(&begun, "", seen.len()), seen, "by the journal alone, held: {held}");
        begun.stop();
        let replay = loader(&Lc0Preset { replay: true, ..run.clone() });
        assert_eq!(hashes(&replay, "", seen.len()), seen, "replayed, held: {held}");
    }
}

#[test]
fn a_game_that_was_read_and_is_written_again_as_it_was_is_the_same() {
    let place = Place::new();
    let run = place.run(false);
    let plain = hashes(&loader(&Lc0Preset { journal: None, ..run.clone() }), "", 160);
    let original = loader(&run);
    // All games have been drawn by now.
    assert_eq!(hashes(&original, "", 60), plain[..60]);
    (1..7).for_each(|game| again(&place.game(&format!("training.{game}.gz"))));
    let state = original.state().unwrap();
    assert_eq!(hashes(&original, "", 40), plain[60..100]);
    generate(ChessOptions { first: 1001, ..options(place.games.path(), 1) });
    let mut seen = Vec::new();
    // What was noticed first would have been counted first.
    until(&original, 17, &mut seen);
    assert_eq!(of_pool(&original, "chunks_current"), 17);
    seen.extend(hashes(&original, "", 60));
    original.stop();
    let restored = from(&run, &state);
    assert_eq!(hashes(&restored, "", 40), plain[60..100]);
    assert_eq!(hashes(&restored, "", seen.len()), seen);
}

#[test]
fn a_file_that_is_away_during_a_restart_and_back_is_told_from_itself() {
    let place = Place::new();
    let run = place.run(true);
    let original = loader(&run);
    hashes(&original, "", 5);
    let state = original.state().unwrap();
    hashes(&original, "", 20);
    original.stop();
    let (tar, away) = (place.tar(), place.notes.path().join("away"));
    fs::rename(&tar, &away).unwrap();
    let second = from(&run, &state);
    let mut seen = hashes(&second, "", 40);
    fs::rename(&away, &tar).unwrap();
    until(&second, 26, &mut seen);
    let later = (seen.len(), second.state().unwrap());
    seen.extend(hashes(&second, "", 60));
    second.stop();
    for away_again in [false, true] {
        if away_again {
            fs::rename(&tar, &away).unwrap();
        }
        for (at, state) in [(0, &state), (later.0, &later.1)] {
            let third = from(&run, state);
            assert_eq!(hashes(&third, "", seen.len() - at), seen[at..], "from batch {at}, away: {away_again}");
        }
    }
}

#[test]
fn a_game_that_was_written_over_with_as_many_bytes_is_refused_by_name() {
    let place = Place::new();
    let run = Lc0Preset { journal: None, ..place.run(false) };
    let original = loader(&run);
    hashes(&original, "", 60);
    let state = original.state().unwrap();
    original.stop();
    let path = place.game("training.3.gz");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(place.game(".new"), bytes).unwrap();
    fs::rename(place.game(".new"), &path).unwrap();
    let error = from(&run, &state).start().unwrap_err().to_string();
    assert!(error.contains("`training.3.gz` was written over with as many bytes"), "{error}");
}

#[test]
fn a_second_name_of_a_needed_file_stops_nothing() {
    type Change = fn(&Place);
    let changes: [(&str, Change); 6] = [
        ("a copy", |place| {
            fs::create_dir(place.game("0")).unwrap();
            fs::copy(place.game("training.3.gz"), place.game("0/training.3.gz")).unwrap();
            fs::copy(place.tar(), place.game("0").join(place.tar().file_name().unwrap())).unwrap();
        }),
        ("a hard link", |place| fs::hard_link(place.game("training.3.gz"), place.game("0.gz")).unwrap()),
        ("a symbolic link", |place| symlink("training.3.gz", place.game("0.gz")).unwrap()),
        ("another folder", |place| {
            fs::create_dir(place.game("z")).unwrap();
            fs::rename(place.game("training.3.gz"), place.game("z/training.3.gz")).unwrap();
            fs::rename(place.tar(), place.game("z").join(place.tar().file_name().unwrap())).unwrap();
        }),
        ("another name", |place| fs::rename(place.game("training.3.gz"), place.game("other.gz")).unwrap()),
        ("a copy under another name", |place| {
            fs::copy(place.game("training.3.gz"), place.game("other.gz")).unwrap();
            fs::remove_file(place.game("training.3.gz")).unwrap();
        }),
    ];
    for (what, change) in changes {
        let place = Place::new();
        let run = place.run(false);
        let original = loader(&run);
        let mut seen = hashes(&original, "", 60);
        let state = original.state().unwrap();
        seen.extend(hashes(&original, "", 60));
        original.stop();
        change(&place);
        let restored = from(&run, &state);
        assert_eq!(hashes(&restored, "", 60), seen[60..], "{what}");
        assert_eq!(of_pool(&restored, "chunks_total"), 16, "{what}");
        restored.stop();
        assert_eq!(hashes(&loader(&run), "", 120), seen, "{what}, by the journal alone");
    }
}

#[test]
fn what_is_held_is_found_again_whatever_its_name_became() {
    let place = Place::new();
    let run = place.run(true);
    let original = loader(&run);
    next(&original, "");
    let id = (0..7).find(|id| original.source_path(*id).unwrap() == "training.3.gz").unwrap();
    fs::rename(place.game("training.3.gz"), place.game("moved.gz")).unwrap();
    while original.source_path(id).unwrap() != "moved.gz" {
        next(&original, "");
    }
    hashes(&original, "", 60);
    let state = place.notes.path().join("state");
    original.save(&state).unwrap();
    let rest = hashes(&original, "", 60);
    original.stop();
    fs::remove_file(place.game("moved.gz")).unwrap();
    let restored = loader(&run);
    restored.load(&state, Missing::Spill).unwrap();
    assert_eq!(hashes(&restored, "", 60), rest);
    restored.save(&state).unwrap();
    restored.save(&state).unwrap();
    restored.stop();
    let once_more = loader(&run);
    once_more.load(&state, Missing::Spill).unwrap();
    next(&once_more, "");
}

/// A link shares its bytes with the first name: one that is written to in place is no longer what was held.
#[test]
fn a_held_file_that_grew_is_refused_with_both_sizes() {
    let place = Place::new();
    let run = Lc0Preset { journal: None, ..place.run(true) };
    let original = loader(&run);
    hashes(&original, "", 10);
    let state = original.state().unwrap();
    original.stop();
    let path = place.game("training.3.gz");
    let mut bytes = fs::read(&path).unwrap();
    let was = bytes.len();
    bytes.extend([0; 7]);
    fs::write(&path, &bytes).unwrap();
    let error = from(&run, &state).start().unwrap_err().to_string();
    assert!(error.contains(&format!("`training.3.gz` has {} bytes, it had {was}", was + 7)), "{error}");
}

#[test]
fn a_file_of_another_size_and_the_same_time_is_another() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = notes.path().join("state");
    generate(options(folder.path(), 6));
    let original = loader(&preset(folder.path()));
    next(&original, "");
    original.save(&state).unwrap();
    original.stop();
    let path = folder.path().join("training.3.gz");
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let was = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&was[..], &[0; 7]].concat()).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let restored = loader(&preset(folder.path()));
    let refused = restored.load(&state, Missing::Refuse).and_then(|()| restored.start());
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(&format!("`training.3.gz` has {} bytes, it had {}", was.len() + 7, was.len())), "{error}");
}
