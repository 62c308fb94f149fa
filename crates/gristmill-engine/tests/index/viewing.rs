//! Views of a pack: windows, later steps and whole trajectories, against what the lengths of the games say they are.

use std::collections::HashMap;
use std::time::Duration;

use gristmill_engine::config::{
    Augmentation, EncoderConfig, G2048EncoderConfig, IndexConfig, LastBatch, Longer, Pad, Shuffle, View,
};
use gristmill_engine::pack::metadata::Run;
use gristmill_engine::selection::{Filter, Selection};
use gristmill_engine::{Batch, IndexLoader, Next};
use proptest::prelude::*;

use crate::fixture::{Form, open, row, write_rows, write_runs};

/// Run and step.
type Step = (i64, i64);

/// One row of a batch: its steps, its tokens, and what it tells of its steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    steps: Vec<Step>,
    tokens: Vec<u8>,
    told: Vec<u8>,
}

fn pack(lengths: &[u32]) -> (tempfile::TempDir, Selection) {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..).zip(lengths).flat_map(|(run, n)| (0..*n).map(move |step| row(run, step))).collect();
    write_rows(folder.path(), &rows, &Form { shard_rows: Some(11), ..Form::default() });
    let run =
        |(id, steps): (u64, &u32)| Run { id, seed: Some(id), steps: (*steps).into(), max_score: 0, highest_tile: 2 };
    write_runs(folder.path(), &(0..).zip(lengths).map(run).collect::<Vec<_>>());
    let rows = open(folder.path()).unwrap();
    (folder, rows)
}

fn config(view: Option<View>) -> IndexConfig {
    IndexConfig {
        encoder: EncoderConfig::G2048(G2048EncoderConfig::default()),
        view,
        batch_size: 6,
        seed: Some(4),
        threads: Some(1),
        shuffle: Shuffle::Off,
        ..IndexConfig::default()
    }
}

fn loader(rows: &Selection, config: &IndexConfig) -> IndexLoader {
    IndexLoader::new(rows.input(), config.clone()).unwrap()
}

fn refusal(rows: &Selection, view: View) -> String {
    IndexLoader::new(rows.input(), config(Some(view))).unwrap_err().to_string()
}

fn next(loader: &IndexLoader) -> Option<Batch> {
    match loader.next("", Some(Duration::from_secs(120))).unwrap() {
        Next::Batch(batch) => Some(batch),
        Next::End => None,
        Next::Pending => panic!("no batch came"),
    }
}

fn column(batch: &Batch, name: &str) -> Option<Vec<u8>> {
    batch.columns.iter().find(|column| column.name() == name).map(|column| column.bytes().to_vec())
}

fn ints(bytes: &[u8]) -> Vec<i64> {
    bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
}

/// The real rows of a batch.
fn seen(batch: &Batch) -> Vec<Seen> {
    let steps = |prefix: &str| -> Option<(Vec<Step>, Vec<u8>)> {
        let [run, step] = ["run_id", "step_index"].map(|name| column(batch, &format!("{prefix}{name}")));
        let steps = ints(&run?).into_iter().zip(ints(&step?)).collect();
        Some((steps, column(batch, &format!("{prefix}tokens"))?))
    };
    let (own, tokens) = steps("").unwrap();
    let later = steps("next_");
    let told = column(batch, "mask").or_else(|| column(batch, "done")).unwrap_or_default();
    let (shown, count) = (batch.columns[0].shape()[0], |all: usize| all / batch.columns[0].shape()[0]);
    let of = |i: usize| {
        let part = |(steps, tokens): &(Vec<Step>, Vec<u8>)| {
            let (n, bytes) = (count(steps.len()), count(tokens.len()));
            (steps[i * n..(i + 1) * n].to_vec(), tokens[i * bytes..(i + 1) * bytes].to_vec())
        };
        let (mut steps, mut tokens) = part(&(own.clone(), tokens.clone()));
        if let Some(later) = &later {
            let (more, bytes) = part(later);
            steps.extend(more);
            tokens.extend(bytes);
        }
        let n = count(told.len());
        Seen { steps, tokens, told: told[i * n..(i + 1) * n].to_vec() }
    };
    assert!(shown >= batch.rows);
    (0..batch.rows).map(of).collect()
}

