//! Appends, publications and merges that are killed at calls by which they change the disk: nothing is lost, nothing diverges,
//! and there is always a way out. Without `GRISTMILL_KILLS`, the tests kill at every fourth kind of call. With it, the tests of packs
//! kill N times each, and the tests of commits and reports at every kind of call.
#![allow(clippy::print_stdout, reason = "a skipped test says so, and how much happened")]

mod commits;
mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::command::{Ran, generate, gristmill, run, text};
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::pack::metadata::Metadata;

/// The bytes of each file below `folder`, hidden files too, by its path in `folder`.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

/// What is killed: the words of the command without its folders, and the words that finish it where it left something.
struct Job {
    name: &'static str,
    words: Vec<String>,
    resume: Vec<String>,
    /// The pack before, and after the job was never killed.
    before: PathBuf,
    after: PathBuf,
    target: PathBuf,
    /// Packs that it deletes in the end: where they are kept, and where it finds them.
    inputs: Vec<(PathBuf, PathBuf)>,
}

impl Job {
    /// Everything as it was before the job.
    fn prepare(&self) {
        _ = fs::remove_dir_all(&self.target);
        copy(&self.before, &self.target);
        for (kept, input) in &self.inputs {
            _ = fs::remove_dir_all(input);
            copy(kept, input);
        }
    }

    /// Whether the packs that go in are all there as they were.
    fn has_inputs(&self) -> bool {
        self.inputs.iter().all(|(kept, input)| input.exists() && holds(kept) == holds(input))
    }
}

/// The tracer, where there is a compiler and the system lets a process be traced.
fn tracer() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kills/tracer.c");
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tracer-{}", std::process::id()));
        let built = Command::new("cc").args(["-O1", "-o", text(&to), text(&source)]).output().ok()?;
        let report = to.with_extension("report");
        let runs = Command::new(&to).args(["/nowhere", "0", text(&report), "/bin/true"]).status().ok()?;
        _ = fs::remove_file(report);
        (built.status.success() && runs.success()).then_some(to)
    };
    let built = BUILT.get_or_init(|| if cfg!(target_os = "linux") { build() } else { None });
    built.as_deref()
}

