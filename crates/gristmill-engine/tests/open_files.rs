//! `open(path)`: any single file of chunks, read whole; and what it says of files it cannot read.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it skips")]

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::games::{game, tar};
use gristmill_engine::open::{open, open_within};
use gristmill_format::Kind;
use gristmill_format::source::{Chunk, Limits};

fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GRISTMILL_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let found = root.join(path);
    if !found.exists() {
        println!("skipped: {} is not there", found.display());
        return None;
    }
    Some(found)
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    gristmill_format::container::gzip::compress(1, bytes).unwrap()
}

#[test]
fn a_single_game_opens_by_name_or_by_its_first_bytes() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["training.1.gz", "no-extension"] {
        let path = dir.path().join(name);
        fs::write(&path, game(3, 7)).unwrap();
        let source = open(&path).unwrap();
        assert_eq!((source.key(), source.format(), source.len()), (name, "lc0.gz", 1));
        assert_eq!((source.frames(0).unwrap(), source.num_frames().unwrap()), (3, 3));
        assert_eq!((source.layout().unwrap().size(), source.member(0)), (8356, None));
        let mut chunk = Chunk::default();
        source.chunk(0, &mut chunk).unwrap();
        assert_eq!((chunk.frames, chunk.record(2)[8000]), (3, 7));
    }
}

#[test]
fn a_tar_opens_with_its_members() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hour.tar");
    fs::write(&path, tar(&[2, 1, 5])).unwrap();
    let source = open(&path).unwrap();
    assert_eq!((source.len(), source.num_frames().unwrap()), (3, 8));
    assert_eq!(source.member(1), Some("d/training.1.gz"));
    assert_eq!([0, 1, 2].map(|i| source.frames(i).unwrap()), [2, 1, 5]);
    let error = source.frames(3).unwrap_err();
    assert_eq!((error.kind(), error.place().chunk), (Kind::Missing, Some(3)));
}

#[test]
fn the_layout_is_that_of_the_first_good_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hour.tar");
    let mut bytes = tar(&[1, 1]);
    bytes[512] = 99;
    fs::write(&path, bytes).unwrap();
    let source = open(&path).unwrap();
    assert_eq!(source.layout().unwrap().size(), 8356);
    let error = source.num_frames().unwrap_err();
    assert_eq!(error.kind(), Kind::UnknownVersion);
    assert_eq!(error.place().member.as_deref(), Some("d/training.0.gz"));
    assert!(error.to_string().contains("hour.tar"), "{error}");
}

#[test]
fn what_cannot_be_opened_is_said_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(dir.path().join(name), bytes).unwrap();
        dir.path().join(name)
    };
    for (path, kind) in [
        (dir.path().join("nothing.gz"), Kind::Io(io::ErrorKind::NotFound)),
        (dir.path().to_owned(), Kind::Unsupported),
        (write("notes.txt", b"hello"), Kind::UnknownFormat),
        (write("games.tar.gz", b"\x1f\x8b"), Kind::Truncated),
        (write("games.tgz", &gzipped(&tar(&[2]))), Kind::Corrupt),
    ] {
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.place().source.as_deref(), path.to_str());
        assert_eq!(error.detail().contains("unpack it"), path.ends_with("games.tgz"), "{error}");
    }
    let empty = open(write("empty.gz", b"")).unwrap();
    assert_eq!(empty.len(), 1);
    assert_eq!(empty.layout().unwrap_err().kind(), Kind::Empty);
    let large = write("large.gz", &game(3, 1));
    let tight = open_within(&large, Limits { max_chunk_bytes: 10_000 }).unwrap();
    assert_eq!(tight.frames(0).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn the_published_sample_opens() {
    let Some(folder) = shared("data/lc0") else { return };
    let mut tars = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "tar") {
            tars += 1;
            let source = open(&path).unwrap();
            let members: Vec<_> =
                (0..source.len()).map(|i| (source.member(i).unwrap(), source.frames(i).unwrap())).collect();
            println!("{}: {members:?}", path.display());
            assert_eq!(source.num_frames().unwrap(), members.iter().map(|(_, n)| *n as u64).sum::<u64>());
            if source.len() == 4 {
                let mut frames: Vec<_> = members.iter().map(|(_, n)| *n).collect();
                frames.sort_unstable();
                assert_eq!(frames, [26, 76, 89, 133]);
            }
        }
    }
    assert!(tars > 0);
}