fn batches(loader: &IndexLoader) -> Vec<Vec<Seen>> {
    std::iter::from_fn(|| next(loader)).map(|batch| seen(&batch)).collect()
}

fn rows_of(loader: &IndexLoader) -> Vec<Seen> {
    batches(loader).concat()
}

/// What the view should give: by its definition, step by step.
fn expected(lengths: &[u32], view: &View, tokens: &HashMap<Step, Vec<u8>>) -> Vec<Seen> {
    let mut rows = Vec::new();
    for (run, n) in (0i64..).zip(lengths.iter().map(|n| i64::from(*n))) {
        let (starts, offsets, pad): (Vec<i64>, Vec<i64>, Pad) = match view {
            View::Window { offsets, pad, .. } => ((0..n).collect(), offsets.clone(), *pad),
            View::Next { steps, pad } => ((0..n).collect(), vec![0, *steps as i64], *pad),
            View::Trajectory { length, pad, longer } => {
                let starts: Vec<i64> = (0..n).step_by(*length as usize).collect();
                let starts = if *longer == Longer::Split { starts } else { starts.into_iter().take(1).collect() };
                (starts, (0..*length as i64).collect(), *pad)
            }
        };
        for start in starts {
            let there: Vec<bool> = offsets.iter().map(|o| (0..n).contains(&(start + o))).collect();
            if pad == Pad::Drop && there.contains(&false) {
                continue;
            }
            let mut row = Seen { steps: vec![], tokens: vec![], told: vec![] };
            for (offset, there) in offsets.iter().zip(&there) {
                let step = (run, (start + offset).clamp(0, n - 1));
                if *there || pad == Pad::Edge {
                    row.steps.push(step);
                    row.tokens.extend(&tokens[&step]);
                } else {
                    row.steps.push((0, 0));
                    row.tokens.extend([0; 128]);
                }
            }
            row.told = match view {
                View::Window { .. } | View::Next { .. } if pad == Pad::Drop => vec![],
                View::Next { .. } => vec![u8::from(!there[1])],
                _ => there.into_iter().map(u8::from).collect(),
            };
            rows.push(row);
        }
    }
    rows
}

fn tokens(rows: &Selection) -> HashMap<Step, Vec<u8>> {
    rows_of(&loader(rows, &config(None))).into_iter().map(|row| (row.steps[0], row.tokens)).collect()
}

