//! Filtering: bad games are dropped by the rule that they break, good ones stay as they are.

use std::fs;

use super::folders::{V6, games, is_sound, names, spoil, tree};
use crate::command::{run, text};

/// Two games with a fault each, one that cannot be read, three good ones.
fn mixed() -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, games) = games("6");
    // All probabilities of frame 1 halved; the last frame's result turned.
    spoil(&games, 2, |records| {
        for value in records[V6 + 8..V6 + 8 + 4 * 1858].chunks_exact_mut(4) {
            let p = f32::from_le_bytes(value.try_into().unwrap());
            value.copy_from_slice(&if p > 0.0 { p / 2.0 } else { p }.to_le_bytes());
        }
    });
    spoil(&games, 4, |records| {
        let at = records.len() - V6 + 8276;
        records[at] ^= 1;
    });
    let half = fs::read(games.join("training.5.gz")).unwrap();
    fs::write(games.join("training.5.gz"), &half[..half.len() / 2]).unwrap();
    (folder, games)
}

#[test]
fn bad_games_are_dropped_by_reason_and_good_ones_stay_as_they_are() {
    let (folder, games) = mixed();
    let out = folder.path().join("out");
    let ran = run(&["filter", text(&games), text(&out), "--json"]);
    assert_eq!(ran.code, 1, "what cannot be read is a fault: {ran:?}");
    let done = ran.json();
    assert_eq!((&done["chunks"], &done["kept"]), (&6.into(), &3.into()), "{done}");
    assert_eq!((&done["dropped"]["policy_sum"], &done["dropped"]["side_to_move"]), (&1.into(), &1.into()), "{done}");
    assert_eq!(done["damaged"]["truncated"], 1);
    assert!(done["faults"][0].as_str().unwrap().contains("training.5.gz"));
    let before = tree(&games);
    let after = tree(&out);
    assert_eq!(names(&out), ["training.1.gz", "training.3.gz", "training.6.gz"]);
    assert!(after.iter().all(|file| before.contains(file)));
    assert!(is_sound(&out));
}

#[test]
fn rules_are_chosen_by_name() {
    let (folder, games) = mixed();
    fs::remove_file(games.join("training.5.gz")).unwrap();
    let kept = |name: &str, rules: &str| {
        let out = folder.path().join(name);
        run(&["filter", text(&games), text(&out), rules, "--json"]).ok().json()["kept"].as_u64().unwrap()
    };
    assert_eq!(kept("a", "--rules=policy_sum"), 4);
    assert_eq!(kept("b", "--rules=-policy_sum"), 4);
    assert_eq!(kept("c", "--rules=men,nan"), 5);
    let words = |rules: &'static str| ["filter", text(&games), "never", rules].map(str::to_owned);
    let wrong = run(&words("--rules=men,mne").each_ref().map(String::as_str));
    assert!(wrong.code == 2 && wrong.err.contains("`mne`") && wrong.err.contains("policy_sum"), "{wrong:?}");
}

#[test]
fn a_dry_run_tells_the_same_and_writes_nothing() {
    let (folder, games) = mixed();
    let out = folder.path().join("out");
    let words = ["filter", text(&games), text(&out)];
    let dry = run(&[&words[..], &["--dry-run", "--json"]].concat());
    assert!(dry.code == 1 && !out.exists(), "{dry:?}");
    let text = run(&[&words[..], &["--dry-run"]].concat()).out;
    assert!(text.contains("nothing was written") && text.contains("policy_sum"), "{text}");
    let wet = run(&[&words[..], &["--json"]].concat()).json();
    let dry = dry.json();
    for name in ["chunks", "kept", "changed", "dropped", "damaged", "frames_in", "frames_out", "counts"] {
        assert_eq!(dry[name], wet[name], "{name}");
    }
}
