//! `values` through the public API: what lies beside the rows, what is refused, what verify finds, what merge carries.
//! On real rows.

use std::fs;
use std::path::Path;

use gristmill_engine::pack::manifest::RowFile;
use gristmill_engine::pack::metadata::{MetadataWriter, Run};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::pack::values::Made;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::value::{ValueOptions, ValueRow, value_layout};
use gristmill_format::g2048::{Board, Move, RowForm, StepRow};
use gristmill_format::layout::{DType, Layout, Scalar};
use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::pack::{Existing, PackOptions, pack};
use gristmill_jobs::values::{Valued, ValuesOptions, values};
use gristmill_jobs::verify::{Verification, VerifyOptions, verify};

use crate::drops::*;

fn made(options: &ValuesOptions) -> Valued {
    values(options, &mut |_, _| {}).unwrap()
}

fn refused(options: &ValuesOptions) -> String {
    values(options, &mut |_, _| {}).unwrap_err().to_string()
}

/// Values of a pack as they lie on the disk, with the names of their files.
fn stored(folder: &Path) -> (Vec<String>, Vec<ValueRow>) {
    let found = files(folder).into_iter().filter(|(name, _)| name.starts_with("values") && name.ends_with(".npy"));
    let mut rows = Vec::new();
    let names = found.map(|(name, bytes)| {
        let header = Header::read(&bytes[..]).unwrap();
        let values = bytes[header.data_offset() as usize..].as_chunks().0;
        assert_eq!(header.shape(), [values.len() as u64]);
        rows.extend(values.iter().map(ValueRow::from_bytes));
        name
    });
    (names.collect(), rows)
}

/// A pack of made-up rows: run id, step index, board, move.
fn write(folder: &Path, rows: &[(u32, u32, Board, Move)], shard_rows: &[usize]) {
    let mut rest = rows;
    for (i, n) in shard_rows.iter().enumerate() {
        let (now, later) = rest.split_at(*n);
        rest = later;
        let dtype = DType::Record((**RowForm::Aligned.layout()).clone());
        let mut bytes = Header::write(&dtype, &[*n as u64], Spelling::NumPy).unwrap();
        for (run_id, step_index, board, mv) in now {
            let packed = board.pack();
            let row = StepRow {
                run_id: *run_id,
                step_index: *step_index,
                board: packed.board,
                tile_65536_mask: packed.mask,
                move_dir: mv.index() as u8,
                ..StepRow::default()
            };
            bytes.extend(row.to_aligned());
        }
        let name = if shard_rows.len() == 1 { "steps.npy".to_owned() } else { format!("steps-{i:05}.npy") };
        put(folder, &name, &bytes);
    }
    let mut ids: Vec<u32> = rows.iter().map(|row| row.0).collect();
    ids.dedup();
    database(folder, ids.into_iter().map(|id| (id, rows.iter().filter(|row| row.0 == id).count() as u64)));
}

fn database(folder: &Path, runs: impl IntoIterator<Item = (u32, u64)>) {
    let _ = fs::remove_file(folder.join("metadata.db"));
    let mut metadata = MetadataWriter::open(folder.join("metadata.db")).unwrap();
    for (id, steps) in runs {
        let run = Run { id: id.into(), seed: Some(1), steps, max_score: 0, highest_tile: 4 };
        metadata.put_run(&run).unwrap();
    }
    metadata.finish().unwrap();
}

/// Rows of two runs whose rewards are 4, 8, 16 and 0.
fn worked() -> Vec<(u32, u32, Board, Move)> {
    let pair = |rank| Board::EMPTY.with(0, rank).with(1, rank);
    let step = |run, index, board| (run, index, board, Move::Left);
    vec![step(3, 0, pair(1)), step(3, 1, pair(2)), step(3, 2, pair(3)), step(7, 0, Board::EMPTY.with(3, 1))]
}

fn halved(pack: &Path) -> ValuesOptions {
    ValuesOptions { gamma: 0.5, reward_scale: 2.0, epsilon: 0.1, workers: 2, ..ValuesOptions::new(pack) }
}

fn found(path: &Path) -> Verification {
    verify(&VerifyOptions { workers: 2, ..VerifyOptions::new(vec![path.to_owned()]) }, &mut |_, _| {}).unwrap()
}

