//! Verifying: each rule finds what breaks it, with trajectory, step and member; good files have no fault.

use super::files::{Step, procgen, shard, steps};
use crate::command::{run, text};

#[test]
fn each_rule_finds_what_breaks_it_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demos.tar.zst");
    let good = steps(&[3, 4]);
    let check = |steps: &[Step]| run(&["verify", text(&shard(&path, steps)), "--json"]);
    let found = check(&good).ok().json();
    assert_eq!((&found["ok"], &found["checked"], &found["chunks"]), (&true.into(), &7.into(), &2.into()));
    assert_eq!(found["checks"].as_object().unwrap().len(), 7, "{found}");
    // A rule, what is done to step 4 (the second of trajectory 1), and the faults that it makes.
    type Break = fn(&mut Step);
    let rows: [(&str, Break, u64); 6] = [
        ("next_obs", |step| step.next_obs = 99, 1),
        ("next_obs", |step| step.obs = 99, 1),
        ("finite", |step| step.rew = f64::NAN, 1),
        ("finite", |step| step.rew = f64::INFINITY, 1),
        ("action_space", |step| step.act = 6, 1),
        ("action_space", |step| step.act = -1, 1),
    ];
    for (rule, harm, count) in rows {
        let mut bad = good.clone();
        harm(&mut bad[4]);
        let ran = check(&bad);
        let found = ran.json();
        assert_eq!(
            (ran.code, &found["fault_count"], &found["checks"][rule]),
            (1, &count.into(), &count.into()),
            "{found}"
        );
        let fault = &found["faults"][0];
        let step =
            if found["faults"][0]["detail"].as_str().unwrap().contains("follows") && bad[4].obs == 99 { 0 } else { 1 };
        assert_eq!(
            (&fault["rule"], &fault["chunk"], &fault["frame"]),
            (&rule.into(), &1.into(), &step.into()),
            "{fault}"
        );
        assert_eq!(fault["member"], format!("frame_{:03}", 3 + step), "{fault}");
    }
    // The border of a fragment: the end of trajectory 0 is not marked.
    let mut fused = good.clone();
    fused[2].done = false;
    let found = check(&fused).json();
    assert_eq!((&found["chunks"], &found["checks"]["next_obs"]), (&1.into(), &1.into()));
    assert!(found["faults"][0]["detail"].as_str().unwrap().contains("the border of a fragment"), "{found}");
    // What was cut without an end.
    let cut: Vec<Step> =
        good.iter().enumerate().map(|(t, step)| Step { truncated: Some(t == 1), ..step.clone() }).collect();
    let found = check(&cut).json();
    assert_eq!((&found["checks"]["truncated"], &found["faults"][0]["frame"]), (&1.into(), &1.into()), "{found}");
    let said = run(&["verify", text(&path)]);
    assert!(said.code == 1 && said.out.contains("chunk 0, frame 1") && said.out.contains("truncated"), "{said:?}");
}

#[test]
fn frames_out_of_order_and_missing_ones_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demos.tar");
    let whole = std::fs::read(shard(&path, &steps(&[3, 4]))).unwrap();
    // The samples of frames 1 and 2 change places; then frame 1 is left out.
    let at = |frame: usize| {
        let name = format!("frame_{frame:03}.acts.pickle");
        whole.windows(name.len()).position(|window| window == name.as_bytes()).unwrap()
    };
    let (one, two, three) = (at(1), at(2), at(3));
    let turned = [&whole[..one], &whole[two..three], &whole[one..two], &whole[three..]].concat();
    let gap = [&whole[..one], &whole[two..]].concat();
    for (bytes, count, says) in [(turned, 1, "in another order than that of time"), (gap, 2, "expected 1")] {
        std::fs::write(&path, bytes).unwrap();
        let ran = run(&["verify", text(&path), "--json"]);
        let found = ran.json();
        assert_eq!((ran.code, &found["fault_count"]), (1, &count.into()), "{found}");
        let told =
            |fault: &serde_json::Value| fault["rule"] == "frame" && fault["detail"].as_str().unwrap().contains(says);
        assert!(found["faults"].as_array().unwrap().iter().any(told), "{found}");
    }
    let mended = folder.path().join("mended.tar");
    std::fs::write(&path, [&whole[..one], &whole[two..three], &whole[one..two], &whole[three..]].concat()).unwrap();
    run(&["convert", text(&path), text(&mended)]).ok();
    run(&["verify", text(&mended)]).ok();
    assert_eq!(std::fs::read(&mended).unwrap(), whole);
}

#[test]
fn native_files_are_checked_as_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.pickle");
    procgen(&path, &[4, 3]);
    let found = run(&["verify", text(&path), "--json"]).ok().json();
    assert_eq!((&found["checked"], &found["chunks"]), (&7.into(), &2.into()));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let ran = run(&["verify", text(&path), "--json"]);
    assert_eq!((ran.code, &ran.json()["faults"][0]["kind"]), (1, &"truncated".into()));
}
