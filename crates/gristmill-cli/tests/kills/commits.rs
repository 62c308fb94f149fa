//! Commits of shares that are killed at calls by which they change the disk: run again, each ends with what one process makes,
//! byte for byte, and leaves nothing beside it.
#![allow(clippy::print_stdout, reason = "a skipped test says so, and how much happened")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Job, copy, generate, places, run, strings, text, traced, tracer, tree, words};
use crate::demos::files::{shard, steps};

/// A job that commits the shares of some games; `over` another pack, or into an empty folder.
fn job(root: &Path, name: &'static str, games: &Path, over: Option<&Path>) -> Job {
    let at = |end: &str| root.join(format!("{name}{end}"));
    let (before, after, target, kept) = (at("-0"), at("-9"), at(""), at("-made"));
    run(&["pack", "--input", text(games), "--output", text(&after), "--threads", "1"]).ok();
    match over {
        Some(pack) => copy(pack, &before),
        None => fs::create_dir(&before).unwrap(),
    }
    for share in ["1/3", "2/3", "3/3"] {
        run(&["pack", text(games), text(&kept), "--share", share, "--threads", "1"]).ok();
    }
    let mut words = strings(&["commit", text(&target)]);
    words.extend(over.map(|_| "--overwrite".to_owned()));
    let inputs = vec![(at("-made.shares"), at(".shares"))];
    Job { name, resume: words.clone(), words, before, after, target, inputs }
}

/// A job that commits the shares of data that a command wrote again, into an empty folder.
fn again(root: &Path, (name, command): (&'static str, &str), data: &Path, more: &[&str]) -> Job {
    let at = |end: &str| root.join(format!("{name}{end}"));
    let (before, after, target, kept) = (at("-0"), at("-9"), at(""), at("-made"));
    let make = |out: &Path, share: &[&str]| {
        run(&[&[command, text(data), text(out), "--threads", "1"], more, share].concat()).ok();
    };
    // The ledger has the name of its folder: one process writes where the commit will.
    make(&target, &[]);
    fs::rename(&target, &after).unwrap();
    fs::create_dir(&before).unwrap();
    for share in ["1/3", "2/3", "3/3"] {
        make(&kept, &["--share", share]);
    }
    let words = strings(&["commit", text(&target)]);
    let inputs = vec![(at("-made.shares"), at(".shares"))];
    Job { name, resume: words.clone(), words, before, after, target, inputs }
}

#[test]
fn a_commit_that_is_killed_at_any_change_of_the_disk_is_run_again() {
    let Some(tracer) = tracer() else {
        println!("skipped: no C compiler here, or processes cannot be traced");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    let (rows, chess) = (root.join("rows"), root.join("games"));
    let logs = ["generate", "2048", text(&rows), "--games", "4", "--seed", "1", "--moves-max", "40", "--depth", "0"];
    run(&logs).ok();
    generate(&chess, "4", &[]);
    let demos = root.join("demos");
    fs::create_dir(&demos).unwrap();
    for (name, lengths) in [("a.tar", [2, 3]), ("b.tar", [1, 2]), ("c.tar", [3, 1])] {
        shard(&demos.join(name), &steps(&lengths));
    }
    let old = root.join("old");
    run(&["pack", "--input", text(&rows), "--output", text(&old), "--shard-rows", "30", "--threads", "1"]).ok();
    let jobs = [
        job(&root, "chess", &chess, None),
        job(&root, "logs", &rows, None),
        job(&root, "replaced", &rows, Some(&old)),
        again(&root, ("rescore", "rescore"), &chess, &[]),
        again(&root, ("split", "split"), &chess, &["--into", "train:1,test:1"]),
        again(&root, ("shards", "split"), &demos, &["--into", "train:1,test:1", "--files-per-shard", "1"]),
    ];
    let mut kills = 0;
    for job in &jobs {
        job.prepare();
        let calls = traced(tracer, job, 0);
        let whole = tree(&job.after);
        assert!(tree(&job.target) == whole, "{}: not what one process makes", job.name);
        for number in places(&calls, job.name, &mut BTreeSet::new()) {
            kills += 1;
            job.prepare();
            traced(tracer, job, number);
            let again = words(&job.words);
            let about = format!("{}, killed at call {number}, `{}`: {}", job.name, calls[number - 1], again.err);
            assert!(again.code == 0 || again.err.contains("they were committed already"), "{about}");
            assert!(tree(&job.target) == whole, "{about}: not what one process makes");
            let name = job.target.file_name().unwrap().to_str().unwrap();
            let beside = |entry: &String| entry.trim_start_matches('.').starts_with(&format!("{name}.shares"));
            let left: Vec<String> =
                fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert!(!left.iter().any(beside), "{about}: {left:?}");
        }
    }
    assert!(kills > 10, "{kills} kills");
    println!("{kills} kills of commits");
}
