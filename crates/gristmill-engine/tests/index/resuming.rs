//! Every encoder of 2048 rows, in every order of rows: what is continued after any batch is what would have come.

use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, Longer, Pad, Shuffle, View};
use gristmill_engine::selection::Selection;
use gristmill_format::g2048::form::Form as Rows;
use gristmill_jobs::values::{ValuesOptions, values};

use crate::fixture::{Form, open, runs, write_pack, write_runs};
use crate::forms::{interleaved, write};
use crate::resumed::check_every_batch;

const ROWS: [Shuffle; 3] = [Shuffle::Rows, Shuffle::Blocks { rows: 32, blocks: 3 }, Shuffle::Off];

const LAST: [LastBatch; 3] = [LastBatch::Keep, LastBatch::Pad, LastBatch::Drop];

/// One encoder after the other on rows of one form, each with another order of rows and another end.
fn check(rows: &Selection, encoders: &[&str]) {
    for (i, json) in encoders.iter().enumerate() {
        let encoder = EncoderConfig::from_json(&format!(r#"{{"g2048": {json}}}"#)).unwrap();
        let config = IndexConfig {
            encoder,
            batch_size: 36,
            epochs: Some(3),
            seed: Some(i as u64),
            shuffle: ROWS[i % 3],
            last_batch: LAST[i / 2 % 3],
            ..IndexConfig::default()
        };
        check_every_batch(json, &rows.input_for(&config.encoder).unwrap(), &config, &[1, 3, 2]);
    }
}

#[test]
fn exponents_tokens_and_values_go_on_after_any_batch() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 12, &Form { shard_rows: Some(50), ..Form::default() });
    values(&ValuesOptions::new(folder.path()), &mut |_, _| {}).unwrap();
    let tokenizer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/index/tokenizer.json");
    let tokens = format!(r#"{{"target": "tokens", "tokenizer": "{tokenizer}", "rotate": "any", "flip": "any"}}"#);
    let swapped = format!(r#"{{"target": "tokens", "tokenizer": "{tokenizer}", "compat_swapped_tuple_ids": true}}"#);
    let (train, _) = open(folder.path()).unwrap().split(0.2, 42).unwrap();
    check(
        &train,
        &[
            r#"{"target": "steps", "dtype": "u8"}"#,
            r#"{"target": "steps", "rotate": "any", "flip": "changed", "value_targets": "scalar"}"#,
            r#"{"target": "hard_move", "dtype": "i32", "rotate": "changed"}"#,
            r#"{"target": "hard_move", "flip": "any", "value_targets": "two_hot"}"#,
            r#"{"target": "binned_ev", "rotate": "any", "flip": "any"}"#,
            &tokens,
            &swapped,
        ],
    );
}

#[test]
fn views_of_games_go_on_after_any_batch() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 12, &Form::default());
    let rows = open(folder.path()).unwrap();
    let window = View::Window { offsets: vec![-1, 0, 2], pad: Pad::Edge, tensors: Vec::new() };
    let games = View::Trajectory { length: 8, pad: Pad::Zero, longer: Longer::Split };
    for (view, shuffle) in [(window, ROWS[1]), (games, ROWS[0])] {
        let config = IndexConfig {
            encoder: EncoderConfig::from_json(r#"{"g2048": {"target": "steps", "rotate": "any"}}"#).unwrap(),
            view: Some(view),
            batch_size: 12,
            epochs: Some(2),
            seed: Some(3),
            shuffle,
            ..IndexConfig::default()
        };
        check_every_batch(&format!("{:?}", config.view), &rows.input(), &config, &[1, 3, 2]);
    }
}

#[test]
fn rows_of_other_forms_go_on_after_any_batch() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "steps-000001.npy", Rows::SelfPlay, Rows::SelfPlay.layout(), &interleaved(6));
    write_runs(folder.path(), &runs(6));
    check(&open(folder.path()).unwrap(), &[r#"{"target": "steps", "rotate": "any"}"#]);
    let folder = tempfile::tempdir().unwrap();
    let mut all = interleaved(6);
    all.sort_by_key(|step| step.run_id);
    write(folder.path(), "steps.npy", Rows::Legacy, Rows::Legacy.layout(), &all);
    write_runs(folder.path(), &runs(6));
    let legacy = open(folder.path()).unwrap();
    check(&legacy, &[r#"{"target": "binned_ev"}"#, r#"{"target": "hard_move", "rotate": "any", "flip": "any"}"#]);
}