/// Runs a job and kills it at call `number`, or not where that is 0: the calls that it came to.
fn traced(tracer: &Path, job: &Job, number: usize) -> Vec<String> {
    let report = job.target.with_extension("report");
    let binary = gristmill(&[]).get_program().to_owned();
    let mut command = Command::new(tracer);
    command.args([text(&job.target), &number.to_string(), text(&report)]).arg(binary).args(&job.words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).status().unwrap();
    assert!(matches!(ended.code(), Some(0 | 137)), "{}: {ended}", job.name);
    let calls = fs::read_to_string(&report).unwrap().lines().map(str::to_owned).collect();
    fs::remove_file(report).unwrap();
    calls
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Everything in a pack but what is hidden: files with their bytes, the database with what it holds.
fn holds(pack: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(pack).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name == "metadata.db" {
            found.insert(name, database(&entry.path()));
        } else if !name.starts_with('.') {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    found
}

fn database(path: &Path) -> Vec<u8> {
    let mut lines = Vec::new();
    if let Ok(metadata) = Metadata::open(path) {
        let mut runs = Vec::new();
        metadata
            .runs(&mut |run| {
                runs.push(format!("{run:?}"));
                Ok(())
            })
            .unwrap();
        metadata
            .extras(&mut |extra| {
                lines.push(format!("{extra:?}"));
                Ok(())
            })
            .unwrap();
        lines.extend(runs);
    } else {
        Games::open(path)
            .unwrap()
            .each(&mut |game| {
                lines.push(format!("{game:?}"));
                Ok(())
            })
            .unwrap();
    }
    lines.join("\n").into_bytes()
}

fn words(words: &[String]) -> Ran {
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Kills the job at call `number` and takes one of the ways out; the call.
fn killed(tracer: &Path, job: &Job, number: usize, way: usize) -> String {
    job.prepare();
    let call = traced(tracer, job, number).last().cloned().unwrap_or_default();
    let about = |what: &str| format!("{}, killed at call {number}, `{call}`, way {way}: {what}", job.name);
    let (before, after, now) = (holds(&job.before), holds(&job.after), holds(&job.target));
    let between = job.target.join(".pack.part/.publish.json").exists();
    let judged = run(&["verify", text(&job.target)]);
    if between {
        assert_eq!(judged.code, 1, "{}", about("a pack between the two is not sound"));
    } else {
        assert!(now == before || now == after, "{}", about("the pack is neither the old one nor the new one"));
        assert_eq!(judged.code, i32::from(now.is_empty()), "{}", about(&judged.out));
    }
    // Nothing is deleted before what was made of it is there.
    assert!(now == after || job.has_inputs(), "{}", about("a pack that goes in is not as it was"));
    match way {
        // What was being done is resumed.
        0 => {
            let ran = words(&job.resume);
            assert!(ran.code == 0 || holds(&job.target) == after, "{}", about(&ran.err));
        }
        // It is run again, and says what to do where that does not go.
        1 => {
            let ran = words(&job.words);
            // Of packs that were being deleted when it was killed, what they held is in the new one.
            let whole = !job.has_inputs() && holds(&job.target) == after;
            assert!(
                ran.code == 0 || whole || ran.err.contains("--resume") || ran.err.contains("--overwrite"),
                "{}",
                about(&ran.err)
            );
        }
        // What was left is finished, or the words say how to resume it.
        2 => {
            let ran = run(&["recover", text(&job.target)]);
            assert!(ran.code == 0 || ran.out.contains("resume") || ran.out.contains("again"), "{}", about(&ran.out));
        }
        // What was left is given up, or was begun and can only be finished.
        _ => {
            let ran = run(&["recover", text(&job.target), "--abandon"]);
            if ran.code == 0 {
                assert!(holds(&job.target) == now && !job.target.join(".pack.part").exists(), "{}", about("given up"));
                assert!(now == before || now == after, "{}", about("the old pack is there again"));
            } else {
                assert!(between && ran.out.contains("only be finished"), "{}", about(&ran.out));
                run(&["recover", text(&job.target)]).ok();
            }
        }
    }
    // Whatever was done, the job comes to its end and makes what it would have made.
    if holds(&job.target) != after || job.target.join(".pack.part").exists() {
        words(&job.resume);
    }
    if holds(&job.target) != after {
        words(&job.words);
    }
    if job.target.join(".pack.part").exists() {
        run(&["recover", text(&job.target)]).ok();
    }
    assert!(!job.target.join(".pack.part").exists(), "{}", about("something is left"));
    let verified = run(&["verify", text(&job.target)]);
    assert_eq!(verified.code, 0, "{}", about(&verified.out));
    assert!(holds(&job.target) == after, "{}", about("it is not what was never killed"));
    call
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Generates two folders of games of 2048, `rows-1` and `rows-2`.
fn games_of_2048(root: &Path) {
    for (folder, seed) in [("rows-1", "1"), ("rows-2", "9")] {
        let to = root.join(folder);
        let words =
            ["generate", "2048", text(&to), "--games", "3", "--seed", seed, "--moves-max", "60", "--depth", "0"];
        run(&words).ok();
    }
}

/// Generates two folders of games of chess, `chess-1` and `chess-2`.
fn games_of_chess(root: &Path) {
    generate(&root.join("chess-1"), "3", &[]);
    generate(&root.join("chess-2"), "2", &["--first", "4"]);
}

/// Jobs over packs of 2048. They add games in shards and in one file, replace a pack, make values, and make a first pack.
fn rows(root: &Path) -> Vec<Job> {
    games_of_2048(root);
    vec![
        added(root, "append-shards", "rows", &["--shard-rows", "50"], "--append"),
        added(root, "append-file", "rows", &[], "--append"),
        added(root, "overwrite-shards", "rows", &["--shard-rows", "70"], "--overwrite"),
        added(root, "values", "rows", &[], "--values"),
        first(root, "first-rows", "rows"),
    ]
}

/// Jobs over packs of chess. They add games, replace a pack, and make a first pack.
fn chess(root: &Path) -> Vec<Job> {
    games_of_chess(root);
    vec![
        added(root, "append-chess", "chess", &["--shard-rows", "40"], "--append"),
        added(root, "overwrite-chess", "chess", &[], "--overwrite"),
        first(root, "first-chess", "chess"),
    ]
}

/// Copies the games of both folders of `kind` into one folder, and returns its path.
fn all(root: &Path, kind: &str) -> PathBuf {
    let all = root.join(format!("{kind}-all"));
    for part in ["1", "2"] {
        copy(&root.join(format!("{kind}-{part}")), &all);
    }
    all
}

/// A job over a pack of the first folder of games of `kind`. `how` says what the job does: it adds the games of the second folder, replaces
/// the pack by one of all games, or makes values. `shape` has further options of `pack`.
fn added(root: &Path, name: &'static str, kind: &str, shape: &[&str], how: &str) -> Job {
    let at = |end: &str| root.join(format!("{name}{end}"));
    let (before, after, target) = (at("-0"), at("-9"), at(""));
    let (some, all) = (root.join(format!("{kind}-1")), all(root, kind));
    let one = ["--threads", "1"];
    run(&[&["pack", "--input", text(&some), "--output", text(&before)][..], &one, shape].concat()).ok();
    copy(&before, &after);
    let make = |to: &Path, how: &str| match how {
        "--values" => strings(&["values", text(to), "--threads", "1"]),
        _ => strings(&[&["pack", "--input", text(&all), "--output", text(to), how][..], &one, shape].concat()),
    };
    words(&make(&after, how)).ok();
    let resume = if how == "--values" { make(&target, how) } else { make(&target, "--resume") };
    Job { name, words: make(&target, how), resume, before, after, target, inputs: Vec::new() }
}

/// A job that packs all games of `kind` into an empty folder.
fn first(root: &Path, name: &'static str, kind: &str) -> Job {
    let at = |end: &str| root.join(format!("{name}{end}"));
    let (before, after, target, games) = (at("-0"), at("-9"), at(""), all(root, kind));
    fs::create_dir(&before).unwrap();
    let pack = |to: &Path| strings(&["pack", text(&games), text(to), "--threads", "1"]);
    words(&pack(&after)).ok();
    let (words, resume) = (pack(&target), [pack(&target), strings(&["--resume"])].concat());
    Job { name, words, resume, before, after, target, inputs: Vec::new() }
}

/// Packs merged: into nothing, in place of another pack, and with those that go in deleted.
fn merges(root: &Path) -> Vec<Job> {
    let at = |name: &str| root.join(name);
    games_of_2048(root);
    games_of_chess(root);
    for kind in ["rows", "chess"] {
        for part in ["1", "2"] {
            let (from, to) = (at(&format!("{kind}-{part}")), at(&format!("{kind}-pack-{part}")));
            run(&["pack", "--input", text(&from), "--output", text(&to), "--threads", "1"]).ok();
        }
    }
    let merge = |name: &'static str, kind: &str, how: &[&str]| {
        let (before, after, target) = (at(&format!("{name}-0")), at(&format!("{name}-9")), at(name));
        match how.contains(&"--overwrite") {
            true => copy(&at(&format!("{kind}-pack-1")), &before),
            false => fs::create_dir(&before).unwrap(),
        }
        let kept = ["1", "2"].map(|part| at(&format!("{kind}-pack-{part}")));
        // What is done to packs whose names begin with that of the job's own is traced, too.
        let beside = |part: &PathBuf| at(&format!("{name}.of.{}", part.file_name().unwrap().to_str().unwrap()));
        let deletes = how.contains(&"--delete-inputs");
        let inputs: Vec<(PathBuf, PathBuf)> =
            kept.iter().filter(|_| deletes).map(|part| (part.clone(), beside(part))).collect();
        let words = |packs: &[PathBuf], to: &Path| {
            let packs: Vec<&str> = packs.iter().map(|pack| text(pack)).collect();
            strings(&[&["merge"], packs.as_slice(), &["--out", text(to), "--threads", "1"], how].concat())
        };
        let made = Job { name, words: Vec::new(), resume: Vec::new(), before, after, target, inputs };
        made.prepare();
        copy(&made.before, &made.after);
        let packs = if deletes { made.inputs.iter().map(|(_, input)| input.clone()).collect() } else { kept.to_vec() };
        self::words(&words(&packs, &made.after)).ok();
        let words = words(&packs, &made.target);
        Job { resume: words.clone(), words, ..made }
    };
    vec![
        merge("merge-shards", "rows", &["--shard-rows", "50"]),
        merge("merge-overwrite", "rows", &["--overwrite"]),
        merge("merge-games", "chess", &["--overwrite"]),
        merge("merge-delete", "rows", &["--overwrite", "--delete-inputs"]),
        merge("merge-delete-games", "chess", &["--delete-inputs"]),
    ]
}

/// The number of kills of each test of packs, as `GRISTMILL_KILLS` sets it. Returns `None` if it is not set.
fn wanted() -> Option<usize> {
    std::env::var("GRISTMILL_KILLS").ok().and_then(|n| n.parse().ok())
}

/// Chooses the calls at which a test kills a job, counted from 1. It takes one call of each kind that `seen` lacks under `data`, or every
/// fourth of these if `GRISTMILL_KILLS` is not set. Two calls are of one kind if they differ only in digits. It leaves out calls that only
/// force data to the disk: a kill there shows nothing more.
fn places(calls: &[String], data: &str, seen: &mut BTreeSet<String>) -> Vec<usize> {
    let mut places = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        let kind: String = call.chars().filter(|c| !c.is_ascii_digit()).collect();
        let shown = !call.contains("-shm") && !call.contains("sync");
        if shown && seen.insert(format!("{data} {kind}")) && (wanted().is_some() || seen.len().is_multiple_of(4)) {
            places.push(i + 1);
        }
    }
    places
}

/// Kills each job at its [`places`]. If `GRISTMILL_KILLS` is set, kills that number of times, spread over all calls of all jobs.
fn killed_everywhere(jobs: fn(&Path) -> Vec<Job>) {
    let Some(tracer) = tracer() else {
        println!("skipped: no C compiler here, or processes cannot be traced");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    let jobs = jobs(&root);
    let calls: Vec<Vec<String>> = jobs
        .iter()
        .map(|job| {
            job.prepare();
            let calls = traced(tracer, job, 0);
            assert!(holds(&job.target) == holds(&job.after), "{}: it makes the same each time", job.name);
            calls
        })
        .collect();
    let mut kills = 0;
    if let Some(wanted) = wanted() {
        let all: Vec<(usize, usize)> =
            calls.iter().enumerate().flat_map(|(job, calls)| (1..=calls.len()).map(move |n| (job, n))).collect();
        for i in 0..wanted {
            // Fewer kills than places are spread over all of them.
            let (job, number) = all[if wanted < all.len() { i * all.len() / wanted } else { i % all.len() }];
            let call = killed(tracer, &jobs[job], number, (i + i / all.len()) % 4);
            kills += usize::from(!call.is_empty());
        }
    } else {
        let mut seen = BTreeSet::new();
        for (job, calls) in jobs.iter().zip(&calls) {
            let data = job.name.split('-').next().unwrap();
            for number in places(calls, data, &mut seen) {
                killed(tracer, job, number, kills % 4);
                kills += 1;
            }
        }
    }
    assert!(kills > 10 || wanted().is_some_and(|wanted| wanted <= 10), "{kills} kills");
    let each: Vec<String> =
        jobs.iter().zip(&calls).map(|(job, calls)| format!("{} {}", job.name, calls.len())).collect();
    println!("{kills} kills; calls that change the disk: {}", each.join(", "));
}

#[test]
fn packing_rows_that_is_killed_at_any_change_of_the_disk_loses_nothing() {
    killed_everywhere(rows);
}

#[test]
fn packing_games_that_is_killed_at_any_change_of_the_disk_loses_nothing() {
    killed_everywhere(chess);
}

#[test]
fn merging_that_is_killed_at_any_change_of_the_disk_loses_nothing() {
    killed_everywhere(merges);
}
