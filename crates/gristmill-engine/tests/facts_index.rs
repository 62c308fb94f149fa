//! The side index: a restart walks no tar again, whatever happened to the file in between.
#![allow(clippy::unwrap_used, reason = "a test may fail, and says what it skips")]

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::games::tar;
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::facts::Facts;
use gristmill_engine::kinds::chess::columns::WEIGHER;
use gristmill_engine::stage::discover::Search;
use gristmill_engine::stage::load::{LogSpec, Source, SourceLog};
use gristmill_engine::store::{FileStat, MemoryStore, Store};
use gristmill_format::chess::{DiffFocus, Version};
use gristmill_format::weigh::Weigher;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs as job;
use gristmill_jobs::pack::PackOptions;

/// Scans the store and opens everything, as a fresh process would; returns the sources and the reads it took.
pub(crate) fn restart(store: &Arc<MemoryStore>, facts: Option<&Arc<Facts>>) -> (Vec<Arc<Source>>, u64) {
    let search = Search {
        store: store.clone(),
        watch: false,
        rescan: Duration::from_secs(1),
        expected: Default::default(),
        waits: true,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let spec = LogSpec {
        store: store.clone(),
        find: search.ready(),
        provider: 0,
        version: None,
        fits: |_| Ok(()),
        facts: facts.cloned(),
        solids: None,
        waits: false,
    };
    let before = store.reads();
    let log = SourceLog::start(spec, &|_, mut rounds| while rounds().is_some() {}, Arc::new(|| ()));
    let sources = log.initial().unwrap().iter().map(|e| log.open(e.id).unwrap()).collect();
    (sources, store.reads() - before)
}

fn stat(name: &str, size: u64) -> FileStat {
    FileStat { name: name.into(), size, mtime_ns: 5, device: 1, inode: 9 }
}

fn tars() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    store.write("hour.1.tar", tar(&[1, 2, 3]));
    store.write("hour.2.tar", tar(&[4]));
    store
}

fn open(folder: &Path) -> Arc<Facts> {
    Arc::new(Facts::open(folder, folder).unwrap())
}

#[test]
fn a_restart_walks_no_tar_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = tars();
    let (first, reads) = restart(&store, Some(&open(folder.path())));
    assert!(reads > 0);
    let (second, reads) = restart(&store, Some(&open(folder.path())));
    assert_eq!(reads, 0);
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a.len(), b.len());
        for i in 0..a.len() {
            assert_eq!(a.chunks.locate(i), b.chunks.locate(i));
        }
    }
    let (_, reads) = restart(&store, None);
    assert!(reads > 0, "facts that are off are off");

    store.write("hour.2.tar", tar(&[4, 5]));
    let (third, reads) = restart(&store, Some(&open(folder.path())));
    assert!(reads > 0, "a changed tar is walked again");
    assert_eq!(third[1].len(), 2);
    let (_, reads) = restart(&store, Some(&open(folder.path())));
    assert_eq!(reads, 0, "and noted again");
}

#[test]
fn what_games_of_a_pack_weigh_is_read_once_and_no_game_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (drop, pack) = (folder.path().join("drop"), folder.path().join("pack"));
    let chess = ChessOptions {
        folder: drop.clone(),
        games: 5,
        first: 1,
        seed: 3,
        plies_max: 30,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(chess).unwrap();
    while generator.write_next().unwrap().is_some() {}
    job::pack::pack(&PackOptions::new(&drop, &pack), &mut |_| {}).unwrap();
    let store = Arc::new(MemoryStore::new());
    for entry in fs::read_dir(&pack).unwrap() {
        let path = entry.unwrap().path();
        store.write(path.file_name().unwrap().to_str().unwrap(), fs::read(&path).unwrap());
    }
    let expected = Games::open(&pack.join("metadata.db")).unwrap().column("weight").unwrap();
    let source = restart(&store, None).0.remove(0);
    let before = store.reads();
    for _ in 0..3 {
        let weights: Vec<f64> = (0..5).map(|i| source.weight(WEIGHER.id(), i).unwrap().into()).collect();
        assert_eq!(weights, expected);
    }
    assert_eq!(store.reads() - before, 1, "one read of one small file");
    let other = DiffFocus { gamma: 2.0, ..WEIGHER };
    assert_eq!((source.weight(other.id(), 0), source.weight(WEIGHER.id(), 5)), (None, None));
    assert_eq!(store.reads() - before, 1);
}

#[test]
fn a_tar_with_faults_is_looked_at_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let mut cut = tar(&[1, 1]);
    cut.truncate(12_000);
    store.write("hour.tar", cut);
    for _ in 0..2 {
        let (sources, reads) = restart(&store, Some(&open(folder.path())));
        assert!(reads > 0 && !sources[0].chunks.faults().is_empty());
    }
}

#[test]
fn a_torn_tail_is_ignored_and_written_past() {
    let folder = tempfile::tempdir().unwrap();
    let store = tars();
    let facts = open(folder.path());
    restart(&store, Some(&facts));
    let path = facts.path().to_owned();
    drop(facts);
    let whole = fs::metadata(&path).unwrap().len();
    for cut in [1, 7, 17, 100] {
        File::options().write(true).open(&path).unwrap().set_len(whole - cut).unwrap();
        let facts = open(folder.path());
        assert_eq!(facts.damaged(), 1, "{cut}");
        let (_, reads) = restart(&store, Some(&facts));
        assert!(reads > 0, "the second tar's record was torn");
        drop(facts);
        let facts = open(folder.path());
        let (_, reads) = restart(&store, Some(&facts));
        assert_eq!((reads, facts.damaged()), (0, 1), "what was appended after the tear is found");
        fs::remove_file(&path).unwrap();
        restart(&store, Some(&open(folder.path())));
    }
}

