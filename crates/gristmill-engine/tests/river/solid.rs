//! Files that are read whole, streamed: packed tars of games, packed shards and arrays of demonstrations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gristmill_engine::config::{BadChunks, DataLoaderConfig, EncoderConfig, MemorySize};
use gristmill_engine::pipeline::promise;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{Batch, DataLoader, Missing};
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::container::tar::TarWriter;
use gristmill_format::container::{gzip, zstd};
use gristmill_format::layout::{DType, Order, Scalar};
use gristmill_generate::ChessOptions;

use super::games::{changed, config, generate, hash, hashes, loader, next, of_pool, options, preset, single};
use super::resume::check_every_batch_of;

const MIB: u64 = 1 << 20;

/// Numbers of an observation.
const WIDE: usize = 1024;

/// Files of a folder, and the least bound that lets each of them in: it keeps two thirds of what they hold.
const FILES: i64 = 12;
const LEAST: u64 = 512 << 10;

/// An array as a member of a shard.
fn npy(scalar: Scalar, shape: &[u64], bytes: &[u8]) -> Vec<u8> {
    [Header::write(&DType::Scalar(scalar, Order::Little), shape, Spelling::NumPy).unwrap(), bytes.to_vec()].concat()
}

/// A plain shard of trajectories of these lengths, whose steps are numbered from `first` on.
pub(crate) fn shard(lengths: &[usize], first: i64) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    let mut step = 0;
    for length in lengths {
        for t in 0..*length {
            let number = first + step as i64;
            let mut member = |name: &str, bytes: &[u8]| tar.append(&format!("{step:06}.{name}.npy"), bytes).unwrap();
            member("acts", &npy(Scalar::I64, &[], &number.to_le_bytes()));
            member("dones", &npy(Scalar::Bool, &[], &[u8::from(t + 1 == *length)]));
            let obs: Vec<u8> = (0..WIDE).flat_map(|i| (number as f32 + i as f32).to_le_bytes()).collect();
            member("obs", &npy(Scalar::F32, &[WIDE as u64], &obs));
            step += 1;
        }
    }
    tar.finish().unwrap()
}

/// The same as an `.npz` of the imitation library.
pub(crate) fn arrays(lengths: &[usize], first: i64) -> Vec<u8> {
    let total: usize = lengths.iter().sum();
    let mut npz = NpzWriter::new(Vec::new(), 6);
    let mut array = |name: &str, scalar: Scalar, shape: &[u64], bytes: Vec<u8>| {
        let dtype = DType::Scalar(scalar, Order::Little);
        npz.array(name, &dtype, shape, &mut |to| Ok(to.write_all(&bytes)?)).unwrap();
    };
    let numbers = || first..first + total as i64;
    let mut obs = Vec::new();
    let mut at = first;
    for length in lengths {
        for t in 0..=*length as i64 {
            (0..WIDE).for_each(|i| obs.extend(((at + t) as f32 + i as f32).to_le_bytes()));
        }
        at += *length as i64;
    }
    array("obs", Scalar::F32, &[(total + lengths.len()) as u64, WIDE as u64], obs);
    array("acts", Scalar::I64, &[total as u64], numbers().flat_map(i64::to_le_bytes).collect());
    let ends = lengths.iter().scan(0i64, |sum, length| {
        *sum += *length as i64;
        Some(*sum)
    });
    let indices: Vec<u8> = ends.take(lengths.len() - 1).flat_map(i64::to_le_bytes).collect();
    array("indices", Scalar::I64, &[lengths.len() as u64 - 1], indices);
    array("terminal", Scalar::Bool, &[lengths.len() as u64], vec![1; lengths.len()]);
    npz.finish().unwrap()
}

