//! Shards of each some files: a conversion and a split by shares have the bytes of one process, and no trajectory is cut.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::{imitation, names, read, shard, steps, trajectories};
use crate::command::{run, text};

/// Five shards in a folder; each ends with a trajectory.
fn shards(folder: &Path) -> PathBuf {
    let from = folder.join("in");
    fs::create_dir_all(&from).unwrap();
    for (i, lengths) in [[3, 4, 2], [1, 5, 2], [2, 2, 6], [3, 1, 3], [4, 2, 1]].iter().enumerate() {
        shard(&from.join(format!("d-{i}.tar{}", if i % 2 == 0 { ".zst" } else { "" })), &steps(lengths));
    }
    from
}

/// All files below a folder, by their names.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            all.insert(name.clone(), Vec::new());
            all.extend(tree(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn shares_of_a_split_and_of_a_conversion_are_the_folders_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let from = shards(folder.path());
    let jobs: [(&str, &[&str], usize); 2] = [
        ("split", &["--into", "train:2,none:0,test:1", "--files-per-shard", "2", "--members", "npy"], 9),
        ("convert", &["--files-per-shard", "2", "--level", "3"], 3),
    ];
    for (job, more, files) in jobs {
        let (whole, out) = (at(&format!("{job} whole")), at(&format!("{job} out")));
        let words = |to: &Path| [vec![job, text(&from)], vec![to.to_str().unwrap()], more.to_vec()].concat().join("\n");
        let made = |to: &Path, rest: &[&str]| run(&[&words(to).split('\n').collect::<Vec<_>>()[..], rest].concat());
        let mut told = made(&whole, &["--json"]).ok().json();
        for share in ["3/3", "1/3", "1/3"] {
            made(&out, &["--share", share]).ok();
        }
        let early = run(&["commit", text(&out)]);
        assert!(early.code != 0 && early.err.contains("2/3 is missing") && !out.exists(), "{early:?}");
        let other = made(&out, &["--share", "2/3", "--members", "pickle"]);
        assert!(job == "convert" || other.err.contains("members"), "{other:?}");
        made(&out, &["--share", "2/3"]).ok();
        let shares = at(&format!("{job} out.shares"));
        fs::create_dir(at("kept")).unwrap();
        let copied = std::process::Command::new("cp").arg("-r").arg(&shares).arg(at("kept")).status().unwrap();
        assert!(copied.success());
        let mut committed = run(&["commit", text(&out), "--json"]).ok().json();
        assert_eq!(tree(&out), tree(&whole), "{job}");
        assert!(tree(&out).len() <= files && !shares.exists(), "{job}: {:?}", names(&out));
        for said in [&mut told, &mut committed] {
            ["out", "output", "seconds", "cpu_seconds", "peak_rss"].iter().for_each(|key| said[*key] = 0.into());
        }
        assert_eq!(told, committed);
        let again = run(&["commit", text(&out)]);
        assert!(again.err.contains("committed already"), "{again:?}");
        assert!(made(&out, &["--share", "1/3"]).err.contains("it exists"));
        // As a commit leaves it that was killed before it removed the shares.
        fs::rename(at("kept").join(shares.file_name().unwrap()), &shares).unwrap();
        fs::remove_dir(at("kept")).unwrap();
        run(&["commit", text(&out)]).ok();
        assert_eq!((tree(&out), shares.exists()), (tree(&whole), false), "{job}");
    }
    let of_all = |folder: &Path, side: &str| {
        let all =
            names(&folder.join(side)).into_iter().flat_map(|name| trajectories(&read(&folder.join(side).join(name))));
        all.collect::<Vec<_>>()
    };
    run(&["split", text(&from), text(&at("one")), "--into", "train:2,none:0,test:1"]).ok();
    for side in ["train", "none", "test"] {
        assert_eq!(of_all(&at("split out"), side), of_all(&at("one"), side), "{side}");
    }
    assert_eq!(of_all(&at("convert out"), ""), of_all(&from, ""));
}

#[test]
fn groups_cut_no_trajectory_and_need_no_other_group() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let from = at("in");
    fs::create_dir(&from).unwrap();
    let all = steps(&[3, 4, 2, 5]);
    shard(&from.join("a.tar"), &all[..5]);
    shard(&from.join("b.tar"), &all[5..9]);
    shard(&from.join("c.tar"), &all[9..]);
    let split = |size: &str, more: &[&str]| {
        let out = at("out");
        let words = ["split", text(&from), text(&out), "--into", "x:1,y:1", "--files-per-shard", size];
        run(&[&words[..], more].concat())
    };
    for share in [&[][..], &["--share", "1/2"]] {
        let cut = split("1", share);
        assert!(cut.code == 1 && cut.err.contains("a.tar") && cut.err.contains("b.tar"), "{cut:?}");
        assert!(!at("out").join("x").exists());
    }
    fs::remove_dir_all(at("out.shares")).unwrap();
    split("2", &[]).ok();
    let native = at("native");
    fs::create_dir(&native).unwrap();
    imitation(&native.join("one.npz"), &[2, 3], 0.0);
    let to = at("made");
    let convert = |from: &Path, more: &[&str]| {
        run(&[&["convert", text(from), text(&to), "--files-per-shard", "1"], more].concat())
    };
    let none = convert(&native, &["--benchmark", "gymnasium", "--task", "x"]);
    assert!(none.code == 2 && none.err.contains("how many discrete actions") && !to.exists(), "{none:?}");
    for (more, says) in [
        (&["--n-traj", "2"][..], "trajectories are chosen"),
        (&["--shuffle"], "trajectories are chosen"),
        (&["--max-frames", "2"], "a shard has the frames of its files"),
        (&["--overwrite"], "go to a new folder"),
    ] {
        let refused = convert(&from, more);
        assert!(refused.code == 2 && refused.err.contains(says), "{refused:?}");
    }
    let alone = run(&["convert", text(&from), text(&at("x.tar")), "--share", "1/2"]);
    assert!(alone.code == 2 && alone.err.contains("files_per_shard"), "{alone:?}");
    run(&["pack", "--input", text(&from), "--output", text(&at("pack"))]).ok();
    let pack = convert(&at("pack"), &[]);
    assert!(pack.code == 2 && pack.err.contains("a pack is one data set"), "{pack:?}");
}