#[test]
fn damage_anywhere_costs_at_most_what_it_hit() {
    let folder = tempfile::tempdir().unwrap();
    let store = tars();
    let facts = open(folder.path());
    restart(&store, Some(&facts));
    let path = facts.path().to_owned();
    drop(facts);
    let good = fs::read(&path).unwrap();
    let single = Arc::new(MemoryStore::new());
    single.write("hour.2.tar", tar(&[4]));
    let (_, walk) = restart(&single, None);
    for at in (0..good.len()).step_by(5) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).unwrap();
        let facts = open(folder.path());
        assert_eq!(facts.damaged(), 1, "byte {at}");
        let (sources, reads) = restart(&store, Some(&facts));
        assert_eq!(sources.iter().map(|s| s.len()).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(reads, walk, "one of the two tars was walked again");
    }
    fs::write(&path, b"GMF1 not a record GMF1\xff\xff\xff\xff GMF1").unwrap();
    assert_eq!(open(folder.path()).damaged(), 1);
}

#[test]
fn several_processes_may_append() {
    let folder = tempfile::tempdir().unwrap();
    let writers: Vec<Arc<Facts>> = (0..4).map(|_| open(folder.path())).collect();
    std::thread::scope(|scope| {
        for (w, facts) in writers.iter().enumerate() {
            scope.spawn(move || {
                for i in 0..200 {
                    facts.record_frames(&stat(&format!("{w}/training.{i}.gz"), 100), 0, i + w);
                    facts.flush();
                }
            });
        }
    });
    drop(writers);
    let facts = open(folder.path());
    assert_eq!(facts.damaged(), 0);
    for w in 0..4 {
        for i in 0..200 {
            assert_eq!(facts.frames(&stat(&format!("{w}/training.{i}.gz"), 100), 0), Some((i + w) as u32));
        }
    }
}

#[test]
fn frame_counts_are_kept_for_the_state_of_the_file_they_were_found_in() {
    let folder = tempfile::tempdir().unwrap();
    let facts = open(folder.path());
    let hour = stat("hour.tar", 1000);
    facts.record_frames(&hour, 2, 133);
    facts.record_frames(&hour, 0, 26);
    assert_eq!([0, 1, 2, 3].map(|i| facts.frames(&hour, i)), [Some(26), None, Some(133), None]);
    assert_eq!(fs::metadata(facts.path()).unwrap().len(), 0, "not written one by one");
    drop(facts);
    let facts = open(folder.path());
    assert_eq!([0, 1, 2].map(|i| facts.frames(&hour, i)), [Some(26), None, Some(133)]);
    let size = fs::metadata(facts.path()).unwrap().len();
    facts.record_frames(&hour, 2, 133);
    facts.flush();
    assert_eq!(fs::metadata(facts.path()).unwrap().len(), size, "what is known is not written again");
    let grown = stat("hour.tar", 1001);
    assert_eq!(facts.frames(&grown, 0), None);
    facts.record_frames(&grown, 1, 7);
    assert_eq!((facts.frames(&grown, 1), facts.frames(&hour, 0)), (Some(7), None));
}

#[test]
fn weights_are_kept_by_weigher_beside_the_frames() {
    let folder = tempfile::tempdir().unwrap();
    let facts = open(folder.path());
    let hour = stat("hour.tar", 1000);
    facts.record_weight(&hour, 5, 1, 0.25);
    facts.record_weight(&hour, 6, 1, 81.0);
    facts.record_frames(&hour, 1, 81);
    facts.record_weight(&hour, 5, 0, 0.0);
    drop(facts);
    let facts = open(folder.path());
    assert_eq!([0, 1, 2].map(|i| facts.weight(&hour, 5, i)), [Some(0.0), Some(0.25), None]);
    assert_eq!((facts.weight(&hour, 6, 1), facts.weight(&hour, 7, 1)), (Some(81.0), None));
    assert_eq!((facts.frames(&hour, 1), facts.frames(&hour, 0)), (Some(81), None));
    assert_eq!(facts.weight(&stat("hour.tar", 1001), 5, 1), None);
    let size = fs::metadata(facts.path()).unwrap().len();
    facts.record_weight(&hour, 5, 1, 0.25);
    facts.flush();
    assert_eq!(fs::metadata(facts.path()).unwrap().len(), size, "what is known is not written again");
}

#[test]
fn what_is_not_a_regular_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = open(folder.path()).path().to_owned();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let error = Facts::open(folder.path(), folder.path()).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn each_directory_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |root: &Path| Facts::open(folder.path(), root).unwrap().path().to_owned();
    assert_ne!(path(a.path()), path(b.path()));
    assert_eq!(path(a.path()), path(&a.path().join(".")));
    assert!(Facts::open(folder.path(), &a.path().join("nowhere")).is_err());
    let store: &dyn Store = &MemoryStore::new();
    assert_eq!(store.root(), "memory:");
}
