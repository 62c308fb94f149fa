//! Splitting: every trajectory is whole in one folder, the one that the published hash names; all folders or none.

use std::fs;

use gristmill_engine::stage::split::Side;

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