fn opened(folder: &Path) -> Selection {
    Selection::all(std::sync::Arc::new(RowPack::open(folder, Residence::Mapped).unwrap()))
}

/// The first four games that were really played, packed.
fn real(layout: RowForm, shard_rows: Option<u64>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    packed(&PackOptions { layout: Some(layout), shard_rows, ..options(&fixture(), folder.path()) });
    folder
}

/// Cases 14 and 15.
#[test]
fn rewards_and_returns_of_made_up_rows_are_as_published() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &worked(), &[4]);
    let done = made(&halved(folder.path()));
    assert_eq!((done.rows, done.runs, done.files, done.reward, done.highest), (4, 2, 1, 28.0, 4.723_105_4));
    let (names, rows) = stored(folder.path());
    let columns = |of: fn(&ValueRow) -> f32| rows.iter().map(of).collect::<Vec<_>>();
    assert_eq!(names, ["values.npy"]);
    assert_eq!(columns(|row| row.reward), [4.0, 8.0, 16.0, 0.0]);
    assert_eq!(columns(|row| row.reward_scaled), [8.0, 16.0, 32.0, 0.0]);
    assert_eq!(columns(|row| row.return_raw), [12.0, 16.0, 16.0, 0.0]);
    assert_eq!(columns(|row| row.return_scaled), [3.805_551_2, 4.723_105_4, 4.723_105_4, 0.0]);
    assert_eq!(
        rows.iter().map(|row| (row.run_id, row.step_index)).collect::<Vec<_>>(),
        [(3, 0), (3, 1), (3, 2), (7, 0)]
    );

    let tiles = |rank: u8| Board::EMPTY.with(0, rank).with(1, rank);
    let two = tiles(1).with(4, 2).with(5, 2);
    let big = [(0, 0, two, Move::Left), (0, 1, tiles(15), Move::Left), (0, 2, tiles(16), Move::Right)];
    write(folder.path(), &big, &[3]);
    made(&ValuesOptions { overwrite: true, ..halved(folder.path()) });
    let rewards: Vec<f32> = stored(folder.path()).1.iter().map(|row| row.reward).collect();
    assert_eq!(rewards, [12.0, 65536.0, 131_072.0]);
}

/// Case 16, and the same values whatever the shards, the form and the workers.
#[test]
fn shards_of_values_mirror_those_of_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..7).map(|i| (i / 4, i % 4, Board::EMPTY.with(0, 2).with(1, 2), Move::Left)).collect();
    write(folder.path(), &rows, &[2, 5]);
    assert_eq!(made(&halved(folder.path())).files, 2);
    let lengths = |folder: &Path| -> Vec<(String, u64)> {
        let files: Vec<RowFile> = Made::read(folder).unwrap().unwrap().files;
        files.into_iter().map(|file| (file.name, file.rows)).collect()
    };
    assert_eq!(stored(folder.path()).0, ["values-00000.npy", "values-00001.npy"]);
    assert_eq!(lengths(folder.path()), [("values-00000.npy".to_owned(), 2), ("values-00001.npy".to_owned(), 5)]);

    let whole = real(RowForm::Aligned, None);
    made(&ValuesOptions { workers: 1, ..ValuesOptions::new(whole.path()) });
    let (_, expected) = stored(whole.path());
    for (layout, shard_rows, workers) in [(RowForm::Packed, Some(100), 5), (RowForm::Aligned, Some(333), 2)] {
        let other = real(layout, shard_rows);
        let options = ValuesOptions { workers, ..ValuesOptions::new(other.path()) };
        let planned = made(&ValuesOptions { dry_run: true, ..options.clone() });
        assert!(planned.dry_run && stored(other.path()).0.is_empty());
        let done = made(&options);
        assert_eq!((done.rows, done.reward, planned.files), (planned.rows, planned.reward, done.files));
        let (names, rows) = stored(other.path());
        assert_eq!((names.len(), rows), (expected.len().div_ceil(shard_rows.unwrap() as usize), expected.clone()));
        assert!(found(other.path()).ok);
    }
}

