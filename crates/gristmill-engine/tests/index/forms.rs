//! Rows of self-play, legacy packs and exponents: opened, selected and fed by what fits; what is mixed or damaged is refused.

use std::path::Path;
use std::time::Duration;

use gristmill_engine::config::{EncoderConfig, IndexConfig, Shuffle};
use gristmill_engine::pack::metadata::Run;
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::{Filter, Selection};
use gristmill_engine::{Error, IndexLoader, Next, RowEncoder};
use gristmill_format::Kind;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::form::{Form as Rows, Step};
use gristmill_format::layout::{Conform, DType, Layout, Order, Scalar};

use crate::fixture::{Form, open, row, rows, runs, steps, write_rows, write_runs};

/// What is written for `rows` in a form, with the fields of `layout` only.
pub(crate) fn write(folder: &Path, name: &str, form: Rows, layout: &Layout, rows: &[Step]) {
    let conform = Conform::new(form.layout(), layout).unwrap();
    let mut bytes = Header::write(&DType::Record(layout.clone()), &[rows.len() as u64], Spelling::Spaced).unwrap();
    for step in rows {
        let (mut record, mut stored) = (Vec::new(), vec![0; layout.size()]);
        form.write(step, &mut record);
        conform.record(&record, &mut stored);
        bytes.extend(stored);
    }
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn vectors(folder: &Path, name: &str, shape: &[u64]) {
    let numbers: u64 = shape.iter().product();
    let mut bytes = Header::write(&DType::Scalar(Scalar::F32, Order::Little), shape, Spelling::Spaced).unwrap();
    (0..numbers).for_each(|i| bytes.extend((i as f32).to_le_bytes()));
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// Rows of `games` games as an engine records them: all games a step further, then again.
pub(crate) fn interleaved(games: u32) -> Vec<Step> {
    let mut all: Vec<Step> = rows(games).into_iter().map(|row| Step { run_id: row.run_id.into(), row }).collect();
    all.sort_by_key(|step| (step.row.step_index, step.run_id));
    all
}

/// A folder of self-play in two shards, with vectors of three numbers.
fn recorded() -> (tempfile::TempDir, Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let all = interleaved(6);
    let (one, two) = all.split_at(40);
    for (i, part) in [one, two].into_iter().enumerate() {
        write(folder.path(), &format!("steps-{:06}.npy", i + 1), Rows::SelfPlay, Rows::SelfPlay.layout(), part);
        vectors(folder.path(), &format!("embeddings-{:06}.npy", i + 1), &[part.len() as u64, 3]);
    }
    write_runs(folder.path(), &runs(6));
    (folder, all)
}

fn encoder(json: &str) -> EncoderConfig {
    EncoderConfig::from_json(json).unwrap()
}

const STEPS: &str = r#"{"g2048": {"target": "steps", "dtype": "u8"}}"#;
const HARD_MOVE: &str = r#"{"g2048": {"target": "hard_move", "dtype": "u8"}}"#;
const BINNED_EV: &str = r#"{"g2048": {"target": "binned_ev", "dtype": "u8"}}"#;

/// Every row of a selection through a loader, as (exponents, run, step), in stored order.
fn fed(selection: &Selection) -> Vec<([u8; 16], i64, i64)> {
    let config = IndexConfig {
        batch_size: 7,
        epochs: Some(1),
        shuffle: Shuffle::Off,
        encoder: encoder(STEPS),
        ..IndexConfig::default()
    };
    let loader = IndexLoader::new(selection.input(), config).unwrap();
    let mut all = Vec::new();
    while let Next::Batch(batch) = loader.next("", Some(Duration::from_secs(60))).unwrap() {
        let column = |i: usize| batch.columns[i].bytes().to_vec();
        let numbers = |i: usize| {
            let numbers: Vec<i64> = column(i).as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
            numbers
        };
        let exps: Vec<[u8; 16]> = column(0).as_chunks().0.to_vec();
        all.extend(exps.into_iter().zip(numbers(1)).zip(numbers(2)).map(|((exps, run), step)| (exps, run, step)));
    }
    all
}

fn expected(steps: &[Step]) -> Vec<([u8; 16], i64, i64)> {
    let of = |step: &Step| (*step.row.decoded_board().ranks(), step.run_id as i64, i64::from(step.row.step_index));
    steps.iter().map(of).collect()
}

fn unfit(selection: &Selection, json: &str) -> String {
    match RowEncoder::new(&selection.input(), &encoder(json), &[]) {
        Err(Error::Unfit(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn interleaved_games_of_self_play_are_opened_selected_and_fed() {
    let (folder, all) = recorded();
    let selection = open(folder.path()).unwrap();
    assert_eq!((selection.pack().form(), selection.rows().len()), (Rows::SelfPlay.name(), all.len() as u64));
    assert_eq!(fed(&selection), expected(&all));
    let some = selection.query("max_score >= ?", &[3000.into()]).unwrap();
    let theirs: Vec<Step> = all.iter().filter(|step| step.run_id >= 3).copied().collect();
    assert_eq!(fed(&some), expected(&theirs));
    let filter = Filter { step_index: (Some(5), Some(9)), ..Filter::default() };
    let early: Vec<Step> = theirs.iter().filter(|step| (5..=9).contains(&step.row.step_index)).copied().collect();
    assert_eq!(fed(&some.filter(&filter).unwrap()), expected(&early));
    let (train, val) = selection.split(0.5, 1).unwrap();
    assert_eq!(train.rows().len() + val.rows().len(), all.len() as u64);
    // Vectors keep to their rows, over the border of the shards.
    let found = selection.take_embeddings(&[39, 40, 41]).unwrap();
    let found: Vec<f32> = found.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert_eq!(found, [117.0, 118.0, 119.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for filter in [
        Filter { max_rank: (Some(3), None), ..Filter::default() },
        Filter { valuation: Some(vec!["search".into()]), ..Filter::default() },
    ] {
        let e = selection.filter(&filter).unwrap_err();
        assert!(matches!(&e, Error::Config { .. }) && e.to_string().contains("form: self-play"), "{e}");
    }
    for json in [HARD_MOVE, BINNED_EV] {
        let text = unfit(&selection, json);
        assert!(text.contains("`branch_evs`") && text.ends_with("what fits them: steps"), "{text}");
    }
}

/// Five games of 51 steps each: the first and last row of every stretch of 51 are of the run that counting gives it.
#[test]
fn games_of_one_length_that_alternate_are_not_taken_for_games_that_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let step = |i: u32| Step { run_id: u64::from(i % 5), row: row(i % 5, i / 5) };
    let all: Vec<Step> = (0..255).map(step).collect();
    write(folder.path(), "steps-000001.npy", Rows::SelfPlay, Rows::SelfPlay.layout(), &all);
    let listed = |id| Run { id, seed: None, steps: 51, max_score: id, highest_tile: 2 };
    write_runs(folder.path(), &(0..5).map(listed).collect::<Vec<_>>());
    let some = open(folder.path()).unwrap().query("max_score >= 2", &[]).unwrap();
    let theirs: Vec<Step> = all.iter().filter(|step| step.run_id >= 2).copied().collect();
    assert_eq!(fed(&some), expected(&theirs));
}

#[test]
fn runs_that_the_recorder_lost_are_there_and_rows_that_are_there_twice_are_not() {
    let (folder, all) = recorded();
    let mut listed = runs(6);
    listed.remove(2);
    listed[3].steps = 0;
    std::fs::remove_file(folder.path().join("metadata.db")).unwrap();
    write_runs(folder.path(), &listed);
    let selection = open(folder.path()).unwrap();
    assert_eq!(fed(&selection), expected(&all));
    let index = selection.pack().as_a::<RowPack>().unwrap().index();
    let counted: Vec<(u64, u64)> = index.runs().iter().map(|run| (run.id, run.steps)).collect();
    assert_eq!(counted, (0..6).map(|run| (u64::from(run), steps(run).into())).collect::<Vec<_>>());
    let unlisted: Vec<Step> = all.iter().filter(|step| step.run_id == 2).copied().collect();
    assert_eq!(fed(&selection.split_ids(vec![2]).unwrap().1), expected(&unlisted));
    std::fs::copy(folder.path().join("steps-000001.npy"), folder.path().join("steps-000003.npy")).unwrap();
    vectors(folder.path(), "embeddings-000003.npy", &[40, 3]);
    let e = open(folder.path()).unwrap_err().to_string();
    assert!(e.contains("more rows than the") && e.contains("twice"), "{e}");
}

#[test]
fn vectors_that_do_not_fit_their_rows_are_refused_with_the_file() {
    let (folder, all) = recorded();
    let path = folder.path().join("embeddings-000002.npy");
    let rows = all.len() as u64 - 40;
    for (shape, kind, word) in [
        (vec![rows - 1, 3], Kind::WrongSize, "vectors for the"),
        (vec![rows, 4], Kind::WrongSize, "those before it have 3"),
        (vec![rows * 3], Kind::Unsupported, "expected rows of"),
    ] {
        vectors(folder.path(), "embeddings-000002.npy", &shape);
        let Err(Error::Format(e)) = open(folder.path()) else { panic!("{shape:?}") };
        assert!(e.kind() == kind && e.to_string().contains("embeddings-000002") && e.detail().contains(word), "{e}");
    }
    vectors(folder.path(), "embeddings-000002.npy", &[rows, 3]);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(open(folder.path()), Err(Error::Format(e)) if e.kind() == Kind::Truncated));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(open(folder.path()), Err(Error::Format(e)) if e.kind() == Kind::Missing));
    // Vectors whose rows were never finished do no harm.
    std::fs::write(&path, &whole).unwrap();
    vectors(folder.path(), "embeddings-000003.npy", &[5, 3]);
    assert_eq!(open(folder.path()).unwrap().rows().len(), all.len() as u64);
}

#[test]
fn legacy_packs_feed_what_their_rows_have() {
    let all: Vec<Step> = rows(5).into_iter().map(|row| Step { run_id: row.run_id.into(), row }).collect();
    let bare = "[('board', '<u8'), ('run_id', '<u4'), ('step_index', '<u2')]";
    let no_move = "[('board', '<u8'), ('ev_values', '<f4', (4,)), ('run_id', '<u4'), ('step_index', '<u2')]";
    let whole = Rows::Legacy.layout().to_descr();
    let tokenizer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/index/tokenizer.json");
    let tokens = format!(r#"{{"g2048": {{"target": "tokens", "tokenizer": "{tokenizer}"}}}}"#);
    for (descr, fits) in [(&*whole, "hard_move, binned_ev"), (no_move, "binned_ev"), (bare, "")] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "steps.npy", Rows::Legacy, &Layout::parse_descr(descr).unwrap(), &all);
        write_runs(folder.path(), &runs(5));
        let selection = open(folder.path()).unwrap();
        assert_eq!((selection.pack().form(), fed(&selection)), (Rows::Legacy.name(), expected(&all)));
        let text = unfit(&selection, &tokens);
        let fitting = ["steps", fits].into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
        assert!(text.contains("`board_eval`") && text.ends_with(&format!("what fits them: {fitting}")), "{text}");
        for (name, json) in [("hard_move", HARD_MOVE), ("binned_ev", BINNED_EV)] {
            assert_eq!(
                RowEncoder::new(&selection.input(), &encoder(json), &[]).is_ok(),
                fits.contains(name),
                "{descr} {name}"
            );
        }
    }
}

#[test]
fn forms_are_never_mixed() {
    let (folder, _all) = recorded();
    write_rows(folder.path(), &[row(0, 0)], &Form { shard_rows: Some(1), ..Form::default() });
    let Err(Error::Format(e)) = open(folder.path()) else { panic!() };
    let text = e.to_string();
    assert!(
        text.contains("its self-play rows differ from the steps rows") && text.contains("folder of its own"),
        "{text}"
    );
    // An appended pack of the time: its second half is numbered from 0 again, its database is not.
    let folder = tempfile::tempdir().unwrap();
    let once: Vec<Step> = rows(3).into_iter().map(|row| Step { run_id: row.run_id.into(), row }).collect();
    write(folder.path(), "steps.npy", Rows::Legacy, Rows::Legacy.layout(), &[once.clone(), once].concat());
    let again = runs(3).into_iter().map(|run| Run { id: run.id + 3, ..run });
    write_runs(folder.path(), &runs(3).into_iter().chain(again).collect::<Vec<_>>());
    let e = open(folder.path()).unwrap_err().to_string();
    assert!(e.contains("from 0 again") && e.contains("convert"), "{e}");
    // Fields of other types than their names stand for.
    let odd = Layout::parse_descr("[('run_id', '<u8'), ('step_idx', '<u4'), ('exps', '|u1', (4, 4))]").unwrap();
    let header = Header::write(&DType::Record(odd), &[0], Spelling::Spaced).unwrap();
    std::fs::write(folder.path().join("steps.npy"), header).unwrap();
    let e = open(folder.path()).unwrap_err().to_string();
    assert!(e.contains("field `exps`") && e.contains("steps.npy"), "{e}");
}

#[test]
fn a_board_that_no_tensor_can_show_is_told_with_its_row() {
    let (folder, _) = recorded();
    let path = folder.path().join("steps-000002.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[192 + 28 * 4 + 12] = 40;
    std::fs::write(&path, bytes).unwrap();
    let selection = open(folder.path()).unwrap();
    let encoder = RowEncoder::new(&selection.input(), &encoder(STEPS), &[]).unwrap();
    let (mut exps, mut run, mut step) = (vec![0; 32], vec![0; 16], vec![0; 16]);
    let Err(Error::Format(e)) = encoder.encode(&[43, 44], 0, 0, vec![&mut exps, &mut run, &mut step]) else { panic!() };
    assert!(e.to_string().contains("steps-000002.npy") && e.place().frame == Some(4), "{e}");
}