/// Files of four forms, with ten trajectories and 50 steps each, which are numbered by file and step.
fn demonstrations(folder: &Path) {
    let lengths = [3, 9, 1, 5, 7, 2, 8, 6, 4, 5];
    for file in 0..FILES {
        let first = 1000 * file;
        let (name, bytes) = match file % 4 {
            0 => ("tar.zst", zstd::compress(1, &shard(&lengths, first)).unwrap()),
            1 => ("npz", arrays(&lengths, first)),
            2 => ("tar", shard(&lengths, first)),
            _ => ("tgz", gzip::compress(6, &shard(&lengths, first)).unwrap()),
        };
        fs::write(folder.join(format!("demos-{file}.{name}")), bytes).unwrap();
    }
}

/// A stream of demonstrations, whose files may have `most` bytes.
fn steps(folder: &Path, most: u64) -> Lc0Preset {
    Lc0Preset {
        encoder: EncoderConfig::Fields,
        tensors: ["obs:f32[1024]", "acts:i64"].map(String::from).to_vec(),
        max_solid_bytes: Some(MemorySize(most)),
        ..preset(folder)
    }
}

/// The numbers of the steps of a batch, each of which must have its own observation.
fn numbers(batch: &Batch) -> Vec<i64> {
    let column = |name: &str| batch.column(name).unwrap().bytes();
    let acts: Vec<i64> = column("acts").as_chunks().0.iter().map(|act| i64::from_le_bytes(*act)).collect();
    let obs = column("obs").as_chunks().0.iter().map(|obs| f32::from_le_bytes(*obs)).step_by(WIDE);
    assert!(acts.iter().zip(obs).take(batch.rows).all(|(act, obs)| obs == *act as f32), "a step of two");
    acts[..batch.rows].to_vec()
}

fn all_numbers(options: &Lc0Preset) -> Vec<i64> {
    let loader = loader(options);
    let mut all: Vec<i64> = std::iter::from_fn(|| next(&loader, "")).flat_map(|batch| numbers(&batch)).collect();
    assert_eq!(loader.metrics().bad_chunks.chunks, 0);
    all.sort_unstable();
    all
}

fn faults(loader: &DataLoader) -> Vec<String> {
    loader.metrics().stages.into_iter().flat_map(|stage| stage.faults).collect()
}

/// Twenty games in two tars, plain or packed.
fn games(folder: &Path, packed: bool) {
    generate(ChessOptions { games_per_tar: Some(10), ..options(folder, 20) });
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>() {
        if packed {
            let tar = fs::read(&path).unwrap();
            fs::write(path.with_extension("tar.zst"), zstd::compress(1, &tar).unwrap()).unwrap();
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn every_step_comes_once_in_a_pass_whatever_the_form_and_however_little_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let pass = Lc0Preset { epochs: Some(1), sampling_rate: None, ..steps(folder.path(), MIB) };
    let expected: Vec<i64> = (0..FILES).flat_map(|file| 1000 * file..1000 * file + 50).collect();
    assert_eq!(all_numbers(&pass), expected);
    let least = Lc0Preset { max_solid_bytes: Some(MemorySize(LEAST)), ..pass };
    assert_eq!(all_numbers(&least), expected);
}

#[test]
fn batches_do_not_depend_on_what_is_kept_and_go_on_after_every_batch() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let [much, little] = [8 * MIB, LEAST].map(|most| Lc0Preset { pool: 120, ..steps(folder.path(), most) });
    assert_eq!(hashes(&loader(&much), "", 60), hashes(&loader(&little), "", 60));
    check_every_batch_of(&config(&little), "", 20, 10);
    let lanes = Lc0Preset { lanes: Some(4), ..much };
    check_every_batch_of(&config(&lanes), "", 10, 8);
    let alone = loader(&lanes);
    let ranks = [0, 1].map(|rank| loader(&Lc0Preset { rank: Some(rank), world_size: Some(2), ..lanes.clone() }));
    for _ in 0..20 {
        let mut whole = numbers(&next(&alone, "").unwrap());
        let mut halves = ranks.each_ref().map(|rank| numbers(&next(rank, "").unwrap())).concat();
        whole.sort_unstable();
        halves.sort_unstable();
        assert_eq!(halves, whole);
    }
}

#[test]
fn packed_tars_give_the_games_of_plain_ones() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let batches = [false, true].map(|packed| {
        let folder = folders[usize::from(packed)].path();
        games(folder, packed);
        let options = Lc0Preset {
            sampling_rate: Some(1.0),
            reservoir: Some(0),
            max_solid_bytes: Some(MemorySize(MIB)),
            ..preset(folder)
        };
        hashes(&loader(&options), "", 60)
    });
    assert_eq!(batches[0], batches[1]);
    let folder = folders[1].path();
    let weighed = Lc0Preset { max_solid_bytes: Some(MemorySize(MIB)), ..single(folder) };
    let weighed = changed(&weighed, |pool, _| pool.hanse_sampling_threshold = Some(20));
    check_every_batch_of(&weighed, "", 12, 8);
    let hanse = DataLoader::new(weighed.clone()).unwrap();
    let expected = hashes(&hanse, "", 30);
    let index = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let loader = DataLoader::new(DataLoaderConfig { index: Some(index.path().into()), ..weighed.clone() }).unwrap();
        assert_eq!(hashes(&loader, "", 30), expected, "the side index changes nothing");
    }
}

