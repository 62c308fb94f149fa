//! Stagings that end in every way: published, killed at any step, given up, and made by other users.

use std::fs;
use std::io;
use std::path::Path;

use super::plan::MOST;
use super::staging::{Found, Staging, is_interrupted, is_staged, place_of};
use super::{Left, State, left_in};
use crate::error::Error;

const PLAN: &str = ".publish.json";

fn stage(target: &Path, files: &[(&str, &str)]) -> Staging {
    let (staging, found) = Staging::open(target, "job", "test").unwrap();
    assert_eq!(found, Found::Nothing);
    for (name, text) in files {
        fs::write(staging.path(name), text).unwrap();
    }
    staging
}

/// What a job that was killed leaves: these files, this plan with its token.
fn killed(target: &Path, files: &[(&str, &str)], plan: &str) {
    let staging = stage(target, files);
    staging.keep();
    let note: serde_json::Value = serde_json::from_slice(&fs::read(staging.path(".job.json")).unwrap()).unwrap();
    let token = format!("{{\"token\":{},", note["token"]);
    fs::write(staging.path(PLAN), plan.replacen('{', &token, 1)).unwrap();
}

fn listed(target: &Path) -> Vec<(String, String)> {
    let mut found: Vec<_> = fs::read_dir(target)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    found
}

fn pairs<const N: usize>(files: [(&str, &str); N]) -> Vec<(String, String)> {
    files.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec()
}

#[test]
fn staged_files_replace_what_was_there_all_together() {
    let target = tempfile::tempdir().unwrap();
    for name in ["a", "old", "other"] {
        fs::write(target.path().join(name), "before").unwrap();
    }
    let staging = stage(target.path(), &[("a", "one"), ("b", "two")]);
    assert!(is_staged(target.path(), "job") && !is_interrupted(target.path(), "job"));
    staging.publish(&["old".into(), "never".into(), "never/c".into(), "a".into()]).unwrap();
    assert_eq!(listed(target.path()), pairs([("a", "one"), ("b", "two"), ("other", "before")]));
}

#[test]
fn an_interruption_at_any_step_is_rolled_forward() {
    for (moved, removed) in [(0, false), (1, false), (2, false), (2, true)] {
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join("old"), "before").unwrap();
        fs::write(target.path().join("a"), "before").unwrap();
        killed(target.path(), &[("a", "one"), ("b", "two")], r#"{"remove":["old","a"],"publish":["a","b"]}"#);
        for name in ["a", "b"].iter().take(moved) {
            fs::rename(target.path().join(".job.part").join(name), target.path().join(name)).unwrap();
        }
        if removed {
            fs::remove_file(target.path().join("old")).unwrap();
        }
        assert!(is_interrupted(target.path(), "job"));
        let left = Left::of(target.path(), "job").unwrap().unwrap();
        assert_eq!(*left.state(), State::Planned { begun: moved > 0, publish: 2, remove: 1 });
        drop(left);
        let (staging, found) = Staging::open(target.path(), "job", "test").unwrap();
        assert_eq!((found, staging.names().unwrap().len()), (Found::Published, 0));
        drop(staging);
        assert_eq!(listed(target.path()), pairs([("a", "one"), ("b", "two")]));
    }
}

