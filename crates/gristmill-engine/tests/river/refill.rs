//! A restored reservoir is read while the stream runs: the same batches as ever, errors in the place of the first batch that needs
//! the row, and nothing read that no batch needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gristmill_engine::config::{DataLoaderConfig, IoErrors};
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::{DataLoader, Error, Next};
use gristmill_format::chess::record::V6_BYTES;
use gristmill_format::container::gzip;

use super::games::{config, generate, hash, hashes, ids, mixed, next, options, preset, varied};

/// Long enough for any batch on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number and hash of the batches up to an error or the end, and the error.
fn until_it_ends(loader: &DataLoader) -> (Vec<(u64, u64)>, Option<Error>) {
    let mut batches = Vec::new();
    loop {
        match loader.next("", Some(PATIENCE)) {
            Ok(Next::Batch(batch)) => batches.push((batch.number, hash(&batch))),
            Ok(Next::End) => return (batches, None),
            Ok(Next::Pending) => panic!("no batch within {PATIENCE:?}"),
            Err(error) => {
                assert!(matches!(loader.next("", Some(PATIENCE)), Ok(Next::End)), "the stream ends with {error}");
                return (batches, Some(error));
            }
        }
    }
}

/// A pass over games in files of their own, and its state in the midst: none of the games of its reservoir is drawn again.
struct Pass {
    folder: tempfile::TempDir,
    state: String,
    /// What follows the state: number, hash, and the games of the rows.
    rest: Vec<(u64, u64, Vec<PathBuf>)>,
    /// Games that the reservoir held and that no draw comes from any more, with the batches that need them.
    held: BTreeMap<PathBuf, Vec<u64>>,
}

impl Pass {
    fn options(folder: &Path, threads: usize) -> Lc0Preset {
        Lc0Preset {
            epochs: Some(1),
            reservoir: Some(150),
            sampling_rate: Some(0.5),
            batch_size: 8,
            threads: Some(threads),
            ..preset(folder)
        }
    }

    fn new() -> Pass {
        let folder = tempfile::tempdir().unwrap();
        generate(options(folder.path(), 40));
        let loader = DataLoader::new(config(&Self::options(folder.path(), 2))).unwrap();
        let mut drawn: Vec<PathBuf> = Vec::new();
        let (mut state, mut rest) = (String::new(), Vec::new());
        while let Some(batch) = next(&loader, "") {
            let path = |(source, ..): (u64, u64, u64)| folder.path().join(loader.source_path(source).unwrap());
            let games: Vec<PathBuf> = ids(&batch).into_iter().map(path).collect();
            match batch.number {
                0..3 => drawn.extend(games),
                _ => rest.push((batch.number, hash(&batch), games)),
            }
            if batch.number == 2 {
                state = loader.state().unwrap();
            }
        }
        // Each game is drawn once: rows of one that gave some before the state come from the reservoir after it, but for the one whose rows
        // were being taken.
        let mut held: BTreeMap<PathBuf, Vec<u64>> = BTreeMap::new();
        for (number, _, games) in &rest {
            for game in games.iter().filter(|game| drawn.contains(game)) {
                let batches = held.entry(game.clone()).or_default();
                batches.extend(Some(*number).filter(|number| !batches.contains(number)));
            }
        }
        assert!(held.len() > 3 && rest.len() > 20, "{} games, {} batches", held.len(), rest.len());
        Pass { folder, state, rest, held }
    }

    fn restored(&self, config: DataLoaderConfig) -> DataLoader {
        let loader = DataLoader::new(config).unwrap();
        loader.restore(&self.state).unwrap();
        loader
    }

    fn rest(&self, wanted: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        self.rest.iter().filter(|(number, ..)| wanted(*number)).map(|(number, hash, _)| (*number, *hash)).collect()
    }
}