#[test]
fn sides_of_a_split_share_the_files_and_no_step() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let pass = Lc0Preset {
        epochs: Some(1),
        sampling_rate: None,
        split: vec![("train".into(), 2), ("test".into(), 1)],
        ..steps(folder.path(), MIB)
    };
    let loader = loader(&pass);
    let mut all = Vec::new();
    for side in ["train", "test"] {
        let before = all.len();
        all.extend(std::iter::from_fn(|| next(&loader, side)).flat_map(|batch| numbers(&batch)));
        assert!(all.len() > before + 30, "{side}");
    }
    all.sort_unstable();
    assert_eq!(all, (0..FILES).flat_map(|file| 1000 * file..1000 * file + 50).collect::<Vec<_>>());
}

#[test]
fn bad_files_are_refused_by_name_and_the_others_flow() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    demonstrations(folder.path());
    let whole = fs::read(at("demos-0.tar.zst")).unwrap();
    fs::write(at("a-cut.tar.zst"), &whole[..whole.len() / 2]).unwrap();
    fs::write(at("b-empty.npz"), b"").unwrap();
    // A header of 2^40 bytes, and zeros that unpack to a hundred times the bound.
    let claim = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(1u64 << 40).to_le_bytes(), &[0; 20]].concat();
    fs::write(at("c-claim.tar.zst"), claim).unwrap();
    fs::write(at("d-bomb.tgz"), gzip::compress(6, &vec![0; 100 << 20]).unwrap()).unwrap();
    fs::write(at("e-large.pkl"), vec![7; (MIB + 1) as usize]).unwrap();
    fs::write(at("f-xz.tar.xz"), b"\xfd7zXZ\0").unwrap();
    fs::write(at("g-none.npz"), b"PK\x03\x04 no archive").unwrap();
    let pass = Lc0Preset { epochs: Some(1), sampling_rate: None, ..steps(folder.path(), MIB) };
    let loader = loader(&pass);
    let rows: usize = std::iter::from_fn(|| next(&loader, "")).map(|batch| batch.rows).sum();
    assert_eq!(rows, 600);
    let found = faults(&loader);
    for name in ["a-cut", "b-empty", "c-claim", "d-bomb", "e-large", "f-xz", "g-none"] {
        assert!(found.iter().any(|fault| fault.contains(name)), "{name}: {found:?}");
    }
    for name in ["d-bomb", "e-large"] {
        let told = found.iter().find(|fault| fault.contains(name)).unwrap();
        assert!(told.contains("max_solid_bytes") && told.contains("1048576"), "{told}");
    }
}

