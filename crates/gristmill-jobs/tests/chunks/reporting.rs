//! Reports and marks that shares make: the commit writes the bytes of one process; bad calls are refused.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_format::chess::Version;
use gristmill_generate::{G2048Generator, G2048Options};
use gristmill_jobs::commit::{Made, commit};
use gristmill_jobs::mark::{self, MarkOptions, Which, mark};
use gristmill_jobs::reports::{Reported, Sharing};
use gristmill_jobs::shares::{CommitOptions, Share, shares};
use gristmill_jobs::stats::{self, StatsOptions};
use gristmill_jobs::values::{ValuesOptions, values};
use gristmill_jobs::verify::{self, Verification, VerifyOptions};
use serde::Serialize;

use crate::fixture::{games, input, packed};

/// Loose games, a tar, a damaged game and a text; a pack of several files, one of them with a damaged game; a pack of one file;
/// games of 2048, loose and as a pack of rows.
fn corpus(root: &Path) -> Vec<PathBuf> {
    let loose = input();
    let place = root.join("loose");
    fs::rename(loose.path(), &place).unwrap();
    fs::write(place.join("bad.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    fs::write(place.join("notes.txt"), "no game").unwrap();
    let more = root.join("more");
    games(&more, 100, 9, Version::V6, None);
    packed(&more, &root.join("packs/several"), |_| {}).unwrap();
    packed(&more, &root.join("one"), |options| options.shard_rows = None).unwrap();
    let file = root.join("packs/several/games-00001.chunks");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 40].fill(0x55);
    fs::write(&file, bytes).unwrap();
    let logs = root.join("logs");
    let options = G2048Options {
        folder: logs.clone(),
        games: 5,
        first: 1,
        seed: 5,
        depth: 0,
        moves_max: 40,
        level: 1,
        threads: 1,
    };
    G2048Generator::new(options).unwrap().run(&mut |_| {}).unwrap();
    packed(&logs, &root.join("packs/rows"), |options| options.shard_rows = Some(50)).unwrap();
    let rows = root.join("packs/rows");
    let steps = fs::read_dir(&rows).unwrap().map(|entry| entry.unwrap().path());
    let steps = steps.filter(|path| path.extension().is_some_and(|end| end == "npy")).min().unwrap();
    let mut bytes = fs::read(&steps).unwrap();
    let last = bytes.len() - 48;
    bytes[last..last + 24].fill(0xee);
    fs::write(&steps, bytes).unwrap();
    ["loose", "packs", "one", "logs", "packs/several"].map(|name| root.join(name)).to_vec()
}

fn sharing(output: &Path, number: u32, of: u32) -> Sharing {
    Sharing { output: output.to_owned(), share: Share::new(number, of).unwrap(), dry_run: false }
}

/// The report of shares that were made in another order, and what the commit says.
fn committed(out: &Path, of: u32, share: impl Fn(&Sharing) -> gristmill_engine::Result<Reported>) -> (String, Made) {
    let output = out.join(format!("of{of}.json"));
    for number in (1..=of).rev() {
        assert!(!share(&sharing(&output, number, of)).unwrap().share.there);
    }
    let committed = commit(&CommitOptions { output: output.clone(), ..CommitOptions::default() }, &mut |_| {}).unwrap();
    let text = fs::read_to_string(&output).unwrap();
    fs::remove_file(&output).unwrap();
    assert_eq!(fs::read_dir(out).unwrap().count(), 0, "a commit leaves nothing over");
    (text, committed.made)
}

fn counted(paths: &[PathBuf], of: u32) -> String {
    let (out, options) = (tempfile::tempdir().unwrap(), StatsOptions { workers: 2, ..StatsOptions::default() });
    committed(out.path(), of, |sharing| stats::share(paths, &options, sharing, &mut |_| {})).0
}

fn verified(options: &VerifyOptions, of: u32) -> (String, Verification) {
    let out = tempfile::tempdir().unwrap();
    match committed(out.path(), of, |sharing| verify::share(options, sharing, &mut |_, _| {})) {
        (text, Made::Verification(found)) => (text, *found),
        other => panic!("{other:?}"),
    }
}

fn line(what: &impl Serialize) -> String {
    serde_json::to_string(what).unwrap() + "\n"
}

#[test]
fn parts_of_statistics_are_those_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    let whole = stats::stats(&paths, &StatsOptions::default(), &mut |_| {}).unwrap();
    assert!(whole.bad_chunks > 0 && whole.skipped > 0, "{whole:?}");
    assert!(whole.g2048.as_ref().is_some_and(|found| found.games == 10) && whole.start.positions > 10, "{whole:?}");
    for of in [1, 2, 7, 60] {
        assert_eq!(counted(&paths, of), line(&whole), "{of} shares");
        let one = [root.path().join("one")];
        let of_one = stats::stats(&one, &StatsOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(counted(&one, of), line(&of_one), "{of} shares of one file");
    }
}

#[test]
fn one_file_of_a_pack_is_cut_by_its_games() {
    let root = tempfile::tempdir().unwrap();
    let one = [corpus(root.path())[2].clone()];
    let output = root.path().join("report.json");
    let share = |number| stats::share(&one, &StatsOptions::default(), &sharing(&output, number, 3), &mut |_| {});
    let games = |number| share(number).unwrap().chunks;
    let each = [1, 2, 3].map(games);
    // The database takes as many bytes as the games of so small a pack.
    assert!(each[0] > 0 && each[1] > 0 && each.iter().sum::<u64>() == 9, "{each:?}");
}

#[test]
fn parts_of_a_verification_are_those_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    for max_faults in [0, 2, 100] {
        let options = VerifyOptions { workers: 2, max_faults, ..VerifyOptions::new(paths.clone()) };
        let whole = verify::verify(&options, &mut |_, _| {}).unwrap();
        assert!(whole.fault_count > 5 && whole.checks.values().filter(|count| **count > 0).count() > 3, "{whole:?}");
        assert_eq!(whole.faults.len(), max_faults.min(whole.fault_count as usize));
        for of in [1, 2, 7, 60] {
            let (text, found) = verified(&options, of);
            assert_eq!(text, line(&whole), "{of} shares, {max_faults} faults");
            let drawn =
                |found: &Verification| found.examples.iter().map(|one| one.row.drawing.clone()).collect::<Vec<_>>();
            assert_eq!(drawn(&found), drawn(&whole));
        }
    }
}

