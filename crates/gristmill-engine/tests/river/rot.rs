//! Games that the side index knows and whose bytes change on the disk, under the same name, size and time: no row that is in no
//! game is ever fed, and the stream is the one that it is without a side index.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{Batch, DataLoader};
use gristmill_format::container::gzip;
use gristmill_format::container::tar::TarWriter;
use gristmill_generate::ChessOptions;
use xxhash_rust::xxh3::xxh3_64;

use super::games::{changed, config, decodes, generate, hash, loader, next, of_pool, options, preset};

/// A game of a few positions, as it is stored.
fn game(seed: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    generate(ChessOptions { seed, plies_max: 4, ..options(folder.path(), 1) });
    fs::read(folder.path().join("training.1.gz")).unwrap()
}

/// Writes over a file in place, and gives it the time of change that it had.
fn rot(path: &Path, bytes: &[u8]) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let mut file = File::options().write(true).open(path).unwrap();
    file.rewind().unwrap();
    file.write_all(bytes).unwrap();
    file.set_modified(time).unwrap();
}

/// A game as `length` bytes, by a comment in its header: so nothing but their bytes tells games apart.
fn long(game: &[u8], length: usize) -> Vec<u8> {
    let (header, rest) = game.split_at(10);
    let mut long = [header, &vec![b'-'; length - game.len() - 1], b"\0", rest].concat();
    long[3] |= 16;
    long
}

fn of(folder: &Path, index: &Path, games: u64) -> Lc0Preset {
    Lc0Preset { pool: games, index: Some(index.to_owned()), reservoir: Some(0), ..preset(folder) }
}

/// What each row of a batch is, wherever it came from.
fn rows(batch: &Batch) -> impl Iterator<Item = u64> {
    let row = |i: usize| {
        let told = batch.columns.iter().filter(|column| column.name() != "ids");
        let bytes = told.flat_map(|column| {
            let size = column.bytes().len() / batch.rows;
            column.bytes()[i * size..][..size].to_vec()
        });
        xxh3_64(&bytes.collect::<Vec<u8>>())
    };
    (0..batch.rows).map(row)
}

/// The rows of all the games of a folder.
fn true_rows(folder: &Path) -> BTreeSet<u64> {
    let loader = loader(&Lc0Preset { sampling_rate: Some(1.0), ..of(folder, Path::new("off"), 100) });
    (0..8).flat_map(|_| rows(&next(&loader, "").unwrap()).collect::<Vec<_>>()).collect()
}

/// Feeds at least `batches` batches, and until every game was drawn. Checks that each row is among the `truth`. Returns the hashes
/// of the batches, and the damaged chunks by kind.
fn passed(config: DataLoaderConfig, batches: usize, truth: &BTreeSet<u64>) -> (Vec<u64>, Vec<(String, u64)>) {
    let loader = DataLoader::new(config).unwrap();
    let mut found = Vec::new();
    while found.len() < batches || of_pool(&loader, "reshuffles") < 2 {
        let batch = next(&loader, "").unwrap();
        for (i, row) in rows(&batch).enumerate() {
            assert!(truth.contains(&row), "row {i} of batch {} is in no game", batch.number);
        }
        found.push(hash(&batch));
    }
    let bad = loader.metrics().bad_chunks;
    loader.stop();
    (found, bad.by_kind.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect())
}

/// Runs a configuration with a side index and without one: the same batches, no row that is in no game, the same damage.
fn alike(config: &dyn Fn(&Path) -> DataLoaderConfig, index: &Path, truth: &BTreeSet<u64>) -> Vec<(String, u64)> {
    let (with, damage) = passed(config(index), 12, truth);
    let (without, plain) = passed(config(Path::new("off")), 12, truth);
    let both = with.len().min(without.len());
    assert_eq!(with[..both], without[..both], "what the side index knows changes no batch");
    assert_eq!(damage, plain);
    damage
}

/// Every byte of one game, each flipped in a copy of its own: those copies as files, or as members of one tar.
fn flipped(tar: bool) {
    let sound = game(7);
    let (folder, index, one) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(one.path().join("training.1.gz"), &sound).unwrap();
    let truth = true_rows(one.path());
    let games = sound.len() as u64;
    let bad = |i: usize| {
        let mut bytes = sound.clone();
        bytes[i] ^= 1 << (i % 8);
        bytes
    };
    let file = |i: usize| folder.path().join(format!("training.{i}.gz"));
    let path = folder.path().join("games.tar");
    let whole = |of: &dyn Fn(usize) -> Vec<u8>| {
        let mut tar = TarWriter::new(Vec::new());
        (0..sound.len()).for_each(|i| _ = tar.append(&format!("d/training.{i}.gz"), &of(i)).unwrap());
        tar.finish().unwrap()
    };
    match tar {
        true => fs::write(&path, whole(&|_| sound.clone())).unwrap(),
        false => (0..sound.len()).for_each(|i| fs::write(file(i), &sound).unwrap()),
    }
    let learnt = passed(config(&of(folder.path(), index.path(), games)), 1, &truth);
    assert_eq!(learnt.1, [], "all were sound, and the side index has them");
    match tar {
        true => rot(&path, &whole(&bad)),
        false => (0..sound.len()).for_each(|i| rot(&file(i), &bad(i))),
    }
    // Uses that need one position, of which each other head is inflated, and uses that need more.
    for (count, rate) in [(Some(1), None), (Some(3), None), (None, Some(0.2))] {
        let of_index = |index: &Path| {
            changed(&of(folder.path(), index, games), |_, unpacker| {
                (unpacker.position_count, unpacker.position_sampling_rate) = (count, rate);
            })
        };
        let damage = alike(&of_index, index.path(), &truth);
        assert!(damage.iter().any(|(kind, count)| kind == "corrupt" && *count > games / 2), "{damage:?}");
    }
}