#[test]
fn files_in_folders_go_with_the_others_and_empty_folders_go() {
    let target = tempfile::tempdir().unwrap();
    fs::create_dir(target.path().join("old")).unwrap();
    fs::write(target.path().join("old/c"), "before").unwrap();
    let staging = stage(target.path(), &[("a", "one")]);
    fs::create_dir(staging.path("in")).unwrap();
    ["x", "y"].iter().for_each(|name| fs::write(staging.path("in").join(name), *name).unwrap());
    assert_eq!(staging.names().unwrap(), ["a", "in/x", "in/y"]);
    staging.publish(&["old/c".into()]).unwrap();
    assert!(!target.path().join("old").exists() && !is_staged(target.path(), "job"));
    assert_eq!(fs::read_to_string(target.path().join("in/y")).unwrap(), "y");
    // Interrupted between the two files of a folder.
    killed(target.path(), &[], r#"{"remove":["a","in/x"],"publish":["on/x","on/y"]}"#);
    fs::create_dir(target.path().join(".job.part/on")).unwrap();
    fs::create_dir(target.path().join("on")).unwrap();
    fs::write(target.path().join(".job.part/on/y"), "y").unwrap();
    fs::write(target.path().join("on/x"), "x").unwrap();
    let (staging, found) = Staging::open(target.path(), "job", "test").unwrap();
    assert_eq!((found, staging.names().unwrap().len()), (Found::Published, 0));
    staging.discard().unwrap();
    assert!(!target.path().join("in/x").exists() && target.path().join("in/y").exists());
    assert_eq!(listed(&target.path().join("on")), pairs([("x", "x"), ("y", "y")]));
}

#[test]
fn one_job_at_a_time_and_unfinished_ones_are_found() {
    let target = tempfile::tempdir().unwrap();
    let staging = stage(target.path(), &[("a", "one")]);
    let busy = Staging::open(target.path(), "job", "test").unwrap_err();
    assert!(matches!(busy, Error::Path { kind: io::ErrorKind::ResourceBusy, .. }), "{busy}");
    staging.keep();
    drop(staging);
    let (staging, found) = Staging::open(target.path(), "job", "other").unwrap();
    assert_eq!((found, staging.job(), staging.names().unwrap()), (Found::Unfinished, "test", vec!["a".to_owned()]));
    staging.discard().unwrap();
    assert!(listed(target.path()).is_empty());
}

#[test]
fn what_nobody_can_go_on_with_goes_with_the_job() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("new/target");
    drop(stage(&target, &[("a", "one")]));
    assert!(!target.exists(), "made for the job, and empty again");
    let staging = stage(root.path(), &[("a", "one")]);
    staging.keep();
    drop(staging);
    drop(Staging::open(root.path(), "job", "other").unwrap());
    assert!(is_staged(root.path(), "job"), "another one checked it, and left it");
    let (mut staging, _) = Staging::open(root.path(), "job", "other").unwrap();
    staging.clear("other").unwrap();
    assert_eq!(staging.job(), "other");
    drop(staging);
    assert!(!is_staged(root.path(), "job"));
}

#[test]
fn a_kill_while_the_plan_or_a_file_is_written_loses_nothing() {
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("old"), "before").unwrap();
    let staging = stage(target.path(), &[("a", "one"), (".publish.json.part", "{\"rem"), (".a.part", "on")]);
    staging.keep();
    drop(staging);
    let (staging, found) = Staging::open(target.path(), "job", "test").unwrap();
    assert_eq!((found, staging.names().unwrap()), (Found::Unfinished, vec!["a".to_owned()]));
    fs::write(staging.path(".b.part"), "in the making").unwrap();
    staging.publish(&["old".into()]).unwrap();
    assert_eq!(listed(target.path()), pairs([("a", "one")]));
}

#[test]
fn a_file_that_is_missing_is_noticed_before_anything_is_removed() {
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("old"), "before").unwrap();
    killed(target.path(), &[("a", "one")], r#"{"remove":["old"],"publish":["a","b"]}"#);
    let said = Staging::open(target.path(), "job", "test").unwrap_err().to_string();
    assert!(said.contains("neither staged nor in its place"), "{said}");
    assert!(target.path().join("old").exists() && !target.path().join("a").exists());
}

#[test]
fn a_plan_of_an_earlier_version_that_lists_itself_is_finished() {
    let target = tempfile::tempdir().unwrap();
    // It removed first, and then failed on the name that there never was.
    let folder = target.path().join(".job.part");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(PLAN), r#"{"remove":["a"],"publish":[".publish.json.part","a","b"]}"#).unwrap();
    ["a", "b"].iter().for_each(|name| fs::write(folder.join(name), *name).unwrap());
    assert_eq!(left_in(target.path()).unwrap(), ["job"]);
    let left = Left::of(target.path(), "job").unwrap().unwrap();
    assert_eq!(*left.state(), State::Planned { begun: true, publish: 2, remove: 0 });
    left.finish().unwrap();
    assert_eq!(listed(target.path()), pairs([("a", "a"), ("b", "b")]));
}

