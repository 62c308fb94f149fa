//! What cannot be converted or split: the exit code, what is said, and that nothing is left behind.

use std::fs;

use gristmill_format::container::tar::TarWriter;

use super::files::{imitation, names, procgen, shard, steps};
use crate::command::{run, text};

#[test]
fn bad_input_says_why_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    procgen(&path("p.pickle"), &[3]);
    imitation(&path("i.npz"), &[3], 0.0);
    let good = shard(&path("demos.tar.zst"), &steps(&[3, 2]));
    let whole = fs::read(&good).unwrap();
    fs::write(path("cut.tar.zst"), &whole[..whole.len() - 9]).unwrap();
    let mut tar = TarWriter::new(Vec::new());
    tar.append("a.x.json", b"1").unwrap();
    fs::write(path("plain.tar"), tar.finish().unwrap()).unwrap();
    fs::write(path("games.tar.zst"), "no archive").unwrap();
    fs::write(path("bad.toml"), "[env_cfg]\ntask = \"x\"").unwrap();
    fs::create_dir(path("empty")).unwrap();
    fs::create_dir(path("mixed")).unwrap();
    procgen(&path("mixed/a.pickle"), &[3]);
    imitation(&path("mixed/b.npz"), &[3], 0.0);
    let before = names(folder.path());
    let (config, out) = (text(&path("bad.toml")).to_owned(), path("out/x.tar.zst"));
    let procgen = ["--benchmark", "procgen", "--task", "coinrun"];
    let rows: &[(&str, &[&str], i32, &str)] = &[
        ("p.pickle", &[], 2, "name it (atari, dm_control"),
        ("p.pickle", &["--benchmark", "procgen"], 2, "task_name"),
        ("p.pickle", &["--benchmark", "mujoco", "--task", "x"], 2, "`mujoco` is none"),
        ("p.pickle", &["--benchmark", "atari", "--task", "x"], 1, "a file of demo.procgen"),
        ("p.pickle", &["--config", &config], 2, "`task_name`"),
        ("p.pickle", &[&procgen[..], &["--n-traj", "2"]].concat(), 2, "1 trajectories have an end"),
        ("p.pickle", &[&procgen[..], &["--sample"]].concat(), 2, "--n-traj"),
        ("p.pickle", &[&procgen[..], &["--n-actions", "1"]].concat(), 1, "Discrete(1)"),
        ("p.pickle", &[&procgen[..], &["--level", "23"]].concat(), 2, "1 to 22"),
        ("p.pickle", &[&procgen[..], &["--to", "aligned48"]].concat(), 2, "the name of OUT decides the form"),
        ("demos.tar.zst", &["--task", "other"], 2, "the shards say themselves"),
        ("demos.tar.zst", &["--n-traj", "3"], 2, "2 trajectories have an end"),
        ("demos.tar.zst", &["--compat"], 2, "made of native files already"),
        ("demos.tar.zst", &["--seed", "1"], 2, "nothing is drawn"),
        ("cut.tar.zst", &[], 1, "cut.tar.zst"),
        ("plain.tar", &[], 1, "no `dones`"),
        ("games.tar.zst", &[], 1, "games.tar.zst"),
        ("mixed", &["--benchmark", "procgen", "--task", "x"], 1, "b.npz"),
        ("empty", &[], 1, "no demonstrations directly in it"),
        ("absent.pickle", &[], 1, "absent.pickle"),
    ];
    for (from, more, code, says) in rows {
        let ran = run(&[&["convert", text(&path(from)), text(&out)], *more].concat());
        assert!(ran.code == *code && ran.err.contains(says), "{from} {more:?}: {ran:?}");
        assert_eq!(names(folder.path()), before, "{from} {more:?}");
    }
    for (from, says) in
        [("p.pickle", "`convert` makes shards"), ("cut.tar.zst", "cut.tar.zst"), ("absent.tgz", "absent")]
    {
        let ran = run(&["split", text(&path(from)), text(&path("parts")), "--into", "a:1,b:1"]);
        assert!(ran.code != 0 && ran.err.contains(says), "{from}: {ran:?}");
        assert_eq!(names(folder.path()), before);
    }
    for (into, says) in [("a:1,a:1", "given twice"), ("a:0", "positive sum"), ("../a:1", "no name of a folder")] {
        let ran = run(&["split", text(&good), text(&path("parts")), "--into", into]);
        assert!(ran.code == 2 && ran.err.contains(says), "{into}: {ran:?}");
    }
    let share = run(&["split", text(&good), text(&path("parts")), "--into", "a:1,b:1", "--share", "1/2"]);
    assert!(share.code == 2 && share.err.contains("a side of demonstrations is one shard"), "{share:?}");
    for more in [&["--max-frames", "3"][..], &["--n-actions", "6"], &["--task", "x"]] {
        let ran = run(&[&["convert", text(&good), text(&path("x.npz"))], more].concat());
        assert!(ran.code == 2 && ran.err.contains("an .npz"), "{more:?}: {ran:?}");
    }
    let games = run(&["convert", text(&path("empty")), text(&path("games")), "--shuffle"]);
    assert!(games.code != 0, "{games:?}");
}

#[test]
fn what_is_there_stays_unless_it_is_to_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let from = shard(&folder.path().join("demos.tar.zst"), &steps(&[3, 2, 4]));
    for name in ["out.tar.zst", "out.npz"] {
        let to = folder.path().join(name);
        let words = ["convert", text(&from), text(&to), "--json"];
        let dry = run(&[&words[..], &["--dry-run"]].concat()).ok().json();
        assert_eq!((&dry["dry_run"], &dry["frames"]), (&true.into(), &9.into()));
        assert!(!to.exists());
        run(&words).ok();
        let before = fs::read(&to).unwrap();
        for more in [&["--n-traj", "1"][..], &["--n-traj", "1", "--dry-run"]] {
            let again = run(&[&words[..], more].concat());
            assert!(again.code == 1 && again.err.contains("it exists"), "{again:?}");
        }
        assert_eq!(fs::read(&to).unwrap(), before);
        run(&[&words[..], &["--overwrite", "--n-traj", "1"]].concat()).ok();
        assert_ne!(fs::read(&to).unwrap(), before);
    }
    assert_eq!(names(folder.path()), ["demos.tar.zst", "out.npz", "out.tar.zst"]);
}