/// A pack of rows of 2048 in seven files, with values beside them.
fn rows_2048(root: &Path) -> PathBuf {
    let logs = root.join("logs");
    let (folder, pack) = (logs.clone(), root.join("rows"));
    let options = G2048Options { folder, games: 5, first: 1, seed: 5, depth: 0, moves_max: 40, level: 1, threads: 1 };
    G2048Generator::new(options).unwrap().run(&mut |_| {}).unwrap();
    packed(&logs, &pack, |options| options.shard_rows = Some(30)).unwrap();
    values(&ValuesOptions::new(&pack), &mut |_, _| {}).unwrap();
    pack
}

/// Changes the rows of a file, each of 48 bytes.
fn changed(file: &Path, change: impl Fn(&mut Vec<&mut [u8]>)) {
    let mut bytes = fs::read(file).unwrap();
    let header = bytes.len() % 48 + 48 * ((bytes.len() - 30 * 48) / 48);
    change(&mut bytes[header..].chunks_exact_mut(48).collect());
    fs::write(file, bytes).unwrap();
}

#[test]
fn packs_of_rows_are_cut_and_their_faults_come_in_the_order_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let pack = rows_2048(root.path());
    let steps = |number: u32| pack.join(format!("steps-{number:05}.npy"));
    assert!(steps(6).exists());
    let compared = |what: &str, least: u64| {
        let paths = vec![root.path().to_owned()];
        for (max_faults, of) in [(100, 2), (3, 9)] {
            let options = VerifyOptions { workers: 2, max_faults, ..VerifyOptions::new(paths.clone()) };
            let whole = verify::verify(&options, &mut |_, _| {}).unwrap();
            assert!(whole.fault_count >= least, "{what}: {whole:?}");
            assert_eq!(verified(&options, of).0, line(&whole), "{what}: {of} shares, {max_faults} faults");
        }
        let whole = stats::stats(&paths, &StatsOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(counted(&paths, 5), line(&whole), "{what}");
    };
    compared("nothing wrong", 0);
    let several = [1, 2, 3, 4, 5, 6, 7].map(|number| {
        let output = root.path().join("one.json");
        let share =
            verify::share(&VerifyOptions::new(vec![pack.clone()]), &sharing(&output, number, 7), &mut |_, _| {});
        share.unwrap().frames
    });
    assert!(several.iter().filter(|rows| **rows > 0).count() > 3 && several.iter().sum::<u64>() == 200, "{several:?}");
    fs::remove_dir_all(root.path().join("one.json.shares")).unwrap();
    // A row of nonsense, a run that the database does not list, and rows of the first run after others.
    changed(&steps(1), |rows| rows[7][..40].fill(0xee));
    changed(&steps(3), |rows| rows[9][0] = 77);
    changed(&steps(3), |rows| rows[20][0] = 0);
    changed(&steps(5), |rows| rows[2][0] = 0);
    compared("rows", 5);
    let manifest = pack.join("manifest.json");
    let said = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, said.replace("steps-00002", "steps-00009")).unwrap();
    compared("files of the manifest", 7);
    fs::write(&manifest, "{").unwrap();
    compared("the manifest", 6);
    fs::write(&manifest, said).unwrap();
    let cut = |number: u32, bytes: u64| {
        let file = fs::OpenOptions::new().write(true).open(steps(number)).unwrap();
        file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
    };
    cut(4, 10);
    cut(2, 300);
    compared("files that end too early", 7);
    fs::write(steps(0), "junk").unwrap();
    compared("a file of junk", 8);
    fs::write(pack.join("metadata.db"), "junk").unwrap();
    compared("a database of junk", 9);
    fs::remove_file(pack.join("valuation_types.json")).unwrap();
    compared("no names", 9);
    fs::remove_file(steps(6)).unwrap();
    compared("a file less", 9);
}

