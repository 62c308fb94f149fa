//! Splitting: every trajectory is whole in one folder, the one that the published hash names; all folders or none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::stage::split::Side;
use gristmill_format::container::chunks::{ChunkFile, ChunkFileWriter, MAGIC};
use gristmill_jobs::pack::{self as job, PackOptions};

use super::files::{names, read, shard, steps, trajectories};
use crate::command::{run, text};

#[test]
fn trajectories_go_where_the_hash_says_and_none_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = [3, 1, 4, 1, 5, 2, 6];
    let from = shard(&folder.path().join("demos.tar.zst"), &steps(&lengths));
    let known = trajectories(&read(&from));
    let out = folder.path().join("out");
    let words = ["split", text(&from), text(&out), "--into", "train:2,test:1,none:0", "--json"];
    let dry = run(&[&words[..], &["--dry-run"]].concat()).ok().json();
    assert!(!out.exists());
    let done = run(&words).ok().json();
    assert_eq!((&done["trajectories"], &done["frames"], &done["sides"]), (&7.into(), &22.into(), &dry["sides"]));
    assert_eq!((&done["files_out"], &dry["files_out"]), (&2.into(), &0.into()));
    for (i, name) in ["train", "test"].into_iter().enumerate() {
        let side = Side::new(&[2, 1, 0], i).unwrap();
        let expected: Vec<_> = known
            .iter()
            .enumerate()
            .filter(|(n, _)| side.holds("demos.tar.zst", *n as u64))
            .map(|(_, t)| t.clone())
            .collect();
        assert!(!expected.is_empty());
        let path = out.join(name).join("demos.tar.zst");
        assert_eq!(trajectories(&read(&path)), expected, "{name}");
        assert_eq!(read(&path).meta(), read(&from).meta());
        run(&["verify", text(&path)]).ok();
    }
    assert_eq!((names(&out), names(&out.join("none")).len()), (vec!["none".into(), "test".into(), "train".into()], 0));
    let again = run(&words);
    assert!(again.code == 1 && again.err.contains("it exists"), "{again:?}");
}

#[test]
fn what_a_killed_split_left_is_cleared_away_and_shards_are_split_as_they_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, out) = (folder.path().join("parts"), folder.path().join("out"));
    fs::create_dir_all(&parts).unwrap();
    // As a split that was killed leaves it: staged, and not published.
    fs::create_dir_all(out.join(".split.part/train")).unwrap();
    fs::write(out.join(".split.part/train/demos.tar.zst"), "half").unwrap();
    let all = steps(&[3, 4, 2, 5, 6, 2, 2]);
    shard(&parts.join("a.tar"), &all[..5]);
    shard(&parts.join("b.tar"), &all[5..]);
    let done = run(&["split", text(&parts), text(&out), "--into", "train:1,test:1", "--json"]).ok().json();
    assert_eq!((&done["trajectories"], &done["frames"]), (&7.into(), &24.into()));
    assert_eq!(names(&out), ["test", "train"]);
    let mut lengths: Vec<usize> = Vec::new();
    for name in ["train", "test"] {
        let path = out.join(name).join("demos.tar.zst");
        lengths.extend(trajectories(&read(&path)).iter().map(Vec::len));
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [2, 2, 2, 3, 4, 5, 6], "the trajectory that lies in both shards is one");
}

/// Four shards, plain and packed, of which one continues in the next, in a folder called `shards`.
fn shards(folder: &Path) -> PathBuf {
    let shards = folder.join("in/shards");
    fs::create_dir_all(&shards).unwrap();
    let all = steps(&[3, 4, 2, 5, 6, 2, 2, 3, 1, 4, 2, 3, 5, 2, 6, 1, 3, 2, 4, 2]);
    let cuts = [0, 9, 19, 31, all.len()];
    for (i, name) in ["d-0.tar.zst", "d-1.tar", "d-2.tar.zst", "d-3.tar"].iter().enumerate() {
        shard(&shards.join(name), &all[cuts[i]..cuts[i + 1]]);
    }
    shards
}

