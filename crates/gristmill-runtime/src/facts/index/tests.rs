//! The side index of a folder, written, damaged and opened again.

use gristmill_format::demo::trajectory::End;
use gristmill_format::source::Span;

use super::*;

fn file(name: &str) -> FileStat {
    FileStat { name: name.into(), size: 10_240, mtime_ns: 2, device: 3, inode: 4 }
}

fn open(folder: &tempfile::TempDir) -> Facts {
    Facts::open(folder.path(), folder.path()).unwrap()
}

#[test]
fn what_was_noted_is_known_when_it_is_opened_again_and_of_the_same_state_of_a_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (file("a.tar"), file("b.tar"));
    let head = Head::of(b"stored", &[7; 64]).unwrap();
    let tar = TarIndex::from_parts("".into(), Vec::new(), Vec::new()).unwrap();
    let shard = ShardIndex {
        frames: vec![Span { offset: 512, len: 30 }],
        ends: vec![(1, End::Terminated)],
        ..ShardIndex::default()
    };
    let note = |facts: &Facts| {
        facts.record_frames(&a, 3, 26);
        facts.record_frames(&b, 3, 27);
        facts.record_weight(&a, 7, 2, 0.5);
        facts.record_weight(&a, 8, 2, 1.5);
        facts.record_weight(&b, 8, 2, 2.5);
        facts.record_head(&a, 1, head);
    };
    let seen = |facts: &Facts| {
        let frames = [2, 3, 4].map(|chunk| facts.frames(&a, chunk));
        assert_eq!((frames, facts.frames(&b, 3)), ([None, Some(26), None], Some(27)));
        let weights = [(7, 1), (7, 2), (7, 3), (8, 2), (9, 2)].map(|(weigher, i)| facts.weight(&a, weigher, i));
        assert_eq!(weights, [None, Some(0.5), None, Some(1.5), None]);
        assert_eq!(facts.weight(&b, 8, 2), Some(2.5));
        assert_eq!([0, 1].map(|chunk| facts.head(&a, chunk)), [None, Some(head)]);
        assert_eq!((facts.tar(&a).as_ref(), facts.tar(&b)), (Some(&tar), None));
        assert_eq!((facts.shard(&b).as_ref(), facts.shard(&a)), (Some(&shard), None));
        for other in [
            FileStat { size: 10_241, ..a.clone() },
            FileStat { mtime_ns: 3, ..a.clone() },
            FileStat { inode: 5, ..a.clone() },
        ] {
            let known = (facts.frames(&other, 3), facts.weight(&other, 7, 2), facts.head(&other, 1));
            assert_eq!((known, facts.tar(&other)), ((None, None, None), None), "{other:?}");
        }
        assert_eq!((facts.damaged(), facts.fault()), (0, None));
    };
    let facts = open(&folder);
    facts.record_tar(&a, &tar);
    note(&facts);
    facts.record_shard(&b, &shard);
    seen(&facts);
    let path = facts.path().to_owned();
    drop(facts);
    let len = fs::metadata(&path).unwrap().len();
    let facts = open(&folder);
    seen(&facts);
    note(&facts);
    drop(facts);
    assert_eq!(fs::metadata(&path).unwrap().len(), len, "nothing is written twice");
    let facts = open(&folder);
    facts.record_frames(&FileStat { mtime_ns: 9, ..a.clone() }, 0, 1);
    assert_eq!((facts.frames(&a, 3), facts.tar(&a)), (None, None), "one state of a file is known at a time");
}

#[test]
fn facts_about_chunks_are_written_in_bundles() {
    let folder = tempfile::tempdir().unwrap();
    let facts = open(&folder);
    let len = || fs::metadata(facts.path()).unwrap().len();
    (1..BUFFERED).for_each(|chunk| facts.record_frames(&file("a"), chunk, 26));
    assert_eq!(len(), 0);
    facts.record_frames(&file("a"), 0, 26);
    assert!(len() > BUFFERED as u64);
}

#[test]
fn damage_between_records_is_counted_and_costs_no_other_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Vec::new();
    for chunk in 0..3 {
        let facts = open(&folder);
        facts.record_frames(&file("a"), chunk, 20 + chunk);
        drop(facts);
        records.push(fs::read(open(&folder).path()).unwrap().split_off(records.iter().map(Vec::len).sum()));
    }
    let path = open(&folder).path().to_owned();
    let rubbish = [b"GMF1 is no record, GMF1 neither".as_slice(), b"x"];
    let parts = [rubbish[0], &records[0], &records[1], rubbish[1], &records[2], rubbish[0]];
    fs::write(&path, parts.concat()).unwrap();
    let facts = open(&folder);
    assert_eq!(facts.damaged(), 3);
    assert_eq!([0, 1, 2].map(|chunk| facts.frames(&file("a"), chunk)), [Some(20), Some(21), Some(22)]);
}

#[test]
fn a_file_beyond_the_bound_is_emptied_rather_than_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = open(&folder).path().to_owned();
    File::create(&path).unwrap().set_len(MAX_FILE + 1).unwrap();
    let facts = open(&folder);
    assert_eq!((fs::metadata(&path).unwrap().len(), facts.damaged()), (0, 0));
    facts.record_frames(&file("a"), 0, 26);
    drop(facts);
    assert_eq!(open(&folder).frames(&file("a"), 0), Some(26));
}

#[test]
fn a_full_disk_ends_the_writing_and_nothing_else() {
    let Ok(full) = OpenOptions::new().append(true).open("/dev/full") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let facts = Facts::open(folder.path(), folder.path()).unwrap();
    facts.lock().file = Some(full);
    let file = FileStat { name: "a.gz".into(), size: 1, mtime_ns: 2, device: 3, inode: 4 };
    facts.record_frames(&file, 0, 26);
    facts.flush();
    let fault = facts.fault().unwrap();
    assert!(fault.contains(&*facts.path().display().to_string()), "{fault}");
    facts.record_frames(&file, 1, 27);
    facts.flush();
    assert_eq!([0, 1].map(|i| facts.frames(&file, i)), [Some(26), Some(27)], "it is still known to this process");
    assert_eq!(facts.lock().fresh.len(), 0, "and nothing piles up");
}

/// The variables of a process are those of all its tests: this one starts itself with others.
#[test]
fn indexes_are_kept_where_the_user_keeps_what_can_be_made_again() {
    const EXPECTED: &str = "GRISTMILL_TEST_EXPECTED";
    if let Some(expected) = std::env::var_os(EXPECTED) {
        assert_eq!(Facts::default_folder().unwrap_or_default(), Path::new(&expected));
        return;
    }
    for (cache, home, expected) in [
        ("/cache", "/home/a", "/cache/gristmill"),
        ("", "/home/a", "/home/a/.cache/gristmill"),
        ("cache", "/home/a", "/home/a/.cache/gristmill"),
        ("/cache", "", "/cache/gristmill"),
        ("", "", ""),
    ] {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "facts::index::tests::indexes_are_kept_where_the_user_keeps_what_can_be_made_again"]);
        own.envs([("XDG_CACHE_HOME", cache), ("HOME", home), (EXPECTED, expected)]);
        let said = own.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("1 passed"), "{cache}, {home}: {text}");
    }
}
