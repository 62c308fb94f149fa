//! Shares of reports and marks, and their commits, that are killed at calls by which they change the disk: run again, each ends
//! with what one process makes, byte for byte, and leaves nothing beside it.
#![allow(clippy::print_stdout, reason = "a skipped test says so, and how much happened")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Job, copy, generate, places, run, strings, text, traced, tracer, tree, words};

/// Kills a job at its places (see [`places`]), and runs `last` after each kill to finish it.
fn killed_everywhere(tracer: &Path, job: &Job, last: &[String]) -> usize {
    job.prepare();
    let calls = traced(tracer, job, 0);
    let finish = |about: &str| {
        let done = if last.is_empty() { words(&job.words) } else { words(last) };
        assert!(done.code == 0 || done.err.contains("they were committed already"), "{about}: {}", done.err);
        assert!(tree(&job.target) == tree(&job.after), "{about}: not what one process makes");
    };
    let places = places(&calls, job.name, &mut BTreeSet::new());
    for &number in &places {
        job.prepare();
        traced(tracer, job, number);
        let about = format!("{}, killed at call {number}, `{}`", job.name, calls[number - 1]);
        if !last.is_empty() {
            words(&job.words).ok();
        }
        finish(&about);
    }
    places.len()
}

#[test]
fn shares_of_reports_and_marks_that_are_killed_are_made_again() {
    let Some(tracer) = tracer() else {
        println!("skipped: no C compiler here, or processes cannot be traced");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    let (games, made) = (root.join("games"), root.join("made"));
    generate(&games, "4", &[]);
    let job = |name: &'static str, words: Vec<String>| {
        let at = |end: &str| root.join(format!("{name}{end}"));
        let (before, after, target) = (at("-0"), at("-9"), root.join("made"));
        [&before, &after].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        Job { name, resume: words.clone(), words, before, after, target, inputs: vec![] }
    };
    let report = made.join("report.json");
    let commit = strings(&["commit", text(&report)]);
    let share = |number: &str| {
        strings(&["verify", text(&games), "--share", number, "--output", text(&report), "--threads", "1"])
    };
    let found = run(&["verify", text(&games), "--json"]).ok().out;
    let mut kills = 0;
    let first = job("share", share("1/2"));
    fs::create_dir(&made).unwrap();
    words(&share("2/2")).ok();
    copy(&made, &first.before);
    fs::write(first.after.join("report.json"), &found).unwrap();
    kills += killed_everywhere(tracer, &first, &commit);
    let committed = job("commit", commit);
    first.prepare();
    words(&share("1/2")).ok();
    copy(&made, &committed.before);
    fs::write(committed.after.join("report.json"), &found).unwrap();
    kills += killed_everywhere(tracer, &committed, &[]);
    // The shares of a mark lie beside the pack.
    let pack = made.join("pack");
    let mark = |more: &[&str]| run(&[&["mark", text(&pack), "early", "--rule", "ply < 6"], more].concat()).ok();
    let marked = job("mark", strings(&["commit", text(&pack)]));
    fs::remove_dir_all(&made).unwrap();
    run(&["pack", "--input", text(&games), "--output", text(&pack)]).ok();
    copy(&made, &marked.before);
    mark(&[]);
    copy(&made, &marked.after);
    marked.prepare();
    ["1/2", "2/2"].iter().for_each(|number| _ = mark(&["--share", number]));
    copy(&made, &marked.before);
    kills += killed_everywhere(tracer, &marked, &[]);
    // Those of a search for repeated games beside its report; the commit writes the mark, too.
    let dedup = |more: &[&str]| run(&[&["dedup", text(&pack), "--mark", "again"], more].concat()).ok();
    let found = job("dedup", strings(&["commit", text(&report)]));
    fs::remove_dir_all(&made).unwrap();
    copy(&marked.after, &made);
    copy(&made, &found.before);
    let line = dedup(&["--json"]).out;
    copy(&made, &found.after);
    fs::write(found.after.join("report.json"), line).unwrap();
    found.prepare();
    ["1/2", "2/2"].iter().for_each(|number| _ = dedup(&["--share", number, "--output", text(&report)]));
    copy(&made, &found.before);
    kills += killed_everywhere(tracer, &found, &[]);
    assert!(kills > 10, "{kills} kills");
    println!("{kills} kills of shares and commits");
}
