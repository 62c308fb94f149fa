//! Packs as a whole: joined without a decode, compared with their sources, inspected.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::{Game, Games};
use gristmill_format::chess::Version;
use gristmill_jobs::inspect::{Results, inspect};
use gristmill_jobs::merge::{MergeOptions, Merged, merge};
use gristmill_jobs::pack::Existing;
use gristmill_jobs::verify::{Verification, VerifyOptions, verify};

use crate::fixture::{games, packed, records};

struct Packs(tempfile::TempDir);

impl Packs {
    /// `a`: 6 games of V6; `b`: 3 of those, 4 others and 2 of V7; each in several files.
    fn new() -> Self {
        let packs = Packs(tempfile::tempdir().unwrap());
        let (a, b) = (packs.at("from/a"), packs.at("from/b"));
        games(&a, 1, 6, Version::V6, None);
        games(&b, 4, 7, Version::V6, None);
        games(&b.join("wide"), 51, 2, Version::V7, None);
        packed(&a, &packs.at("a"), |_| {}).unwrap();
        packed(&b, &packs.at("b"), |_| {}).unwrap();
        packs
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn options(&self, inputs: &[&str]) -> MergeOptions {
        MergeOptions::new(inputs.iter().map(|name| self.at(name)).collect(), self.at("out"))
    }
}

fn merged(options: &MergeOptions) -> gristmill_engine::Result<Merged> {
    merge(options, &mut |_, _| {})
}

fn checked(path: &Path, change: impl Fn(&mut VerifyOptions)) -> gristmill_engine::Result<Verification> {
    let mut options = VerifyOptions::new(vec![path.to_owned()]);
    change(&mut options);
    verify(&options, &mut |_, _| {})
}

fn rows(pack: &Path) -> Vec<Game> {
    let mut rows = Vec::new();
    let each = Games::open(&pack.join("metadata.db")).unwrap();
    each.each(&mut |game| {
        rows.push(game);
        Ok(())
    })
    .unwrap();
    rows
}

#[test]
fn packs_are_joined_file_by_file_and_what_came_before_is_passed_over() {
    let packs = Packs::new();
    let dry = merged(&MergeOptions { dry_run: true, ..packs.options(&["a", "b"]) }).unwrap();
    assert!(dry.dry_run && !packs.at("out").exists());
    let found = merged(&packs.options(&["a", "b"])).unwrap();
    assert_eq!((found.packs, found.runs, found.known, found.layout), (2, 12, 3, "chess"));
    assert_eq!((dry.runs, dry.rows, dry.known), (found.runs, found.rows, found.known));
    let out = packs.at("out");
    // As packing the second folder after the first pack would have it.
    packed(&packs.at("from/b"), &packs.at("a"), |options| options.existing = Existing::Append).unwrap();
    assert!(records(&out, &[".chunks"]) == records(&packs.at("a"), &[".chunks"]));
    let plain = |game: Game| (game.id, game.first_frame, game.frames, game.source, game.content, game.facts);
    let expected: Vec<_> = rows(&packs.at("a")).into_iter().map(plain).collect();
    assert_eq!(rows(&out).into_iter().map(plain).collect::<Vec<_>>(), expected);
    let all = checked(&out, |_| {}).unwrap();
    assert!(all.ok && all.checked == found.rows && all.chunks == 12, "{all:?}");
    let inode = |pack: &str, name: &str| fs::metadata(packs.at(pack).join(name)).unwrap().ino();
    assert_eq!(inode("out", "games-00000.chunks"), inode("a", "games-00000.chunks"), "a whole file is the same file");
    for name in ["from/a", "from/b"] {
        let against = checked(&out, |options| options.against = Some(packs.at(name))).unwrap();
        assert!(against.ok && against.chunks > 5, "{against:?}");
    }
    assert!(!packs.at("out/.pack.part").exists());
}

#[test]
fn inputs_are_deleted_once_the_new_pack_was_read_back() {
    let packs = Packs::new();
    let before = [records(&packs.at("a"), &[".chunks"]), records(&packs.at("b"), &[".chunks"])].concat();
    fs::write(packs.at("b/notes.txt"), "mine").unwrap();
    let found = merged(&MergeOptions { delete_inputs: true, ..packs.options(&["a", "b"]) }).unwrap();
    assert_eq!((found.deleted.len(), found.left.len()), (2, 1));
    assert!(!packs.at("a").exists() && packs.at("b/notes.txt").exists());
    let after = records(&packs.at("out"), &[".chunks"]);
    assert!(before.iter().all(|game| after.contains(game)) && after.len() == 12);
    assert!(checked(&packs.at("out"), |_| {}).unwrap().ok);
}

#[test]
fn what_cannot_be_merged_is_refused_and_changes_nothing() {
    let packs = Packs::new();
    let refused = |options: &MergeOptions| merged(options).unwrap_err().to_string();
    let shards = MergeOptions { shard_rows: Some(5), ..packs.options(&["a", "b"]) };
    assert!(refused(&shards).contains("shard_rows"));
    fs::create_dir(packs.at("other")).unwrap();
    fs::write(packs.at("other/metadata.db"), "").unwrap();
    let mixed = refused(&packs.options(&["a", "other"]));
    assert!(mixed.contains("whole games") && mixed.contains("other"), "{mixed}");
    assert!(refused(&packs.options(&["a", "a"])).contains("same pack"));
    let text = fs::read_to_string(packs.at("b/manifest.json")).unwrap();
    let codec = text.replace("\"codec\": \"chess\"", "\"codec\": \"go\"");
    fs::write(packs.at("b/manifest.json"), codec).unwrap();
    let codecs = refused(&packs.options(&["a", "b"]));
    assert!(codecs.contains("`go`") && codecs.contains("`chess`"), "{codecs}");
    fs::write(packs.at("b/manifest.json"), &text).unwrap();
    // A byte of the last game of a file that is taken whole.
    let path = packs.at("a/games-00000.chunks");
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    fs::write(&path, damaged).unwrap();
    let damage = refused(&packs.options(&["a", "b"]));
    assert!(damage.contains("games-00000.chunks") && damage.contains("chunk 0"), "{damage}");
    assert!(!packs.at("out/manifest.json").exists() && !packs.at("out/.pack.part").exists());
    fs::write(&path, whole).unwrap();
    fs::copy(packs.at("a/metadata.db"), packs.at("b/metadata.db")).unwrap();
    let foreign = refused(&packs.options(&["a", "b"]));
    assert!(foreign.contains("b/metadata.db"), "{foreign}");
    let again = MergeOptions { overwrite: true, ..packs.options(&["a", "b"]) };
    assert!(refused(&again).contains("b/metadata.db"));
    let checkpoints = packed(&packs.at("from/a"), &packs.at("new"), |options| options.checkpoint_rows = 5);
    assert!(checkpoints.unwrap_err().to_string().contains("checkpoint_rows"));
}

#[test]
fn sources_and_single_files_are_held_against_their_pack() {
    let packs = Packs::new();
    let against = |from: &str| checked(&packs.at("a"), |options| options.against = Some(packs.at(from)));
    assert!(against("from/a").unwrap().ok);
    let found = against("from/b").unwrap();
    assert_eq!((found.fault_count, found.chunks), (6, 9), "three of its games are in the other pack");
    let fault = &found.faults[0];
    assert!(fault.kind == "missing" && fault.file.as_ref().unwrap().contains("from/b"), "{fault:?}");
    let refused = checked(&packs.at("from"), |options| options.against = Some(packs.at("from"))).unwrap_err();
    assert!(refused.to_string().contains("against"), "{refused}");

    let manifest = Manifest::read(&packs.at("a")).unwrap();
    let (first, last) = (&manifest.files[0].name, &manifest.files.last().unwrap().name);
    let file = packs.at("a").join(last);
    let alone = checked(&file, |_| {}).unwrap();
    assert!(alone.ok && alone.chunks > 0, "{alone:?}");
    // A file of the same pack in its place, and nothing damaged in itself.
    fs::remove_file(&file).unwrap();
    fs::copy(packs.at("a").join(first), &file).unwrap();
    let swapped = checked(&file, |_| {}).unwrap();
    let told = |name: &str| swapped.faults.iter().any(|fault| fault.file.as_ref().is_some_and(|f| f.ends_with(name)));
    assert!(told("manifest.json") && told("metadata.db"), "{swapped:?}");
    fs::copy(&file, packs.at("alone.chunks")).unwrap();
    assert!(checked(&packs.at("alone.chunks"), |_| {}).unwrap().ok, "a file on its own is held against nothing");
}

#[test]
fn a_pack_is_looked_at_as_a_whole() {
    let packs = Packs::new();
    fs::write(packs.at("from/b/broken.gz"), "no game").unwrap();
    packed(&packs.at("from/b"), &packs.at("b"), |options| options.existing = Existing::Overwrite).unwrap();
    let seen = inspect(&packs.at("b"), None).unwrap();
    let manifest = Manifest::read(&packs.at("b")).unwrap();
    assert_eq!((seen.format.as_str(), seen.chunks, seen.frames), ("chess.chunks", 9, manifest.frames));
    assert_eq!(seen.files, manifest.files.len() as u64);
    let pack = seen.pack.unwrap();
    assert_eq!((pack.codec.as_str(), pack.games, &pack.chunk_files), ("chess", 9, &manifest.files));
    assert_eq!(pack.versions, BTreeMap::from([(6, 7), (7, 2)]));
    assert_eq!(pack.input_formats.values().sum::<u64>(), 9);
    assert!(pack.left_out.len() == 1 && pack.left_out[0].file == "broken.gz");
    let db = Games::open(&packs.at("b/metadata.db")).unwrap();
    let results = db.column("result").unwrap();
    let count = |wanted: f64| results.iter().filter(|result| **result == wanted).count() as u64;
    let expected = Results { white: count(1.0), drawn: count(0.0), black: count(-1.0), other: 0 };
    assert_eq!(pack.results, Some(expected));
}
