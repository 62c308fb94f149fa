//! States as documents: what is compared of them, what is refused, and what a lane has.

use serde_json::{Value, json};

use super::*;
use crate::preset::{Lc0Preset, Weighted, lc0};

fn config() -> DataLoaderConfig {
    let directories = vec![Weighted { directory: "a".into(), weight: 1.0 }];
    lc0(&Lc0Preset { directories, ..Lc0Preset::default() }).unwrap()
}

fn noted(config: &DataLoaderConfig) -> Value {
    fingerprint(config, &plan(config).unwrap())
}

#[test]
fn what_changes_no_batch_is_no_difference() {
    let (own, mut other) = (config(), config());
    for stage in &mut other.stage {
        if let Some(files) = &mut stage.file_path_provider {
            (files.directory, files.watch) = ("elsewhere".into(), Some(false));
        }
    }
    for lanes in [None, Some(1)] {
        other.lanes = lanes;
        assert_eq!(differences(&other, &noted(&own)).unwrap(), [""; 0], "{lanes:?}");
        assert_eq!(noted(&other), noted(&own), "{lanes:?}");
    }
    let files =
        noted(&other)["stage"].as_array().unwrap().iter().find_map(|stage| stage.get("file_path_provider")).cloned();
    assert_eq!(files.unwrap()["watch"], true, "as states have it");
    other.lanes = Some(2);
    let said = differences(&other, &noted(&own)).unwrap();
    assert!(said.len() == 1 && said[0].starts_with("lanes: saved null, configured 2"), "{said:?}");
    let mut twice = noted(&own);
    twice["stage"].as_array_mut().unwrap().pop();
    assert!(differences(&own, &twice).unwrap()[0].starts_with("stage: saved ["), "another number of stages");
}

#[test]
fn a_state_of_another_seed_is_refused() {
    let mut config = config();
    let state = json!({
        "gristmill_state": 4, "of": "stream", "config": noted(&config), "seed": 7, "files": {}, "outputs": {},
    });
    let text = document::seal(state.to_string()).unwrap();
    for (seed, is_taken) in [(None, true), (Some(7), true), (Some(8), false)] {
        config.seed = seed;
        let read = parse(&text, &config, &plan(&config).unwrap());
        assert_eq!(read.is_ok(), is_taken, "{seed:?}");
        let e = read.map_or_else(|e| e.to_string(), |_| String::new());
        assert_eq!(e.contains("seed: saved 7, configured 8"), !is_taken, "{e}");
    }
}

#[test]
fn documents_are_compared_field_by_field_and_lists_of_one_length_place_by_place() {
    let said = |saved: Value, now: Value| {
        let mut differences = Vec::new();
        compare("", &saved, &now, &mut differences);
        differences
    };
    assert_eq!(said(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), [""; 0]);
    let found = said(json!({"a": [1, {"b": 2}], "c": 3}), json!({"a": [0, {"b": 4}], "d": 5}));
    let expected = [
        "a[0]: saved 1, configured 0",
        "a[1].b: saved 2, configured 4",
        "c: saved 3, configured null",
        "d: saved null, configured 5",
    ];
    assert_eq!(found, expected);
    assert_eq!(said(json!([1, 2]), json!([1])), [": saved [1,2], configured [1]"]);
}

#[test]
fn numbers_that_no_run_reaches_are_refused_with_their_place() {
    let fits = json!({"size": BOUND, "mtime": BOUND, "list": [BOUND - 1, "text"]});
    bounded("files", &fits).unwrap();
    for (value, place) in [(json!({"a": [1, {"b": BOUND}]}), "files.a[1].b"), (json!(BOUND + 1), "files")] {
        let e = bounded("files", &value).unwrap_err().to_string();
        assert!(e.contains(&format!("{place}: 1759218604441")) && e.contains("2^44"), "{e}");
    }
}

#[test]
fn a_lane_has_what_its_steps_hold_by_input_and_source() {
    let row = |branch, source, chunk, frame| Row { slot: 0, branch, from: Provenance { source, chunk, frame } };
    let own = |own: Value, rows: Vec<Row>| Standing { own, rows };
    let steps = [
        ("sample", SAMPLER, own(json!(9), vec![row(4, 7, 1, 2), row(3, 7, 0, 5), row(4, 7, 3, 0)])),
        ("mix", "batch_mixer", own(json!([1, 2]), vec![row(5, 2, 0, 0)])),
    ];
    let lane = LaneState::of(Vec::new(), 3, &own(json!([6, [0.5, 1.5]]), Vec::new()), steps.into_iter());
    assert_eq!((lane.join(), lane.reservoir_draws), (json!([6, [0.5, 1.5]]), 9));
    let rows = |held: &HeldRows| {
        let row =
            |row: Option<(u32, Provenance)>| row.map(|(input, from)| (input, from.source, from.chunk, from.frame));
        held.rows().map(row).collect::<Vec<_>>()
    };
    let (said, held) = lane.step("sample", SAMPLER).unwrap();
    assert_eq!((said, rows(held)), (json!(9), vec![Some((1, 7, 1, 2)), Some((0, 7, 0, 5)), Some((1, 7, 3, 0))]));
    assert_eq!((held.len(), held.is_empty(), held.inputs.len()), (3, false, 2));
    let (said, held) = lane.step("mix", "batch_mixer").unwrap();
    assert_eq!((said, rows(held), held.len()), (json!([1, 2]), vec![Some((2, 2, 0, 0))], 1));
    assert!(lane.step("other", "batch_mixer").is_none());
    assert_eq!(lane.held().map(HeldRows::len).collect::<Vec<_>>(), [3, 1]);
    assert!(HeldRows::default().is_empty());
}

#[test]
fn a_step_counts_the_batches_of_all_outputs() {
    let outputs = json!({"train": {"batch": 7, "lanes": {}}, "test": {"batch": 2, "lanes": {}}});
    let state = json!({"gristmill_state": 4, "of": "stream", "config": {}, "seed": 1, "files": {}, "outputs": outputs});
    let state: LoaderState = serde_json::from_value(state).unwrap();
    assert_eq!(state.step(), 9);
    assert_eq!(read(&state.to_json().unwrap()).unwrap().step(), 9);
}