#[test]
fn a_plan_without_the_token_of_its_staging_is_not_carried_out() {
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("kept"), "kept").unwrap();
    for plan in [r#"{"token":"7","remove":["kept"],"publish":[]}"#, r#"{"remove":["kept"],"publish":[]}"#] {
        let staging = stage(target.path(), &[(PLAN, plan)]);
        staging.keep();
        drop(staging);
        let said = Staging::open(target.path(), "job", "test").unwrap_err().to_string();
        assert!(said.contains("does not belong") && said.contains("gristmill recover"), "{said}");
        let left = Left::of(target.path(), "job").unwrap().unwrap();
        assert!(matches!(left.state(), State::Refused(_)));
        left.give_up().unwrap();
    }
    assert_eq!(listed(target.path()), pairs([("kept", "kept")]));
}

#[test]
fn a_plan_that_is_too_large_is_not_parsed() {
    let target = tempfile::tempdir().unwrap();
    for (len, parsed) in [(MOST, true), (MOST + 1, false)] {
        killed(target.path(), &[], r#"{"remove":[],"publish":[]}"#);
        let plan = fs::File::options().write(true).open(place_of(target.path(), "job", PLAN)).unwrap();
        plan.set_len(len).unwrap();
        let left = Left::of(target.path(), "job").unwrap().unwrap();
        let State::Refused(why) = left.state() else { panic!("{:?}", left.state()) };
        assert_eq!(why != "this is no plan", parsed, "zeros follow it, and a parser says where: {why}");
        left.give_up().unwrap();
    }
}

#[test]
fn plans_reach_nothing_outside_their_folder() {
    let root = tempfile::tempdir().unwrap();
    let (target, mine) = (root.path().join("pack"), root.path().join("mine"));
    fs::create_dir(&mine).unwrap();
    for name in ["../mine/a", "/etc/hostname", "x/../../mine/a", "link/a", "..", ".job.part/a", ""] {
        fs::create_dir_all(&target).unwrap();
        fs::write(mine.join("a"), "mine").unwrap();
        fs::write(target.join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(&mine, target.join("link")).unwrap();
        for list in ["remove", "publish"] {
            let other = if list == "remove" { "publish" } else { "remove" };
            killed(&target, &[], &format!("{{\"{list}\":[\"kept\",\"{name}\"],\"{other}\":[]}}"));
            let said = Staging::open(&target, "job", "test").unwrap_err().to_string();
            assert!(said.contains("is no name of a file") || said.contains("a link or a file lies"), "{name}: {said}");
            let left = Left::of(&target, "job");
            if let Ok(Some(left)) = left {
                assert!(!matches!(left.state(), State::Unfinished { .. }), "{name}");
                left.give_up().unwrap();
            } else {
                fs::remove_dir_all(target.join(".job.part")).unwrap();
            }
            assert_eq!(fs::read_to_string(mine.join("a")).unwrap(), "mine", "{name}");
            assert_eq!(fs::read_to_string(target.join("kept")).unwrap(), "kept", "{name}");
        }
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn stagings_that_are_links_or_hold_links_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let (target, mine) = (root.path().join("pack"), root.path().join("mine"));
    fs::create_dir_all(&target).unwrap();
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("a"), "mine").unwrap();
    std::os::unix::fs::symlink(&mine, target.join(".job.part")).unwrap();
    let said = Staging::open(&target, "job", "test").unwrap_err().to_string();
    assert!(said.contains("a link"), "{said}");
    assert!(!is_interrupted(&target, "job"));
    let left = Left::of(&target, "job").unwrap().unwrap();
    assert!(matches!(left.state(), State::Refused(_)));
    left.give_up().unwrap();
    let staging = stage(&target, &[]);
    staging.keep();
    std::os::unix::fs::symlink(mine.join("a"), staging.path("b")).unwrap();
    drop(staging);
    let said = Staging::open(&target, "job", "test").unwrap_err().to_string();
    assert!(said.contains("this is a link"), "{said}");
    Left::of(&target, "job").unwrap().unwrap().give_up().unwrap();
    let staging = stage(&target, &[]);
    fs::hard_link(mine.join("a"), staging.path("b")).unwrap();
    assert!(staging.owned().unwrap_err().to_string().contains("other names"));
    drop(staging);
    let staging = stage(&target, &[]);
    fs::create_dir(staging.path("marks")).unwrap();
    fs::write(staging.path("marks/a"), "new").unwrap();
    std::os::unix::fs::symlink(&mine, target.join("marks")).unwrap();
    assert!(staging.publish(&[]).is_err());
    assert_eq!(listed(&mine), pairs([("a", "mine")]));
    assert!(!is_staged(&target, "job"));
}

#[test]
fn what_was_replaced_by_nothing_goes_back() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join(".out.part/replaced")).unwrap();
    fs::write(root.path().join(".out.part/replaced/a"), "before").unwrap();
    let left = Left::of(root.path(), "out").unwrap().unwrap();
    assert_eq!(*left.state(), State::Replaced);
    left.give_up().unwrap();
    assert_eq!(listed(&root.path().join("out")), pairs([("a", "before")]));
    assert!(left_in(root.path()).unwrap().is_empty());
}