fn views() -> impl Strategy<Value = View> {
    let pad = prop_oneof![Just(Pad::Edge), Just(Pad::Zero), Just(Pad::Drop)];
    let longer = prop_oneof![Just(Longer::Cut), Just(Longer::Split)];
    prop_oneof![
        (prop::collection::btree_set(-5i64..6, 1..5), pad.clone()).prop_map(|(offsets, pad)| View::Window {
            offsets: offsets.into_iter().collect(),
            pad,
            tensors: vec![]
        }),
        (1u64..6, pad.clone()).prop_map(|(steps, pad)| View::Next { steps, pad }),
        (1u64..9, pad, longer).prop_map(|(length, pad, longer)| View::Trajectory { length, pad, longer }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_view_is_what_its_definition_says_in_any_order_and_however_it_is_shared(
        lengths in prop::collection::vec(1u32..12, 1..9),
        view in views(),
        blocks in any::<bool>(),
    ) {
        let (_folder, rows) = pack(&lengths);
        let mut all = expected(&lengths, &view, &tokens(&rows));
        let stored = config(Some(view.clone()));
        if all.is_empty() {
            prop_assert!(refusal(&rows, view).contains("view"));
            return Ok(());
        }
        prop_assert_eq!(loader(&rows, &stored).rows(), all.len() as u64);
        prop_assert_eq!(&rows_of(&loader(&rows, &stored)), &all);

        let shuffle = if blocks { Shuffle::Blocks { rows: 3, blocks: 2 } } else { Shuffle::Rows };
        let config = IndexConfig { shuffle, epochs: Some(2), last_batch: LastBatch::Pad, ..stored };
        let whole = batches(&loader(&rows, &config));
        let mut epochs = whole.concat();
        prop_assert_eq!(epochs.len(), 2 * all.len());
        prop_assert!(whole[..whole.len() - 1].iter().all(|batch| batch.len() == 6));
        all.sort();
        for epoch in epochs.chunks_mut(all.len()) {
            epoch.sort();
            prop_assert_eq!(&*epoch, &all[..]);
        }
        for threads in [2, 8] {
            prop_assert_eq!(&batches(&loader(&rows, &IndexConfig { threads: Some(threads), ..config.clone() })), &whole);
        }
        let first = loader(&rows, &config);
        for taken in 0..=whole.len() {
            let again = loader(&rows, &config);
            again.restore(&first.state().unwrap()).unwrap();
            prop_assert_eq!(&batches(&again), &whole[taken..]);
            next(&first);
        }
        let ranks = [0, 1, 2].map(|rank| batches(&loader(&rows, &IndexConfig { rank, world_size: 3, ..config.clone() })));
        for (i, batch) in whole.iter().enumerate() {
            let mut union = ranks.each_ref().map(|rank| rank.get(i).cloned().unwrap_or_default()).concat();
            let mut batch = batch.clone();
            union.sort();
            batch.sort();
            prop_assert_eq!(union, batch);
        }
    }
}

const WINDOW: View = View::Window { offsets: vec![], pad: Pad::Edge, tensors: vec![] };

fn around(offsets: &[i64], names: &[&str]) -> View {
    let tensors = names.iter().map(|name| (*name).to_owned()).collect();
    View::Window { offsets: offsets.to_vec(), pad: Pad::Edge, tensors }
}

#[test]
fn only_the_tensors_that_are_named_are_shown_over_time() {
    let (_folder, rows) = pack(&[4, 9, 1]);
    let plain = loader(&rows, &config(Some(around(&[-2, 0], &[]))));
    let some = loader(&rows, &config(Some(around(&[-2, 0], &["tokens"]))));
    let shapes: Vec<(String, Vec<usize>)> =
        some.outputs()[0].tensors.iter().map(|spec| (spec.name.clone(), spec.row_shape.clone())).collect();
    let shape = |name: &str, shape: &[usize]| (name.to_owned(), shape.to_vec());
    assert_eq!(
        shapes,
        [shape("run_id", &[]), shape("step_index", &[]), shape("tokens", &[2, 16]), shape("mask", &[2])]
    );
    let single = loader(&rows, &config(None));
    while let (Some(all), Some(some), Some(single)) = (next(&plain), next(&some), next(&single)) {
        for (name, from) in [("tokens", &all), ("mask", &all), ("run_id", &single), ("step_index", &single)] {
            assert_eq!(column(&some, name), column(from, name), "{name}");
        }
    }
}

/// All steps of a window are turned and mirrored in one way, which is that of the row alone.
#[test]
fn a_window_is_shown_in_one_symmetry() {
    let (_folder, rows) = pack(&[40, 13]);
    let turning =
        G2048EncoderConfig { rotate: Augmentation::Any, flip: Augmentation::Any, ..G2048EncoderConfig::default() };
    let turned = IndexConfig { encoder: EncoderConfig::G2048(turning), batch_size: 60, ..config(None) };
    let single = rows_of(&loader(&rows, &turned));
    let same = rows_of(&loader(&rows, &IndexConfig { view: Some(around(&[-1, 0, 1], &[])), ..turned }));
    let plain = tokens(&rows);
    let cells = |tokens: &[u8]| tokens.chunks_exact(8).map(|cell| cell[0]).collect::<Vec<_>>();
    let mut orders = std::collections::HashSet::new();
    for (row, alone) in same.iter().zip(&single) {
        assert_eq!(row.tokens[128..256], alone.tokens);
        // Where cells went, as far as equal cells leave it open: a symmetry that explains all three steps.
        let fits = |map: &[usize; 16]| {
            row.steps.iter().enumerate().all(|(i, step)| {
                let (from, to) = (cells(&plain[step]), cells(&row.tokens[i * 128..(i + 1) * 128]));
                (0..16).all(|cell| to[cell] == from[map[cell]])
            })
        };
        let found = symmetries().into_iter().position(|map| fits(&map));
        orders.insert(found.unwrap_or_else(|| panic!("steps {:?} are not shown in one symmetry", row.steps)));
    }
    assert!(orders.len() > 4, "{orders:?}");
}

/// Where each cell comes from, in the eight symmetries of a board.
fn symmetries() -> Vec<[usize; 16]> {
    let map = |of: &dyn Fn(usize, usize) -> (usize, usize)| {
        std::array::from_fn(|cell| {
            let (row, column) = of(cell / 4, cell % 4);
            4 * row + column
        })
    };
    let mut found: Vec<[usize; 16]> = Vec::new();
    for turned in 0..4 {
        for mirrored in [false, true] {
            found.push(map(&|row, column| {
                let (mut row, mut column) = if mirrored { (row, 3 - column) } else { (row, column) };
                for _ in 0..turned {
                    (row, column) = (column, 3 - row);
                }
                (row, column)
            }));
        }
    }
    found
}

#[test]
fn rows_that_are_not_selected_stand_around_others_but_count_in_no_trajectory() {
    let (_folder, rows) = pack(&[6, 4, 5]);
    let late = rows.filter(&Filter { step_index: (Some(2), Some(4)), ..Filter::default() }).unwrap();
    let windows = rows_of(&loader(&late, &config(Some(around(&[-1, 0], &[])))));
    assert_eq!(windows[0].steps, [(0, 1), (0, 2)]);
    assert_eq!(windows.len() as u64, late.rows().len());
    let whole = View::Trajectory { length: 6, pad: Pad::Zero, longer: Longer::Refuse };
    let games = rows_of(&loader(&late, &config(Some(whole))));
    assert_eq!(
        games.iter().map(|game| game.told.as_slice()).collect::<Vec<_>>(),
        [[0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 1, 0],]
    );
    assert_eq!(games[0].steps, (0..6).map(|step| (0, step)).collect::<Vec<_>>());
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let (_folder, rows) = pack(&[6, 4]);
    for (view, word) in [
        (WINDOW, "1 to 65536"),
        (around(&[0, 0], &[]), "ascend"),
        (around(&[3, -1], &[]), "ascend"),
        (around(&[0], &["planes"]), "there are tokens, run_id, step_index"),
        (View::Next { steps: 0, pad: Pad::Edge }, "0 steps"),
        (View::Trajectory { length: 0, pad: Pad::Edge, longer: Longer::Cut }, "of 0 steps"),
        (View::Trajectory { length: 1 << 20, pad: Pad::Edge, longer: Longer::Cut }, "65536"),
        (
            View::Trajectory { length: 5, pad: Pad::Edge, longer: Longer::Refuse },
            "the longest of these trajectories has 6",
        ),
        (View::Next { steps: 9, pad: Pad::Drop }, "no game is as long"),
    ] {
        let text = refusal(&rows, view);
        assert!(text.contains("view") && text.contains(word), "{text}");
    }
    let tensors = IndexConfig { tensors: vec!["planes".into()], ..config(None) };
    let text = IndexLoader::new(rows.input(), tensors).unwrap_err().to_string();
    assert!(text.contains("tensors"), "{text}");
    let state = loader(&rows, &config(Some(around(&[0, 1], &[])))).state().unwrap();
    let other = loader(&rows, &config(None)).restore(&state).unwrap_err().to_string();
    assert!(other.contains("view"), "{other}");
}

/// Where the rows of one game do not lie together, there is no telling what stands beside a row.
#[test]
fn games_that_alternate_have_no_views() {
    let folder = tempfile::tempdir().unwrap();
    let run = |id: u64| Run { id, seed: None, steps: 5, max_score: 0, highest_tile: 2 };
    write_runs(folder.path(), &[run(0), run(1)]);
    let mixed: Vec<_> = (0..5).flat_map(|step| [row(0, step), row(1, step)]).collect();
    write_rows(folder.path(), &mixed, &Form::default());
    let text = refusal(&open(folder.path()).unwrap(), around(&[0, 1], &[]));
    assert!(text.contains("steps.npy") && text.contains("other runs") && text.contains("convert"), "{text}");
}