#[test]
fn a_path_without_data_is_a_fault_of_all_shares_together() {
    let root = tempfile::tempdir().unwrap();
    let (texts, there) = (root.path().join("texts"), root.path().join("games"));
    fs::create_dir(&texts).unwrap();
    (0..5).for_each(|i| fs::write(texts.join(format!("{i}.txt")), "no game").unwrap());
    games(&there, 1, 4, Version::V6, None);
    let options = VerifyOptions::new(vec![texts, there]);
    let whole = verify::verify(&options, &mut |_, _| {}).unwrap();
    assert!(whole.fault_count == 1 && whole.faults[0].detail.contains("nothing to verify"), "{whole:?}");
    for of in [1, 3, 20] {
        assert_eq!(verified(&options, of).0, line(&whole), "{of} shares");
    }
}

#[test]
fn a_comparison_with_sources_by_shares_is_that_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    corpus(root.path());
    fs::create_dir(root.path().join("texts")).unwrap();
    fs::write(root.path().join("texts/notes.txt"), "no game").unwrap();
    let mut found = Vec::new();
    for sources in ["loose", "packs", "more", "texts"] {
        let against = Some(root.path().join(sources));
        let options = VerifyOptions { against, max_faults: 3, ..VerifyOptions::new(vec![root.path().join("one")]) };
        let whole = verify::verify(&options, &mut |_, _| {}).unwrap();
        found.push((whole.chunks > 0, whole.fault_count));
        for of in [1, 3, 20] {
            assert_eq!(verified(&options, of).0, line(&whole), "{of} shares of {sources}");
        }
    }
    assert!(found[0].1 > 3, "games that are not in the pack: {found:?}");
    assert!(found[1].0 && found[1].1 > 0, "a game that cannot be read: {found:?}");
    assert_eq!(found[2..], [(true, 0), (false, 1)]);
    let (out, one) = (tempfile::tempdir().unwrap(), root.path().join("one"));
    let output = out.path().join("report.json");
    let share = |pack: &str, sources: &str| {
        let against = Some(root.path().join(sources));
        let options = VerifyOptions { against, ..VerifyOptions::new(vec![root.path().join(pack)]) };
        verify::share(&options, &sharing(&output, 1, 2), &mut |_, _| {}).map_err(|e| e.to_string())
    };
    share("one", "more").unwrap();
    assert!(share("one", "loose").unwrap_err().contains("against: "));
    fs::rename(&one, root.path().join("first")).unwrap();
    packed(&root.path().join("more"), &one, |options| options.shard_rows = Some(100)).unwrap();
    assert!(share("one", "more").unwrap_err().contains("pack: "), "another pack at the same path");
}

#[test]
fn inputs_that_cannot_be_listed_make_no_shares() {
    let root = tempfile::tempdir().unwrap();
    let sharing = sharing(&root.path().join("report"), 1, 2);
    fs::create_dir(root.path().join("empty")).unwrap();
    for name in ["empty", "gone"] {
        let paths = vec![root.path().join(name)];
        let refused = stats::share(&paths, &StatsOptions::default(), &sharing, &mut |_| {}).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("share"), "{refused}");
        let refused = verify::share(&VerifyOptions::new(paths), &sharing, &mut |_, _| {}).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "what was refused left nothing");
}