/// The trajectories of each side, and how many went by content.
fn sides(from: &Path, out: &Path) -> ([BTreeSet<Vec<Vec<u8>>>; 3], u64) {
    let said = run(&["split", text(from), text(out), "--into", "train:2,val:1,test:2", "--json"]).ok().json();
    assert_eq!(said["trajectories"], 20, "{said}");
    let of = |name: &str| trajectories(&read(&out.join(name).join("demos.tar.zst"))).into_iter().collect();
    (["train", "val", "test"].map(of), said["by_content"].as_u64().unwrap())
}

#[test]
fn packed_trajectories_go_where_they_went_loose() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let shards = shards(folder.path());
    let (loose, by_content) = sides(&shards, &at("of loose"));
    assert!(by_content == 0 && loose.iter().all(|side| side.len() > 1));
    assert_eq!(loose.iter().map(BTreeSet::len).sum::<usize>(), 20);
    let pack = |from: &Path, to: &str, more: &[&str]| {
        let words = ["pack", "--input", text(from), "--output", text(&at(to))].map(str::to_owned);
        run(&[&words.each_ref().map(String::as_str)[..], more].concat()).ok();
        at(to)
    };
    let packed = pack(&shards, "packed", &["--shard-rows", "20"]);
    let above = pack(&at("in"), "of a folder above", &[]);
    let again = pack(&packed, "again", &[]);
    // In columns, as what is too large to be held.
    let laid = at("laid");
    job::pack(&PackOptions { held_bytes: 1000, ..PackOptions::new(&shards, &laid) }, &mut |_| {}).unwrap();
    // Of two packs, of which one has the first shard alone, which is whole.
    let (first, merged) = (pack(&shards.join("d-0.tar.zst"), "first", &[]), at("merged"));
    run(&["merge", text(&first), text(&again), "--output", text(&merged)]).ok();
    for (i, packed) in [packed, above, again, laid, merged].iter().enumerate() {
        assert!(sides(packed, &at(&format!("of pack {i}"))) == (loose.clone(), 0), "{}", packed.display());
    }
}

/// Gives the chunks of a pack the names that they had before shards were noted.
fn older(pack: &Path) {
    let path = pack.join("games-00000.chunks");
    let bytes = fs::read(&path).unwrap();
    let file = ChunkFile::open(&bytes[..]).unwrap();
    let mut to = ChunkFileWriter::new(file.codec());
    let mut all = MAGIC.to_vec();
    for i in 0..file.len() {
        let span = file.span(i).unwrap();
        let chunk = &bytes[span.offset as usize..][..span.len as usize];
        to.add(&format!("shards/{i}"), file.frames(i), chunk).unwrap();
        all.extend_from_slice(chunk);
    }
    all.extend(to.finish());
    fs::write(&path, all).unwrap();
}

#[test]
fn a_pack_of_before_is_split_by_content_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let shards = shards(folder.path());
    run(&["pack", "--input", text(&shards), "--output", text(&at("pack"))]).ok();
    older(&at("pack"));
    let (found, by_content) = sides(&at("pack"), &at("out"));
    let (loose, _) = sides(&shards, &at("of loose"));
    assert!(by_content == 20 && found != loose);
    assert_eq!(found.iter().map(BTreeSet::len).sum::<usize>(), 20);
    let said = run(&["split", text(&at("pack")), text(&at("none")), "--into", "train:1", "--dry-run"]).ok().out;
    assert!(said.contains("20 trajectories went by their content"), "{said}");
}

#[test]
fn folds_of_trajectories_are_the_same_loose_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    let (shards, pack) = (shards(folder.path()), at("pack".to_owned()));
    run(&["pack", "--input", text(&shards), "--output", text(&pack)]).ok();
    let sides = |from: &Path, out: &Path, fold: &str| {
        let words = ["split", text(from), text(out), "--into", "train:4,val:0,test:1", "--folds", "2", "--fold", fold];
        run(&words).ok();
        ["train", "val", "test"].map(|side| {
            let found: BTreeSet<_> = trajectories(&read(&out.join(side).join("demos.tar.zst"))).into_iter().collect();
            found
        })
    };
    let [one, two] = ["0", "1"].map(|fold| {
        let loose = sides(&shards, &at(format!("loose {fold}")), fold);
        assert!(loose == sides(&pack, &at(format!("packed {fold}")), fold));
        loose
    });
    assert!(one[0] == two[1] && one[1] == two[0] && one[2] == two[2], "two folds are each other's train sides");
    assert_eq!(one.iter().map(BTreeSet::len).sum::<usize>(), 20);
}
