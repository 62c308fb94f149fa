//! What killed jobs leave, and packs of other users: finished, given up, or refused, and nothing elsewhere is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::command::{Ran, generate, gristmill, run, text};

/// Logs of a few games.
fn logs(folder: &Path, seed: &str) -> PathBuf {
    let words = ["generate", "2048", text(folder), "--games", "3", "--seed", seed, "--moves-max", "60", "--depth", "0"];
    run(&words).ok();
    folder.to_owned()
}

fn pack(input: &Path, output: &Path, how: &[&str]) -> Ran {
    run(&[&["pack", "--input", text(input), "--output", text(output)][..], how].concat())
}

fn visible(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut found: Vec<_> = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn an_append_that_ended_before_it_began_starts_again() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let (rows, games) = (logs(&at("rows"), "1"), at("games"));
    generate(&games, "3", &[]);
    for (input, kind) in [(&rows, "rows"), (&games, "games")] {
        for way in ["--append", "--resume"] {
            for left in ["an empty folder", "half a database", "a database without a word"] {
                let output = at("pack");
                pack(input, &output, &[]).ok();
                let before = visible(&output);
                let staging = output.join(".pack.part");
                fs::create_dir(&staging).unwrap();
                let database = fs::read(output.join("metadata.db")).unwrap();
                match left {
                    "an empty folder" => {}
                    "half a database" => {
                        fs::write(staging.join("metadata.db"), &database[..database.len() / 2]).unwrap()
                    }
                    _ => fs::write(staging.join("metadata.db"), &database).unwrap(),
                }
                let ran = pack(input, &output, &[way]);
                assert_eq!(ran.code, 0, "{kind}, {way}, {left}: {ran:?}");
                assert!(visible(&output) == before && !staging.exists(), "{kind}, {way}, {left}");
                fs::remove_dir_all(output).unwrap();
            }
        }
    }
}

#[test]
fn a_publication_that_an_earlier_version_could_not_finish_is_finished() {
    ["recover", "--resume"].iter().for_each(|way| finished(way));
}

fn finished(way: &str) {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (logs(&root.path().join("logs"), "1"), root.path().join("pack"));
    pack(&input, &output, &[]).ok();
    let before = visible(&output);
    let staging = output.join(".pack.part");
    fs::create_dir(&staging).unwrap();
    let names: Vec<String> = before.iter().map(|(name, _)| name.clone()).collect();
    let published = [&[".publish.json.part".to_owned()][..], &names].concat();
    let plan = serde_json::json!({"remove": names, "publish": published});
    names.iter().for_each(|name| fs::rename(output.join(name), staging.join(name)).unwrap());
    fs::write(staging.join(".publish.json"), plan.to_string()).unwrap();
    let judged = run(&["verify", text(&output)]);
    assert!(judged.code == 1 && judged.out.contains("gristmill recover"), "{judged:?}");
    let refused = run(&["recover", text(&output), "--abandon"]);
    assert!(refused.code == 1 && refused.out.contains("only be finished"), "{refused:?}");
    if way == "recover" {
        let done = run(&["recover", text(&output), "--json"]).ok().json();
        assert_eq!((done["clean"].as_bool(), done["found"][0]["fate"].as_str()), (Some(true), Some("finished")));
    } else {
        pack(&input, &output, &[way]).ok();
    }
    assert!(visible(&output) == before && !staging.exists());
    assert!(run(&["recover", text(&output)]).ok().out.contains("no job left anything"));
}