#[test]
fn a_share_of_a_report_is_made_once_and_only_by_its_plan() {
    let (games, out) = (input(), tempfile::tempdir().unwrap());
    let paths = vec![games.path().to_owned()];
    let output = out.path().join("report.json");
    let options = VerifyOptions::new(paths.clone());
    let share = |options: &VerifyOptions, number| verify::share(options, &sharing(&output, number, 2), &mut |_, _| {});
    let dry = Sharing { dry_run: true, ..sharing(&output, 1, 2) };
    let dry = verify::share(&options, &dry, &mut |_, _| {}).unwrap();
    assert!(dry.dry_run && dry.files == 0 && fs::read_dir(out.path()).unwrap().count() == 0, "{dry:?}");
    let first = share(&options, 1).unwrap();
    let again = share(&options, 1).unwrap();
    assert!(!first.share.there && again.share.there && again.frames == first.frames && first.frames > 0, "{again:?}");
    let refused = |e: gristmill_engine::Error, says: &str| assert!(e.to_string().contains(says), "{e}");
    refused(share(&VerifyOptions { max_faults: 7, ..options.clone() }, 2).unwrap_err(), "max_faults: 100 there, 7 now");
    let as_stats = stats::share(&paths, &StatsOptions::default(), &sharing(&output, 2, 2), &mut |_| {});
    refused(as_stats.unwrap_err(), "the job: verify there, stats now");
    let against = VerifyOptions { against: Some(games.path().to_owned()), ..options.clone() };
    refused(share(&against, 2).unwrap_err(), "is no pack of whole games");
    let within = sharing(&games.path().join("report"), 1, 2);
    refused(verify::share(&options, &within, &mut |_, _| {}).unwrap_err(), "lies within");
    let missing = CommitOptions { output: output.clone(), ..CommitOptions::default() };
    refused(commit(&missing, &mut |_| {}).unwrap_err(), "1 of 2 shares are done; 2/2 is missing");
    share(&options, 2).unwrap();
    assert_eq!(shares(&output).unwrap().done, 2);
    fs::write(&output, "mine").unwrap();
    refused(commit(&missing, &mut |_| {}).unwrap_err(), "there is a file already: overwrite replaces it");
    let dry = CommitOptions { dry_run: true, ..missing.clone() };
    commit(&dry, &mut |_| {}).unwrap();
    assert_eq!(fs::read_to_string(&output).unwrap(), "mine");
    let kept = out.path().join("kept");
    copy(&out.path().join("report.json.shares"), &kept);
    commit(&CommitOptions { overwrite: true, ..missing.clone() }, &mut |_| {}).unwrap();
    refused(commit(&missing, &mut |_| {}).unwrap_err(), "committed already");
    refused(share(&options, 1).unwrap_err(), "there is a file already");
    // A commit that was killed before it removed the shares.
    fs::rename(&kept, out.path().join("report.json.shares")).unwrap();
    commit(&missing, &mut |_| {}).unwrap();
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() { copy(&entry.path(), &to) } else { _ = fs::copy(entry.path(), to).unwrap() }
    }
}

#[test]
fn shares_of_a_mark_are_the_mark_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    let folder = &paths[2];
    let file = folder.join("marks/late.mark");
    let open = || selection::open(folder, Residence::Mapped).unwrap();
    for rule in ["plies_left < 20", "visits > (SELECT 300)", "plies_left > 999"] {
        let options = MarkOptions::new("late");
        let whole = mark(&open(), &Which::Rule(rule.to_owned()), &options, &mut |_, _| {}).unwrap();
        let bytes = fs::read(&file).unwrap();
        for of in [1, 2, 7, 60] {
            fs::remove_file(&file).unwrap();
            let share = |number, rule: &str| {
                mark::share(&open(), rule, &options, Share::new(number, of).unwrap(), &mut |_, _| {})
            };
            let made: Vec<_> = (1..=of).rev().map(|number| share(number, rule).unwrap()).collect();
            assert_eq!(made.iter().map(|part| part.marked).sum::<u64>(), whole.marked);
            assert!(made.iter().all(|part| part.asked.abs_diff(whole.frames / u64::from(of)) <= 1), "{made:?}");
            let other = share(1, "plies_left < 21").unwrap_err().to_string();
            assert!(other.contains("rule: "), "{other}");
            let options = CommitOptions { output: folder.clone(), ..CommitOptions::default() };
            match commit(&options, &mut |_| {}).unwrap().made {
                Made::Mark(marked) => assert_eq!((marked.marked, marked.frames), (whole.marked, whole.frames)),
                other => panic!("{other:?}"),
            }
            assert!(fs::read(&file).unwrap() == bytes, "{of} shares of {rule}");
            let again = share(1, rule).unwrap_err().to_string();
            assert!(again.contains("there is a mark `late` already"), "{again}");
            assert!(commit(&options, &mut |_| {}).unwrap_err().to_string().contains("committed already"));
        }
        fs::remove_file(&file).unwrap();
    }
    let wrong =
        mark::share(&open(), "nothing = 1", &MarkOptions::new("bad"), Share::new(1, 2).unwrap(), &mut |_, _| {});
    assert!(wrong.is_err());
    let stand = shares(folder).unwrap();
    assert!(stand.failed == 1 && stand.shares[0].why.as_ref().unwrap().contains("nothing"), "{stand:?}");
}