#[test]
fn what_is_left_says_of_which_job_it_is_and_whether_only_its_publication_is_missing() {
    for (files, complete) in [
        (&[][..], false),
        (&[("a", "one"), ("b", "two")][..], false),
        (&[("a", "one"), ("manifest.json", "{}")][..], true),
    ] {
        let target = tempfile::tempdir().unwrap();
        stage(target.path(), files).keep();
        let left = Left::of(target.path(), "job").unwrap().unwrap();
        let names: Vec<String> = files.iter().map(|(name, _)| name.to_string()).collect();
        let expected = if names.is_empty() { State::Nothing } else { State::Unfinished { files: names } };
        assert_eq!((left.state(), left.job()), (&expected, "test"));
        assert_eq!((left.is_complete(&["other", "test"]), left.is_complete(&["other"])), (complete, false));
        left.give_up().unwrap();
        assert!(Left::of(target.path(), "job").unwrap().is_none());
    }
}

#[test]
fn a_file_from_elsewhere_is_brought_whole_to_where_the_job_stages_it() {
    let (target, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("a"), "one").unwrap();
    let staging = stage(target.path(), &[]);
    fs::write(staging.path(".a.part"), "left by a process that was killed").unwrap();
    staging.bring(from.path(), "a").unwrap();
    assert_eq!(fs::read_to_string(place_of(target.path(), "job", "a")).unwrap(), "one");
    assert!(staging.bring(from.path(), "none").is_err());
    assert_eq!(staging.names().unwrap(), ["a"]);
}

#[test]
fn what_was_in_the_making_goes_and_what_is_staged_stays() {
    for (files, expected) in [(&[][..], Found::Nothing), (&[("a", "one")][..], Found::Unfinished)] {
        let target = tempfile::tempdir().unwrap();
        let staging = stage(target.path(), files);
        fs::write(staging.path(".b.part"), "half").unwrap();
        staging.keep();
        drop(staging);
        let (staging, found) = Staging::open(target.path(), "job", "test").unwrap();
        assert_eq!((found, staging.names().unwrap().len()), (expected, files.len()));
        assert!(!staging.path(".b.part").exists() && staging.path(".job.json").exists());
    }
}

#[test]
fn a_file_and_a_folder_do_not_take_each_others_place() {
    for (staged, there) in [(false, false), (false, true), (true, false), (true, true)] {
        let target = tempfile::tempdir().unwrap();
        let make = |folder, path: &Path| if folder { fs::create_dir(path) } else { fs::write(path, "a") };
        make(there, &target.path().join("c")).unwrap();
        let staging = stage(target.path(), &[("b", "two")]);
        make(staged, &staging.path("c")).unwrap();
        let published = staging.publish(&[]).is_ok();
        assert_eq!(
            (published, target.path().join("b").exists()),
            (staged == there, staged == there),
            "{staged}, {there}"
        );
    }
}

#[test]
fn a_staging_with_a_pipe_is_refused() {
    let target = tempfile::tempdir().unwrap();
    let staging = stage(target.path(), &[("a", "one")]);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, staging.path("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    staging.keep();
    drop(staging);
    let left = Left::of(target.path(), "job").unwrap().unwrap();
    assert!(matches!(left.state(), State::Refused(why) if why.contains("pipe: this is neither")), "{:?}", left.state());
}