#[test]
fn without_a_bound_they_are_refused_and_none_is_read() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let loader = loader(&Lc0Preset { max_solid_bytes: None, ..steps(folder.path(), MIB) });
    let refused = loader.next("", None).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("max_solid_bytes = \"256MiB\"") && refused.contains("demos-"), "{refused}");
}

#[test]
fn a_bound_that_lets_no_file_in_is_what_the_error_says() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let loader = loader(&Lc0Preset { watch: Some(false), ..steps(folder.path(), 1 << 10) });
    let refused = loader.next("", None).map(|_| ()).unwrap_err().to_string();
    let says = |what: &str| assert!(refused.contains(what), "{what}: {refused}");
    ["nothing to stream in", "none of its files could be opened", "1024", "raise that"].into_iter().for_each(says);
    assert!(!refused.contains("games of chess in") && !refused.contains("PairLoader"), "{refused}");
}

#[test]
fn fields_are_declared_and_never_made_up() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let of = |tensors: &[&str]| {
        let tensors = tensors.iter().map(|name| (*name).to_owned()).collect();
        DataLoader::new(config(&Lc0Preset { tensors, ..steps(folder.path(), MIB) }))
    };
    for wrong in [&["obs"][..], &["obs:u9"], &["obs:f32[4"], &["obs:f32[-1]"], &[":f32"], &["acts:i64", "acts:i64"]] {
        let refused = of(wrong).unwrap_err().to_string();
        assert!(refused.contains("tensors"), "{refused}");
    }
    for (wrong, says) in [("rewards:f32", "`rewards`"), ("obs:f32[5]", "`obs`"), ("obs:f64[4]", "`obs`")] {
        let loader = of(&[wrong]).unwrap();
        let refused = loader.next("", None).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn a_trajectory_beyond_the_bound_is_quarantined_by_name() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let report = folder.path().join(".report");
    let pass = Lc0Preset {
        epochs: Some(1),
        sampling_rate: None,
        bad_chunks: BadChunks::Quarantine,
        quarantine: Some(report.clone()),
        ..steps(folder.path(), MIB)
    };
    let loader =
        DataLoader::new(DataLoaderConfig { max_chunk_bytes: Some(MemorySize(35_000)), ..config(&pass) }).unwrap();
    let rows: usize = std::iter::from_fn(|| next(&loader, "")).map(|batch| batch.rows).sum();
    let bad = loader.metrics().bad_chunks;
    assert!(rows > 0 && rows < 600 && bad.by_kind.get("too_large") == Some(&bad.chunks), "{rows} {bad:?}");
    let lines = fs::read_to_string(report).unwrap();
    assert_eq!(lines.lines().count() as u64, bad.quarantined);
    assert!((0..FILES).all(|file| lines.contains(&format!("demos-{file}."))), "{lines}");
}

/// One draw of one step, from a window of all trajectories.
fn endless(folder: &Path) -> Lc0Preset {
    Lc0Preset { pool: 120, reservoir: Some(0), watch: Some(true), ..steps(folder, LEAST) }
}

/// Takes batches until a step of this file came, or `batches` were taken.
fn comes(loader: &DataLoader, file: i64, batches: usize) -> bool {
    (0..batches).any(|_| numbers(&next(loader, "").unwrap()).iter().any(|number| number / 1000 == file))
}