/// Writes over the midst of a file, and leaves its size and time.
fn damage(path: &Path) {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let midst = bytes.len() / 2;
    bytes[midst..midst + 8].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(path, bytes).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_damaged_game_is_an_error_in_the_place_of_the_first_batch_that_needs_it() {
    let pass = Pass::new();
    let (last, batches) = pass.held.iter().max_by_key(|(_, batches)| batches[0]).unwrap();
    let sound = std::fs::read(last).unwrap();
    let modified = std::fs::metadata(last).unwrap().modified().unwrap();
    assert!(batches[0] > 4, "the reservoir keeps it for a while: {batches:?}");
    damage(last);
    for threads in [1, 2, 8] {
        for _ in 0..3 {
            let (came, error) = until_it_ends(&pass.restored(config(&Pass::options(pass.folder.path(), threads))));
            assert_eq!(came, pass.rest(|number| number < batches[0]), "{threads} threads");
            let error = error.unwrap().to_string();
            assert!(error.contains(last.file_name().unwrap().to_str().unwrap()), "{error}");
        }
    }
    // A run that ended there resumes there, and has all that was to come once the file is sound again.
    let broken = pass.restored(config(&Pass::options(pass.folder.path(), 2)));
    until_it_ends(&broken);
    let state = broken.state().unwrap();
    std::fs::write(last, sound).unwrap();
    std::fs::File::options().write(true).open(last).unwrap().set_modified(modified).unwrap();
    let again = DataLoader::new(config(&Pass::options(pass.folder.path(), 2))).unwrap();
    again.restore(&state).unwrap();
    assert_eq!(until_it_ends(&again).0, pass.rest(|number| number >= batches[0]));
}

/// Leaves one frame of a game, in a file of the same size and time.
fn shorten(path: &Path) {
    let (stored, modified) = (std::fs::read(path).unwrap(), std::fs::metadata(path).unwrap().modified().unwrap());
    let mut records = Vec::new();
    gzip::Inflater::default().inflate(&stored, 1 << 24, &mut records).unwrap();
    let short = gzip::compress(9, &records[..V6_BYTES]).unwrap();
    let (header, rest) = short.split_at(10);
    assert_eq!(header[3], 0, "a header without flags");
    // A field that readers pass over fills the rest.
    let spare = stored.len() - short.len() - 2;
    let mut bytes = header.to_vec();
    bytes[3] = 4;
    bytes.extend(u16::try_from(spare).unwrap().to_le_bytes());
    bytes.extend(vec![0; spare]);
    bytes.extend(rest);
    std::fs::write(path, bytes).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_game_that_lacks_a_frame_is_an_error_in_the_place_of_the_first_batch_that_needs_it() {
    let pass = Pass::new();
    let (game, batches) = pass.held.iter().max_by_key(|(_, batches)| batches.len()).unwrap();
    assert!(batches.len() > 2, "more than its first frame is held: {batches:?}");
    shorten(game);
    for threads in [1, 8] {
        let (came, error) = until_it_ends(&pass.restored(config(&Pass::options(pass.folder.path(), threads))));
        assert_eq!(came, pass.rest(|number| number < batches[0]), "{threads} threads");
        let error = error.unwrap().to_string();
        assert!(error.contains(game.file_name().unwrap().to_str().unwrap()) && error.contains("no frame"), "{error}");
    }
}

#[test]
fn of_several_damaged_games_the_first_row_decides() {
    let pass = Pass::new();
    pass.held.keys().for_each(|game| damage(game));
    let first = pass.held.values().map(|batches| batches[0]).min().unwrap();
    let mut said: Vec<String> = Vec::new();
    for threads in [1, 2, 8, 8, 8] {
        let (came, error) = until_it_ends(&pass.restored(config(&Pass::options(pass.folder.path(), threads))));
        assert_eq!(came, pass.rest(|number| number < first), "{threads} threads");
        said.push(error.unwrap().to_string());
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn a_row_that_is_left_out_is_no_error() {
    let pass = Pass::new();
    let (last, batches) = pass.held.iter().max_by_key(|(_, batches)| batches[0]).unwrap();
    damage(last);
    let skip = batches.iter().map(|number| format!("{number}..{}", number + 1).parse().unwrap()).collect();
    let left_out = DataLoaderConfig { skip, ..config(&Pass::options(pass.folder.path(), 2)) };
    let (came, error) = until_it_ends(&pass.restored(left_out));
    assert_eq!(came, pass.rest(|number| !batches.contains(&number)));
    assert!(error.is_none(), "{error:?}");
}

#[test]
fn all_rows_of_a_restored_reservoir_may_be_left_out() {
    let pass = Pass::new();
    let end = pass.rest.last().unwrap().0;
    let skip = vec![format!("3..{end}").parse().unwrap()];
    for threads in [1, 8] {
        let left_out = DataLoaderConfig { skip: skip.clone(), ..config(&Pass::options(pass.folder.path(), threads)) };
        assert_eq!(until_it_ends(&pass.restored(left_out)).0, pass.rest(|number| number == end));
    }
}

/// Two names change places, at once.
fn exchange(one: &Path, other: &Path) {
    rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, rustix::fs::RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn what_cannot_be_read_now_is_waited_for_where_a_batch_needs_it() {
    let pass = Pass::new();
    // Of those that are needed late, the one whose turn comes last where nobody waits.
    let late = pass.held.iter().filter(|(_, batches)| batches[0] > 5);
    let number = |path: &Path| path.to_str().unwrap().rsplit('.').nth(1).unwrap().parse::<u32>().unwrap();
    let (last, batches) = late.max_by_key(|(game, _)| number(game)).unwrap();
    let beside = pass.folder.path().join("beside");
    for (policy, threads) in [(IoErrors::Wait, 2), (IoErrors::Wait, 8), (IoErrors::Raise, 2)] {
        let options = Lc0Preset { io_errors: policy, ..Pass::options(pass.folder.path(), threads) };
        let loader = DataLoader::new(config(&options)).unwrap();
        loader.restore(&pass.state).unwrap();
        let before = pass.rest(|number| number < batches[0]);
        let mut came: Vec<(u64, u64)> =
            next(&loader, "").map(|batch| (batch.number, hash(&batch))).into_iter().collect();
        // The first scan found the file, and then a folder is in its place.
        std::fs::create_dir(&beside).unwrap();
        exchange(last, &beside);
        let refused = loop {
            match loader.next("", Some(Duration::from_millis(20))) {
                Ok(Next::Batch(batch)) => came.push((batch.number, hash(&batch))),
                Ok(Next::Pending) if came.len() == before.len() && loader.metrics().io_errors.waiting > 0 => {
                    break None;
                }
                Ok(Next::Pending) => {}
                Ok(Next::End) => break None,
                Err(error) => break Some(error),
            }
        };
        exchange(last, &beside);
        std::fs::remove_dir(&beside).unwrap();
        if came.len() > before.len() {
            // It was read before the folder was there.
            assert_eq!(came[..], pass.rest(|_| true)[..came.len()], "{policy:?}");
            continue;
        }
        assert_eq!(came, before, "{policy:?}, {threads} threads");
        assert_eq!(refused.is_some(), policy == IoErrors::Raise, "{refused:?}");
        if policy == IoErrors::Wait {
            assert_eq!(until_it_ends(&loader).0, pass.rest(|number| number >= batches[0]));
        }
    }
}

/// Restores after every batch, each time into a loader that has read hardly anything of what the one before held.
fn check_a_chain_of_restores(config: &DataLoaderConfig, alias: &str, batches: usize) {
    let loader = |threads| DataLoader::new(DataLoaderConfig { threads: Some(threads), ..config.clone() }).unwrap();
    let expected = hashes(&loader(2), alias, batches);
    let mut state = None;
    let mut came = Vec::new();
    for threads in [1, 2, 8].into_iter().cycle().take(expected.len()) {
        let restored = loader(threads);
        state.iter().for_each(|state: &String| restored.restore(state).unwrap());
        came.extend(hashes(&restored, alias, 1));
        let saved = restored.state().unwrap();
        assert!(restored.stop().is_empty(), "a stop ends a refill at once");
        state = Some(saved);
    }
    assert_eq!(came, expected);
}

#[test]
fn states_saved_while_it_is_read_are_those_of_a_run_that_was_never_restored() {
    let large = Lc0Preset { reservoir: Some(600), sampling_rate: Some(0.05), ..preset(mixed()) };
    check_a_chain_of_restores(&config(&large), "", 25);
    check_a_chain_of_restores(&DataLoaderConfig { lanes: Some(4), ..config(&large) }, "", 15);
    let other = tempfile::tempdir().unwrap();
    generate(options(other.path(), 5));
    let mut joined = large.clone();
    joined.directories.push(Weighted { directory: other.path().to_owned(), weight: 0.5 });
    check_a_chain_of_restores(&config(&joined), "", 15);
    let split = Lc0Preset { split: vec![("train".into(), 2), ("test".into(), 1)], ..large };
    check_a_chain_of_restores(&config(&split), "test", 15);
    let skip = vec!["4..9".parse().unwrap(), "11..12".parse().unwrap()];
    let whole = Lc0Preset { epochs: Some(2), reservoir: Some(300), ..preset(varied()) };
    check_a_chain_of_restores(&DataLoaderConfig { skip, ..config(&whole) }, "", 1000);
}

#[test]
fn all_of_it_is_read_while_nobody_takes_a_batch() {
    let large = Lc0Preset { reservoir: Some(600), sampling_rate: Some(0.05), ..preset(mixed()) };
    let original = DataLoader::new(config(&large)).unwrap();
    hashes(&original, "", 3);
    let restored = DataLoader::new(config(&large)).unwrap();
    restored.restore(&original.state().unwrap()).unwrap();
    hashes(&restored, "", 1);
    let began = Instant::now();
    let unread = || {
        let metrics = restored.metrics();
        metrics.of_kind("tensor_generator").next().unwrap().gauge("restored_chunks_unread").map(|gauge| gauge.value)
    };
    while unread().is_some() {
        assert!(began.elapsed() < PATIENCE, "{:#?}", restored.metrics());
        std::thread::yield_now();
    }
}
