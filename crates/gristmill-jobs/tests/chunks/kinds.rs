//! Chunks of a kind that is not known here: refused by the name of the kind, by every door, and never taken for a known one.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::holdings::Holdings;
use gristmill_engine::open::open;
use gristmill_engine::store::Residence;
use gristmill_format::Kind;
use gristmill_format::chess::Version;
use gristmill_format::container::chunks::{ChunkFile, ChunkFileWriter, Codec, MAGIC};
use gristmill_jobs::inspect::inspect;
use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::pack::{OnError, PackOptions, pack};
use gristmill_jobs::stats::{StatsOptions, stats};
use gristmill_jobs::verify::{Verification, VerifyOptions, verify};

use crate::fixture::{games, packed};

/// What chunk files of another game say.
const CHECKERS: Codec = *b"checkers";

/// A pack of chess whose chunk files and manifest say that they hold another game.
fn checkers(folder: &Path) {
    let input = tempfile::tempdir().unwrap();
    games(input.path(), 1, 3, Version::V6, None);
    packed(input.path(), folder, |options| options.shard_rows = None).unwrap();
    let path = folder.join("games-00000.chunks");
    let (before, after) = renamed(&path);
    let said = fs::read_to_string(folder.join("manifest.json")).unwrap();
    let said = said.replace("\"codec\": \"chess\"", "\"codec\": \"checkers\"").replace(&before, &after);
    fs::write(folder.join("manifest.json"), said).unwrap();
}

/// Lets a chunk file say that its chunks are of checkers; the checksums of its index before and after.
fn renamed(path: &Path) -> (String, String) {
    let bytes = fs::read(path).unwrap();
    let file = ChunkFile::open(&bytes[..]).unwrap();
    let (mut index, mut all) = (ChunkFileWriter::new(CHECKERS), MAGIC.to_vec());
    for i in 0..file.len() {
        let span = file.span(i).unwrap();
        let chunk = &bytes[span.offset as usize..][..span.len as usize];
        index.add(file.name(i), file.frames(i), chunk).unwrap();
        all.extend_from_slice(chunk);
    }
    all.extend(index.finish());
    let identity = ChunkFile::open(&all[..]).unwrap().identity();
    fs::write(path, all).unwrap();
    (format!("{:016x}", file.identity()), format!("{identity:016x}"))
}

/// A chunk file of checkers.
fn alone(path: &Path) {
    let (mut file, moves) = (ChunkFileWriter::new(CHECKERS), b"moves of a game");
    file.add("one", 3, moves).unwrap();
    fs::write(path, [&MAGIC[..], moves, &file.finish()].concat()).unwrap();
}

/// That a refusal names the kind, and takes it for no other.
fn refused(said: &str) {
    assert!(said.contains("`checkers`"), "{said}");
    for other in ["chess", "demonstration", "trajector", "2048"] {
        assert!(!said.contains(other), "{said}");
    }
}

fn verified(path: PathBuf, against: Option<PathBuf>) -> Verification {
    verify(&VerifyOptions { against, ..VerifyOptions::new(vec![path]) }, &mut |_, _| {}).unwrap()
}

#[test]
fn a_file_of_an_unknown_kind_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("moves.chunks");
    alone(&file);
    let e = open(&file).unwrap_err();
    assert_eq!(e.kind(), Kind::Unsupported);
    refused(e.detail());
    refused(&inspect(&file, None).unwrap_err().to_string());
    let found = verified(file.clone(), None);
    assert_eq!((found.fault_count, found.chunks), (1, 0), "{found:?}");
    refused(&found.faults[0].detail);
    let counted = stats(std::slice::from_ref(&file), &StatsOptions::default(), &mut |_| {}).unwrap();
    assert_eq!((counted.bad_files, counted.chunks, counted.skipped), (1, 0, 0));
    let out = folder.path().join("out");
    for on_error in [OnError::Raise, OnError::Skip] {
        let options = PackOptions { on_error, ..PackOptions::new(&file, &out) };
        refused(&pack(&options, &mut |_| {}).unwrap_err().to_string());
        assert!(!out.exists());
    }
}

#[test]
fn a_folder_with_a_file_of_an_unknown_kind_says_so_by_name() {
    let folder = tempfile::tempdir().unwrap();
    alone(&folder.path().join("games-00000.chunks"));
    let told = Holdings::of(folder.path()).told(folder.path());
    assert!(told.contains("a kind of games that is not known here") && !told.contains("chess"), "{told}");
    let pack = tempfile::tempdir().unwrap();
    let input = tempfile::tempdir().unwrap();
    games(input.path(), 1, 3, Version::V6, None);
    packed(input.path(), pack.path(), |_| {}).unwrap();
    alone(&input.path().join("strange.chunks"));
    let against = verified(pack.path().to_owned(), Some(input.path().to_owned()));
    assert_eq!((against.fault_count, against.chunks), (1, 3), "{against:?}");
    refused(&against.faults[0].detail);
}

#[test]
fn a_pack_of_an_unknown_kind_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let pack_ = folder.path().join("pack");
    checkers(&pack_);
    refused(&ChunkPack::open(&pack_, Residence::Mapped).unwrap_err().to_string());
    refused(&gristmill_engine::selection::open(&pack_, Residence::Mapped).unwrap_err().to_string());
    let e = gristmill_engine::demos::open(&pack_, &Default::default(), &mut || true).unwrap_err().to_string();
    assert!(e.contains("`checkers`"), "{e}");
    refused(&inspect(&pack_, None).unwrap_err().to_string());
    let found = verified(pack_.clone(), None);
    assert!(found.faults.iter().any(|fault| fault.detail.contains("`checkers`")), "{found:?}");
    let refuse = |e: gristmill_engine::Error| refused(&e.to_string());
    let other = folder.path().join("other");
    checkers(&other);
    refuse(merge(&MergeOptions::new(vec![pack_, other], folder.path().join("out")), &mut |_, _| {}).unwrap_err());
}