#[test]
fn files_that_come_leave_and_are_replaced_behave_as_others_do() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let expected = hashes(&loader(&endless(folder.path())), "", 40);
    let running = loader(&endless(folder.path()));
    let mut seen = hashes(&running, "", 5);
    // What the window has outlives its name, although it is read again and again.
    fs::remove_file(folder.path().join("demos-0.tar.zst")).unwrap();
    seen.extend(hashes(&running, "", 35));
    assert_eq!(seen, expected);
    let put = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(".new"), bytes).unwrap();
        fs::rename(folder.path().join(".new"), folder.path().join(name)).unwrap();
    };
    put("demos-1.npz", &arrays(&[4; 10], 99_000));
    let before = of_pool(&running, "chunks_total");
    while of_pool(&running, "chunks_total") == before {
        next(&running, "");
    }
    assert!(comes(&running, 99, 400), "the new file comes");
    let batches = (0..100).flat_map(|_| numbers(&next(&running, "").unwrap())).collect::<Vec<_>>();
    assert!(batches.iter().all(|number| number / 1000 != 1), "the old one does not");
    assert_eq!(running.metrics().bad_chunks.chunks, 0);
}

#[test]
fn a_file_that_is_written_over_in_place_is_never_taken_for_itself() {
    let other = shard(&[5; 10], 99_000);
    for (name, bytes) in [("demos-4.tar.zst", zstd::compress(1, &other).unwrap()), ("demos-6.tar", other)] {
        let folder = tempfile::tempdir().unwrap();
        demonstrations(folder.path());
        let pass = Lc0Preset { watch: Some(false), ..endless(folder.path()) };
        let running = loader(&pass);
        next(&running, "");
        fs::write(folder.path().join(name), bytes).unwrap();
        assert!(!comes(&running, 99, 200), "{name}");
        let bad = running.metrics().bad_chunks;
        assert!(bad.latest.iter().any(|told| told.contains(name) && told.contains("written over")), "{bad:?}");
    }
}

#[test]
fn a_state_goes_on_from_files_that_are_held() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    demonstrations(folder.path());
    let (spill, state) = (notes.path().join("spill"), notes.path().join("state"));
    let held = Lc0Preset { spill: Some(spill), ..endless(folder.path()) };
    let original = loader(&held);
    hashes(&original, "", 6);
    original.save(&state).unwrap();
    for file in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let rest = hashes(&original, "", 30);
    original.stop();
    let restored = loader(&held);
    restored.load(&state, Missing::Spill).unwrap();
    assert_eq!(hashes(&restored, "", 30), rest);
}

#[test]
fn the_memory_promise_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let with = |most: Option<u64>| Lc0Preset { max_solid_bytes: most.map(MemorySize), ..preset(folder.path()) };
    let [none, some] = [None, Some(MIB)].map(|most| promise(&config(&with(most))).unwrap());
    assert_eq!(some - none, 10 * MIB);
    let bounded = |memory| DataLoaderConfig { memory: Some(MemorySize(memory)), ..config(&with(Some(MIB))) };
    DataLoader::new(bounded(some)).unwrap();
    let refused = DataLoader::new(bounded(some - 1)).unwrap_err().to_string();
    assert!(refused.contains("max_solid_bytes"), "{refused}");
}

#[test]
fn a_journal_replays_the_arrivals_of_solid_files() {
    let folder = tempfile::tempdir().unwrap();
    demonstrations(folder.path());
    let journal = folder.path().join(".journal");
    let run = Lc0Preset { journal: Some(journal), reservoir: Some(30), ..endless(folder.path()) };
    let original = loader(&run);
    let mut seen = hashes(&original, "", 4);
    let late = zstd::compress(1, &shard(&[6; 5], 77_000)).unwrap();
    fs::write(folder.path().join(".late"), late).unwrap();
    fs::rename(folder.path().join(".late"), folder.path().join("demos-77.tar.zst")).unwrap();
    let mut files = BTreeMap::new();
    while !files.contains_key(&77) {
        let batch = next(&original, "").unwrap();
        numbers(&batch).into_iter().for_each(|number| *files.entry(number / 1000).or_insert(0) += 1);
        seen.push(hash(&batch));
    }
    seen.extend(hashes(&original, "", 10));
    original.stop();
    let again = loader(&Lc0Preset { replay: true, threads: Some(8), ..run });
    assert_eq!(hashes(&again, "", seen.len()), seen);
}