#[test]
fn no_byte_that_rots_in_a_file_feeds_a_row_that_is_in_no_game() {
    flipped(false);
}

#[test]
fn no_byte_that_rots_in_a_tar_feeds_a_row_that_is_in_no_game() {
    flipped(true);
}

#[test]
fn rot_is_named_and_a_game_that_took_the_place_of_another_is_fed() {
    let (folder, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |i: u64| -> PathBuf { folder.path().join(format!("training.{i}.gz")) };
    let games: Vec<Vec<u8>> = (0..5).map(|i| game(20 + i)).collect();
    let length = 2 + games.iter().map(Vec::len).max().unwrap();
    let games: Vec<Vec<u8>> = games.iter().map(|game| long(game, length)).collect();
    (0..4).zip(&games).for_each(|(i, game)| fs::write(path(i), game).unwrap());
    let mut truth = true_rows(folder.path());
    let learnt = passed(config(&of(folder.path(), index.path(), 4)), 40, &truth);
    assert_eq!(learnt.1, []);
    let mut bad = games[1].clone();
    bad[length / 2] ^= 8;
    rot(&path(1), &bad);
    rot(&path(2), &games[4]);
    truth.extend(true_rows(folder.path()));
    let of_index = |index: &Path| config(&of(folder.path(), index, 4));
    assert_eq!(alike(&of_index, index.path(), &truth), [("corrupt".to_owned(), 1)]);
    let loader = DataLoader::new(of_index(index.path())).unwrap();
    (0..4).for_each(|_| _ = next(&loader, ""));
    let bad = loader.metrics().bad_chunks.latest;
    assert!(bad[0].contains("training.1.gz") && bad[0].contains("it was damaged since"), "{bad:?}");
}

#[test]
fn a_side_index_without_sums_of_heads_is_used_and_completed() {
    let sound = game(7);
    let (folder, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (0..30).for_each(|i| fs::write(folder.path().join(format!("training.{i}.gz")), &sound).unwrap());
    let of_index = |index: &Path| config(&of(folder.path(), index, 30));
    let run = |index: &Path| {
        let loader = DataLoader::new(of_index(index)).unwrap();
        let batches: Vec<u64> = (0..30).map(|_| hash(&next(&loader, "").unwrap())).collect();
        let decoded = loader.metrics().of_kind("chunk_unpacker").next().unwrap().count("frames_decoded").unwrap().total;
        let chunks = decodes(&loader);
        loader.stop();
        (batches, decoded as f64 / chunks as f64)
    };
    let plain = run(Path::new("off"));
    let path = || fs::read_dir(index.path()).unwrap().next().unwrap().unwrap().path();
    run(index.path());
    // As an earlier version left it: records of version 1 alone.
    let bytes = fs::read(path()).unwrap();
    let mut older = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + 16 + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        if bytes[at + 16] == 1 {
            older.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    assert!(
        !older.is_empty() && older.len() < bytes.len(),
        "counts of frames and sums of heads are records of their own"
    );
    fs::write(path(), &older).unwrap();
    assert_eq!(run(index.path()).0, plain.0);
    let (batches, frames) = run(index.path());
    assert_eq!(batches, plain.0);
    assert!(frames < plain.1, "heads alone: {frames} frames a use, {} of whole games", plain.1);
}

#[test]
fn a_sound_game_of_several_members_is_read_whole() {
    let (folder, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut inside = Vec::new();
    gzip::Inflater::default().inflate(&game(7), 1 << 20, &mut inside).unwrap();
    let (a, b) = inside.split_at(inside.len() / 2);
    let two = [gzip::compress(6, a).unwrap(), gzip::compress(6, b).unwrap()].concat();
    (0..8).for_each(|i| fs::write(folder.path().join(format!("training.{i}.gz")), &two).unwrap());
    let truth = true_rows(folder.path());
    let of_index = |index: &Path| config(&of(folder.path(), index, 8));
    for _ in 0..2 {
        assert_eq!(alike(&of_index, index.path(), &truth), []);
    }
}