#[test]
fn a_pack_that_one_was_given_reaches_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let input = logs(&at("logs"), "1");
    let mine = at("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("thesis"), "mine").unwrap();
    fs::write(mine.join("a.mark"), "mine").unwrap();
    let ways: [&[&str]; 5] =
        [&["pack", "--resume"], &["pack", "--append"], &["pack", "--overwrite"], &["values"], &["recover"]];
    type Trap<'a> = (&'a str, &'a dyn Fn(&Path));
    let traps: [Trap<'_>; 5] = [
        ("a plan that leads elsewhere", &|pack| {
            fs::create_dir(pack.join(".pack.part")).unwrap();
            let plan = r#"{"remove":["../mine/thesis"],"publish":[]}"#;
            fs::write(pack.join(".pack.part/.publish.json"), plan).unwrap();
        }),
        ("a plan with its token that overwrites", &|pack| {
            fs::create_dir(pack.join(".pack.part")).unwrap();
            fs::create_dir(pack.join(".pack.part/mine")).unwrap();
            fs::write(pack.join(".pack.part/mine/thesis"), "theirs").unwrap();
            symlink("../mine", pack.join("mine")).unwrap();
            fs::write(pack.join(".pack.part/.job.json"), r#"{"token":"7","job":"append"}"#).unwrap();
            let plan = r#"{"token":"7","remove":[],"publish":["mine/thesis"]}"#;
            fs::write(pack.join(".pack.part/.publish.json"), plan).unwrap();
        }),
        ("a staging that is a link", &|pack| symlink("../mine", pack.join(".pack.part")).unwrap()),
        ("a database that is a link", &|pack| {
            fs::create_dir(pack.join(".pack.part")).unwrap();
            symlink("../../mine/thesis", pack.join(".pack.part/metadata.db")).unwrap();
        }),
        ("files in the making that are links", &|pack| {
            for name in ["manifest.json", "lineage.json", "values.json", "metadata.db", "steps.npy"] {
                symlink("../mine/thesis", pack.join(format!(".{name}.part"))).unwrap();
            }
        }),
    ];
    for (what, trap) in traps {
        for way in ways {
            let given = at("given");
            pack(&input, &given, &[]).ok();
            trap(&given);
            let ran = match way {
                ["pack", how] => pack(&input, &given, &[how]),
                _ => run(&[way, &[text(&given)]].concat()),
            };
            assert!(ran.code >= 0, "{what}, {way:?}: {ran:?}");
            assert_eq!(fs::read_to_string(mine.join("thesis")).unwrap(), "mine", "{what}, {way:?}: {ran:?}");
            if what.contains("leads elsewhere") || what.contains("overwrites") {
                assert!(ran.code != 0, "{what}, {way:?}: {ran:?}");
            }
            run(&["recover", text(&given), "--abandon"]).ok();
            assert_eq!(fs::read_to_string(mine.join("thesis")).unwrap(), "mine", "{what}, {way:?}, given up");
            assert!(!given.join(".pack.part").exists() && run(&["verify", text(&given)]).code == 0, "{what}, {way:?}");
            fs::remove_dir_all(given).unwrap();
        }
    }
    let given = at("given");
    pack(&input, &given, &[]).ok();
    symlink("../mine", given.join("marks")).unwrap();
    let ran = run(&["mark", text(&given), "a", "--rule", "step_index < 5", "--replace"]);
    assert!(ran.code != 0 && ran.err.contains("link"), "{ran:?}");
    assert_ne!(run(&["mark", text(&given), "a", "--remove"]).code, 0);
    assert_eq!(fs::read_to_string(mine.join("a.mark")).unwrap(), "mine");
}

#[test]
fn a_file_size_limit_is_said_with_what_is_left() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (logs(&root.path().join("logs"), "1"), root.path().join("pack"));
    let limited = |blocks: &str, more: &[&str]| {
        let words = [&["pack", "--input", text(&input), "--output", text(&output)][..], more].concat();
        let script = format!("ulimit -f {blocks}; exec \"$@\"");
        let binary = gristmill(&[]).get_program().to_owned();
        let mut command = std::process::Command::new("bash");
        let ran = command.args(["-c", &script, "bash"]).arg(binary).args(words).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    // Nothing was packed when the limit was reached.
    let (code, said) = limited("1", &[]);
    assert_eq!(code, Some(1), "an error, and no signal: {said}");
    assert!(said.contains("nothing of it is left"), "{said}");
    assert!(!output.exists() || visible(&output).is_empty());
    // Some games were.
    let (code, said) = limited("40", &["--checkpoint-rows", "10", "--shard-rows", "1000000"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(output.join(".pack.part").exists(), "{said}");
    assert!(said.contains("ulimit -f") && !said.contains("cannot be read"), "what failed is the output: {said}");
    assert!(said.contains("--resume") && said.contains("--abandon") && said.contains(".pack.part"), "{said}");
    // What was packed resumes, and an end before the last row is resumed or given up.
    let (code, said) = limited("20", &["--checkpoint-rows", "10", "--shard-rows", "1000000", "--resume"]);
    assert!(code == Some(1) && said.contains("--abandon"), "{said}");
    let given_up = run(&["pack", "--output", text(&output), "--abandon"]).ok();
    assert!(given_up.out.contains("removed"), "{given_up:?}");
    pack(&input, &output, &["--resume"]).ok();
    assert_eq!(run(&["verify", text(&output)]).code, 0);
}

/// Runs on a file system of its own with too little space, in a mount namespace; then there is space, and the pack resumes.
const FULL_DISK: &str = r#"
disk=$1 size=$2 input=$3 gristmill=$4
mount -t tmpfs -o size="$size" none "$disk" || exit 77
"$gristmill" pack "$input" "$disk/pack" --checkpoint-rows 10 --shard-rows 1000000
code=$?
[[ -e $disk/pack/.pack.part ]] && more=--resume || more=
echo "left:$more"
mount -o remount,size=64m "$disk" || exit 78
"$gristmill" pack "$input" "$disk/pack" --checkpoint-rows 10 --shard-rows 1000000 $more --quiet || exit 79
"$gristmill" verify "$disk/pack" --quiet || exit 80
exit "$code"
"#;

/// Runs the command `words` in a mount namespace of its own, as its root user.
fn namespace(words: &[&str]) -> std::io::Result<std::process::Output> {
    std::process::Command::new("unshare").args(["-rm"]).args(words).output()
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn a_full_disk_is_said_and_what_is_left_resumes() {
    let root = tempfile::tempdir().unwrap();
    let (input, disk) = (logs(&root.path().join("logs"), "1"), root.path().join("disk"));
    fs::create_dir(&disk).unwrap();
    let trial = ["bash", "-c", "mount -t tmpfs none \"$1\"", "bash", text(&disk)];
    if !namespace(&trial).is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: no mount namespace can be made here (unshare -rm)");
        return;
    }
    let binary = gristmill(&[]).get_program().to_owned();
    let mut resumed = 0;
    for size in ["4k", "48k", "96k", "128k", "160k"] {
        let words = ["bash", "-c", FULL_DISK, "bash", text(&disk), size, text(&input), binary.to_str().unwrap()];
        let ran = namespace(&words).unwrap();
        let (out, said) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        assert_eq!(ran.status.code(), Some(1), "{size}: {out}{said}");
        assert!(said.contains("disk is full") || said.contains("No space left"), "{size}: {said}");
        if out.contains("left:--resume") {
            resumed += 1;
            assert!(
                said.contains("make room") && said.contains("--resume") && said.contains("--abandon"),
                "{size}: {said}"
            );
        } else {
            assert!(said.contains("nothing of it is left"), "{size}: {said}");
        }
    }
    assert!(resumed > 0, "no size let a checkpoint through");
}

/// A script that makes a share on a disk of 48 KiB until the disk is full, then enlarges the disk, and makes and commits all shares. It
/// exits with the code of the first share. Its arguments are the place of the disk, the games, and the program.
const FULL_OF_SHARES: &str = r#"
disk=$1 input=$2 gristmill=$3
mount -t tmpfs -o size=48k none "$disk" || exit 77
"$gristmill" pack "$input" "$disk/pack" --share 1/2
code=$?
"$gristmill" shares "$disk/pack"
mount -o remount,size=64m "$disk" || exit 78
for share in 1 2; do "$gristmill" pack "$input" "$disk/pack" --share $share/2 --quiet || exit 79; done
"$gristmill" commit "$disk/pack" --quiet || exit 80
"$gristmill" verify "$disk/pack" --quiet || exit 81
[[ $(ls "$disk") == pack ]] || exit 82
exit "$code"
"#;

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn a_share_on_a_full_disk_fails_by_name_and_is_made_when_there_is_room() {
    let root = tempfile::tempdir().unwrap();
    let (input, disk) = (logs(&root.path().join("logs"), "1"), root.path().join("disk"));
    fs::create_dir(&disk).unwrap();
    if !namespace(&["bash", "-c", "mount -t tmpfs none \"$1\"", "bash", text(&disk)])
        .is_ok_and(|ran| ran.status.success())
    {
        eprintln!("skipped: no mount namespace can be made here (unshare -rm)");
        return;
    }
    let binary = gristmill(&[]).get_program().to_owned();
    let words = ["bash", "-c", FULL_OF_SHARES, "bash", text(&disk), text(&input), binary.to_str().unwrap()];
    let ran = namespace(&words).unwrap();
    let (out, said) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert_eq!(ran.status.code(), Some(1), "{out}{said}");
    assert!(said.contains("disk is full") || said.contains("No space left"), "{said}");
    assert!(out.contains("0 of 2 shares are done"), "{out}");
}
