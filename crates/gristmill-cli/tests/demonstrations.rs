//! What `inspect` and `verify` say of demonstrations: metadata, counts, a step as a table, and what is wrong.

use std::fs;

use crate::command::{run, text};
use gristmill_format::container::gzip;
use gristmill_format::container::tar::TarWriter;

/// Metadata as its writers pickle it: spaces of six actions, configuration of one key.
const METADATA: &[u8] =
    b"(dVenv_cfg\n(dVtask_name\nVpong\nssVobservation_space\ncgym.spaces.discrete\nDiscrete\n)\x81}(Vn\nI6\nubsV\
action_space\ncgym.spaces.discrete\nDiscrete\n)\x81}(Vn\nI6\nubs.";

/// A shard of two trajectories, one of them cut.
fn shard() -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    tar.append("_metadata.meta.pickle", METADATA).unwrap();
    for (i, done) in ["I00\n.", "I01\n.", "I00\n."].into_iter().enumerate() {
        tar.append(&format!("frame_{i:03}.acts.pickle"), format!("I{i}\n.").as_bytes()).unwrap();
        tar.append(&format!("frame_{i:03}.dones.pickle"), done.as_bytes()).unwrap();
        tar.append(&format!("frame_{i:03}.rews.json"), format!("{i}.5").as_bytes()).unwrap();
        tar.append(&format!("frame_{i:03}.obs.pickle"), format!("I{i}\n.").as_bytes()).unwrap();
    }
    tar.finish().unwrap()
}

#[test]
fn a_shard_is_inspected_by_name_or_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("demos.tar", shard()), ("demos.tgz", gzip::compress(1, &shard()).unwrap())] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let seen = run(&["inspect", text(&path), "--frame", "1", "--json"]).ok().json();
        assert_eq!((seen["format"].as_str(), seen["chunks"].as_u64()), (Some("demo.shard"), Some(2)));
        assert_eq!((seen["frames"].as_u64(), seen["bad_chunks"].as_u64()), (Some(3), Some(0)));
        assert_eq!(seen["about"]["env_cfg"], r#"{"task_name":"pong"}"#);
        assert_eq!(seen["about"]["action_space"], "Discrete(6)");
        let values = seen["frame"]["values"].as_array().unwrap();
        assert_eq!((values[0]["name"].as_str(), values[0]["min"].as_f64()), (Some("acts"), Some(1.0)));
        assert_eq!((values[2]["dtype"].as_str(), values[2]["mean"].as_f64()), (Some("<f8"), Some(1.5)));
        let said = run(&["inspect", text(&path)]).ok().out;
        for line in
            ["2 chunks, 3 frames", "action_space: Discrete(6)", "chunk 0, frame 0 of 2", "  rews   <f8             0.5"]
        {
            assert!(said.contains(line), "{line}\n{said}");
        }
        run(&["verify", text(&path)]).ok();
        let stats = run(&["stats", text(&path), "--json"]).ok().json();
        assert_eq!((stats["chunks"].as_u64(), stats["frames"].as_u64()), (Some(2), Some(3)));
        assert_eq!(stats["demos"]["length"]["max"].as_u64(), Some(2));
    }
}

#[test]
fn what_is_wrong_with_a_shard_is_said_with_its_member() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demos.tgz");
    let mut bytes = shard();
    let at = bytes.windows(4).position(|w| w == b"I00\n").unwrap();
    bytes[at] = b'?';
    fs::write(&path, gzip::compress(1, &bytes).unwrap()).unwrap();
    let checked = run(&["verify", text(&path), "--json"]);
    assert_eq!(checked.code, 1);
    let fault = &checked.json()["faults"][0];
    assert_eq!((fault["kind"].as_str(), fault["member"].as_str()), (Some("corrupt"), Some("frame_000.dones.pickle")));
    assert!(fault["file"].as_str().unwrap().ends_with("demos.tgz") && fault["offset"].is_u64(), "{fault}");
    let seen = run(&["inspect", text(&path)]);
    assert!(seen.code != 0 && seen.err.contains("frame_000.dones.pickle"), "{seen:?}");
}