/// What a move made is what the tiles are worth more after it; a tile that appears as 4 is worth 4 by itself.
#[test]
fn rewards_are_what_boards_gain() {
    let pack = real(RowForm::Aligned, None);
    made(&ValuesOptions::new(pack.path()));
    let (values, steps) = (stored(pack.path()).1, rows(pack.path()));
    let worth = |row: &StepRow| gristmill_format::g2048::moves::score(&row.decoded_board(), 0) as f32;
    let mut compared = 0;
    for ((step, next), value) in steps.iter().zip(&steps[1..]).zip(&values) {
        if step.run_id == next.run_id {
            let gained = worth(next) - worth(step);
            assert!(value.reward == gained || value.reward + 4.0 == gained, "{step:?}: {value:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, values.len() - 4);
}

/// Case 17: what the loader refuses.
#[test]
fn values_of_other_rows_are_refused_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let write_all = || {
        write(folder.path(), &worked(), &[2, 2]);
        made(&ValuesOptions { overwrite: true, ..halved(folder.path()) });
    };
    write_all();
    assert_eq!(opened(folder.path()).take_values(&[3, 0]).unwrap().len(), 48);
    let path = folder.path().join("values-00001.npy");
    let whole = fs::read(&path).unwrap();
    let header = Header::read(&whole[..]).unwrap().data_offset() as usize;
    let of =
        |shape: &[u64], layout: &Layout| Header::write(&DType::Record(layout.clone()), shape, Spelling::NumPy).unwrap();
    let other = Layout::packed(&[("run_id", Scalar::U32, &[]), ("step_index", Scalar::U32, &[])]).unwrap();
    let mut strange = whole.clone();
    strange[header] ^= 1;
    let mut late = whole.clone();
    late[header + 24 + 4] ^= 1;
    for (bytes, words) in [
        ([&of(&[1], value_layout())[..], &whole[header..header + 24]].concat(), "1 values for the 2 rows"),
        (whole[..whole.len() - 1].to_vec(), "truncated"),
        ([&of(&[2], &other)[..], &[0; 16]].concat(), "records of"),
        (strange, "value 0 is of step 2 of run 2, its row of step 2 of run 3"),
        (late, "value 1 is of step 1 of run 7, its row of step 0 of run 7"),
        (b"nonsense".to_vec(), "values-00001.npy"),
    ] {
        fs::write(&path, bytes).unwrap();
        let e = opened(folder.path()).take_values(&[0]).unwrap_err().to_string();
        assert!(e.contains("values-00001.npy") && e.contains(words), "{e}");
    }
    fs::remove_file(&path).unwrap();
    let e = opened(folder.path()).take_values(&[0]).unwrap_err().to_string();
    assert!(e.contains("values-00001.npy") && e.contains("no such file"), "{e}");
    fs::remove_file(folder.path().join("values-00000.npy")).unwrap();
    let e = opened(folder.path()).take_values(&[0]).unwrap_err().to_string();
    assert!(e.contains("no values.npy") && e.contains("gristmill values"), "{e}");
    write_all();
    fs::copy(&path, folder.path().join("values-00002.npy")).unwrap();
    let e = opened(folder.path()).take_values(&[0]).unwrap_err().to_string();
    assert!(e.contains("values-00002.npy") && e.contains("values without rows"), "{e}");
    write_all();
    database(folder.path(), [(3, 4), (7, 1)]);
    let e = opened(folder.path()).take_values(&[0]).unwrap_err().to_string();
    assert!(e.contains("`metadata.db` knows 5"), "{e}");
}

#[test]
fn rows_that_do_not_lie_as_the_database_says_get_no_values() {
    let folder = tempfile::tempdir().unwrap();
    let good = worked();
    let at = |i: usize, change: &dyn Fn(&mut (u32, u32, Board, Move))| {
        let mut rows = good.clone();
        change(&mut rows[i]);
        rows
    };
    let runs = [(3, 3), (7, 1)];
    for (rows, shards, runs, words) in [
        (good.clone(), &[4][..], &[(3, 3), (7, 2)][..], "5 steps, the files have 4 rows"),
        (good.clone(), &[4], &[(3, 2), (7, 2)], "run 7 has 2 steps, but 1 rows"),
        (good.clone(), &[4], &[(3, 3), (8, 1)], "row 3: a row of run 7"),
        (at(1, &|row| row.0 = 7), &[2, 2], &runs, "run 3 has 3 steps, but 1 rows"),
        (at(0, &|row| row.1 = 5), &[1, 3], &runs, "row 0: step_index 5 of run 3 is followed by 1"),
        (at(3, &|row| row.0 = 2), &[4], &[(2, 1), (3, 3)], "expected run 3"),
        (good.clone(), &[4, 0], &runs, "steps-00001.npy"),
    ] {
        for name in ["steps.npy", "steps-00000.npy", "steps-00001.npy"] {
            let _ = fs::remove_file(folder.path().join(name));
        }
        write(folder.path(), &rows, shards);
        database(folder.path(), runs.iter().copied());
        let before = files(folder.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let e = refused(&halved(folder.path()));
        assert!(e.contains(words), "{e}: {words}");
        assert_eq!(files(folder.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), before);
    }
    let no_move = tempfile::tempdir().unwrap();
    write(no_move.path(), &good, &[4]);
    let path = no_move.path().join("steps.npy");
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.len() - 2 * 48 + 22;
    bytes[place] = 255;
    fs::write(&path, bytes).unwrap();
    let e = refused(&halved(no_move.path()));
    assert!(e.contains("row 2: move 255") && e.contains(&format!("byte {place}")), "{e}");
}

#[test]
fn options_and_what_is_there_are_looked_at_first() {
    let pack = real(RowForm::Packed, Some(500));
    let plain = ValuesOptions::new(pack.path());
    for (options, words) in [
        (ValuesOptions { gamma: 1.01, ..plain.clone() }, "`gamma`: 1.01"),
        (ValuesOptions { epsilon: f64::NAN, ..plain.clone() }, "`epsilon`"),
        (ValuesOptions { reward_scale: -1.0, ..plain.clone() }, "`reward_scale`"),
        (ValuesOptions { workers: 0, ..plain.clone() }, "`workers`"),
        (ValuesOptions::new(pack.path().join("nowhere")), "nowhere"),
    ] {
        let e = refused(&options);
        assert!(e.contains(words), "{e}");
    }
    made(&plain);
    let before = files(pack.path());
    assert!(refused(&plain).contains("--overwrite"));
    assert_eq!(files(pack.path()), before);
    let other = tempfile::tempdir().unwrap();
    let out = other.path().join("deep/values");
    made(&ValuesOptions { output: Some(out.clone()), ..plain.clone() });
    assert_eq!(stored(&out), stored(pack.path()));
    let elsewhere = RowPack::open(pack.path(), Residence::Memory).unwrap().with_values_in(out);
    assert!(elsewhere.values().unwrap().is_some());
    made(&ValuesOptions { gamma: 0.5, overwrite: true, ..plain });
    assert_ne!(stored(pack.path()), stored(&other.path().join("deep/values")));
    let mut names: Vec<String> = before.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(files(pack.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), names, "nothing else is left");
}

#[test]
fn every_changed_value_is_found() {
    let pack = real(RowForm::Packed, Some(400));
    made(&ValuesOptions::new(pack.path()));
    let sound = found(pack.path());
    assert!(sound.ok && sound.checks["values"] == 0, "{:?}", sound.faults);
    let path = pack.path().join("values-00001.npy");
    let whole = fs::read(&path).unwrap();
    let header = Header::read(&whole[..]).unwrap().data_offset() as usize;
    for (field, name) in
        [(0, "of step"), (1, "of step"), (2, "reward "), (3, "reward_scaled"), (4, "return_raw"), (5, "return_scaled")]
    {
        let mut bytes = whole.clone();
        bytes[header + 24 * 17 + 4 * field] ^= 1;
        bytes[header + 24 * 30..][8..12].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let found = found(pack.path());
        assert_eq!((found.ok, found.checks["values"], found.fault_count), (false, 2, 2));
        let first = &found.faults[0];
        assert!(first.detail.contains(name) && found.faults[1].detail.contains("NaN"), "{:?}", found.faults);
        assert_eq!((first.frame, first.offset), (Some(17), Some((header + 24 * 17) as u64)));
        assert!(first.file.as_ref().unwrap().ends_with("values-00001.npy") && first.run.is_some());
    }
    let mut all = whole.clone();
    all[header..].fill(0xff);
    fs::write(&path, all).unwrap();
    let options = VerifyOptions { max_faults: 3, ..VerifyOptions::new(vec![pack.path().to_owned()]) };
    let most = verify(&options, &mut |_, _| {}).unwrap();
    let frames: Vec<_> = most.faults.iter().map(|fault| fault.frame).collect();
    assert_eq!((most.fault_count, frames), (400, vec![Some(0), Some(1), Some(2)]));
    for (bytes, words) in [(&whole[..whole.len() - 5], "truncated"), (&whole[..40], "values-00001.npy")] {
        fs::write(&path, bytes).unwrap();
        let found = found(pack.path());
        assert!(!found.ok && found.checks["values"] == 1, "{found:?}");
        let fault = &found.faults[0];
        assert!(format!("{fault:?}").contains(words), "{fault:?}");
    }
    // Values of another program: what does not depend on its numbers is still held to the rows.
    fs::write(&path, &whole).unwrap();
    fs::remove_file(pack.path().join("values.json")).unwrap();
    assert!(found(pack.path()).ok);
    let mut bytes = whole.clone();
    bytes[header + 24 * 3 + 8..][..4].copy_from_slice(&5.5f32.to_le_bytes());
    bytes[header + 24 * 4 + 20..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    assert_eq!(found(pack.path()).checks["values"], 2);
}

#[test]
fn games_that_are_added_leave_values_that_are_told_of() {
    let (drop, folder) = (drop_of(3), tempfile::tempdir().unwrap());
    packed(&options(drop.path(), folder.path()));
    made(&ValuesOptions::new(folder.path()));
    let append = PackOptions { existing: Existing::Append, ..options(drop.path(), folder.path()) };
    assert!(packed(&append).stale.is_empty(), "nothing was added");
    game(drop.path(), "later", &text(9));
    assert_eq!(packed(&append).stale, ["values.npy"]);
    let e = opened(folder.path()).take_values(&[0]).unwrap_err().to_string();
    assert!(e.contains("--overwrite"), "{e}");
    assert_eq!(found(folder.path()).checks["values"], 1);
    made(&ValuesOptions { overwrite: true, ..ValuesOptions::new(folder.path()) });
    assert_eq!(found(folder.path()).checks["values"], 0);
    let fresh = PackOptions { existing: Existing::Overwrite, ..options(drop.path(), folder.path()) };
    assert!(pack(&fresh, &mut |_| {}).unwrap().stale.is_empty());
    assert!(stored(folder.path()).0.is_empty(), "values of rows that are gone go with them");
}

#[test]
fn an_interrupted_pack_is_not_given_up_and_an_interrupted_job_is() {
    let pack = real(RowForm::Aligned, None);
    let staging = pack.path().join(".pack.part");
    put(&staging, "steps.npy", b"half a pack");
    assert!(refused(&ValuesOptions::new(pack.path())).contains("--resume"));
    assert!(staging.join("steps.npy").exists());
    fs::remove_file(staging.join("steps.npy")).unwrap();
    put(&staging, "values.npy", b"half of the values");
    made(&ValuesOptions::new(pack.path()));
    assert!(!staging.exists() && found(pack.path()).ok);
    // Killed while it put its files in place: readers of the pack say so, and the next call finishes it.
    let expected = files(pack.path());
    fs::create_dir(&staging).unwrap();
    fs::rename(pack.path().join("values.npy"), staging.join("values.npy")).unwrap();
    put(&staging, ".publish.json", br#"{"remove":[],"publish":["values.npy","values.json"]}"#);
    let e = RowPack::open(pack.path(), Residence::Mapped).unwrap_err().to_string();
    assert!(e.contains("interrupted"), "{e}");
    assert!(refused(&ValuesOptions::new(pack.path())).contains("--overwrite"));
    assert_eq!(files(pack.path()), expected);
    let stopped = ValuesOptions { overwrite: true, ..ValuesOptions::new(pack.path()) };
    stopped.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(refused(&stopped).contains("stopped"));
    assert_eq!(files(pack.path()), expected);
}

#[test]
fn merge_carries_what_all_packs_have() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    packed(&PackOptions { shard_rows: Some(300), ..options(&fixture(), &at("a")) });
    packed(&options(drop_of(4).path(), &at("b")));
    let vectors = |pack: &str, shard: &str, rows: usize, first: f32| {
        let scalar = DType::Scalar(Scalar::F32, gristmill_format::layout::Order::Little);
        let mut bytes = Header::write(&scalar, &[rows as u64, 2], Spelling::NumPy).unwrap();
        (0..rows).for_each(|i| bytes.extend([first, i as f32].map(f32::to_le_bytes).concat()));
        put(&at(pack), &format!("embeddings{shard}.npy"), &bytes);
    };
    let merged = |inputs: &[&str], output: &str, change: &dyn Fn(&mut MergeOptions)| {
        let inputs = inputs.iter().map(|name| at(name)).collect();
        let mut options = MergeOptions { workers: 2, overwrite: true, ..MergeOptions::new(inputs, at(output)) };
        change(&mut options);
        merge(&options, &mut |_, _| {})
    };
    let value = |pack: &str, gamma: f64| {
        made(&ValuesOptions { gamma, overwrite: true, ..ValuesOptions::new(at(pack)) });
    };
    value("a", 0.9);
    let done = merged(&["a", "b"], "ab", &|_| {}).unwrap();
    assert!(done.carried.is_empty() && done.lost.len() == 1 && done.lost[0].contains("/b has none"), "{:?}", done.lost);
    assert!(manifest(&at("ab")).remarks.iter().any(|remark| remark.file == "values"));
    value("b", 0.8);
    assert!(merged(&["a", "b"], "ab", &|_| {}).unwrap().lost[0].contains("other numbers"));
    value("b", 0.9);
    for (i, (name, rows)) in shard_rows(&at("a")).into_iter().enumerate() {
        vectors("a", name.trim_start_matches("steps").trim_end_matches(".npy"), rows, i as f32);
    }
    let b = rows(&at("b")).len();
    vectors("b", "", b, 100.0);
    let done = merged(&["a", "b"], "ab", &|options| options.shard_rows = Some(500)).unwrap();
    assert_eq!((done.carried, done.lost.len()), (vec!["values", "embeddings"], 0));
    let checks = found(&at("ab")).checks;
    assert_eq!((checks["values"], checks["hash"], checks["manifest"]), (0, 0, 0));
    assert_eq!(
        Made::read(&at("ab")).unwrap().unwrap().options(),
        ValueOptions { gamma: 0.9, ..ValueOptions::default() }
    );
    let (names, carried) = stored(&at("ab"));
    let carried_bytes: Vec<Vec<u8>> = names.iter().map(|name| fs::read(at("ab").join(name)).unwrap()).collect();
    value("ab", 0.9);
    assert_eq!(stored(&at("ab")), (names.clone(), carried.clone()), "the same as those made of the merged pack");
    assert_eq!(names.iter().map(|name| fs::read(at("ab").join(name)).unwrap()).collect::<Vec<_>>(), carried_bytes);
    let all = opened(&at("ab"));
    let places: Vec<u64> = (0..all.rows().len()).collect();
    let found: Vec<f32> =
        all.take_embeddings(&places).unwrap().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert_eq!(found.len(), 2 * carried.len());
    assert_eq!((found[2 * 300], found[2 * 300 + 1]), (1.0, 0.0));
    assert_eq!((found[found.len() - 2], found[found.len() - 1]), (100.0, (b - 1) as f32));

    let path = at("a").join("values-00000.npy");
    let mut bytes = fs::read(&path).unwrap();
    let row = Header::read(&bytes[..]).unwrap().data_offset() as usize + 24 * 77;
    bytes[row] ^= 1;
    fs::write(&path, bytes).unwrap();
    let e = merged(&["a", "b"], "x", &|_| {}).unwrap_err().to_string();
    assert!(e.contains("value 77") && e.contains("values-00000.npy"), "{e}");
    value("a", 0.9);
    fs::remove_file(at("b").join("embeddings.npy")).unwrap();
    let done = merged(&["a", "b"], "last", &|options| options.delete_inputs = true).unwrap();
    assert_eq!((done.carried, done.lost.len()), (vec!["values"], 1));
    assert!(!at("b").exists() && !done.left.is_empty());
    assert!(
        done.left.iter().all(|path| path.contains("/a/embeddings-")),
        "what was not carried stays: {:?}",
        done.left
    );
}

/// Names of the files of rows, and how many each has.
fn shard_rows(pack: &Path) -> Vec<(String, usize)> {
    manifest(pack).files.into_iter().map(|file| (file.name, file.rows as usize)).collect()
}
