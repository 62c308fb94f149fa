//! Packs of every form are opened by what they say; conditions, filters and splits select exactly what they name.

use std::collections::BTreeSet;
use std::sync::Arc;

use gristmill_engine::Error;
use gristmill_engine::pack::metadata::Run;
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::{Filter, Selection};
use gristmill_engine::sql::SqlValue as Value;
use gristmill_engine::store::Residence;
use gristmill_format::g2048::StepRow;
use gristmill_format::layout::Layout;

use crate::fixture::{Form, forms, open, pack, rows, runs, taken, write_pack, write_rows, write_runs};

#[test]
fn packs_of_every_form_hold_the_same_rows() {
    for form in forms() {
        let folder = tempfile::tempdir().unwrap();
        write_pack(folder.path(), 12, &form);
        for residence in [Residence::Mapped, Residence::Memory] {
            let pack = Selection::all(Arc::new(RowPack::open(folder.path(), residence).unwrap()));
            assert_eq!(taken(&pack), rows(12));
            assert_eq!(pack.games().len(), 12);
            assert_eq!(pack.pack().as_a::<RowPack>().unwrap().valuations().names(), ["search", "tuple11", "tuple10"]);
            assert_eq!(pack.pack().as_a::<RowPack>().unwrap().index().run_of(0), Some(0));
            assert_eq!(pack.pack().as_a::<RowPack>().unwrap().index().run_of(pack.rows().len()), None);
        }
    }
}

#[test]
fn conditions_select_whole_runs() {
    let (_folder, all) = pack();
    let expected =
        |keep: &dyn Fn(u32) -> bool| -> Vec<StepRow> { rows(40).into_iter().filter(|row| keep(row.run_id)).collect() };
    let query = |sql: &str, params: &[Value]| all.query(sql, params).unwrap();
    assert_eq!(taken(&query("max_score >= 30000", &[])), expected(&|run| run >= 30));
    assert_eq!(taken(&query("id % ? = ?", &[Value::Integer(3), Value::Integer(1)])), expected(&|run| run % 3 == 1));
    assert_eq!(taken(&query("1 -- all", &[])), rows(40));
    assert_eq!(taken(&query("select id from runs where steps > 25 order by -id", &[])).len(), {
        rows(40).iter().filter(|row| crate::fixture::steps(row.run_id) > 25).count()
    });
    let twice = query("id >= 10", &[]).query("id < 12", &[]).unwrap();
    assert_eq!((taken(&twice), twice.games().to_vec()), (expected(&|run| run == 10 || run == 11), vec![10, 11]));
    assert!(query("id = 3", &[]).rows().is_empty(), "a run without rows");
    assert!(query("id > 99", &[]).rows().is_empty());
    for (sql, params) in [
        ("max_scor > 3", vec![]),
        ("id = ?", vec![]),
        ("id = 1", vec![Value::Integer(3)]),
        ("1) UNION SELECT 'text' --", vec![]),
        ("select 'text'", vec![]),
        ("", vec![]),
        ("id = 1; delete from runs", vec![]),
        ("select 1; delete from runs", vec![]),
        ("delete from runs", vec![]),
    ] {
        let error = all.query(sql, &params).unwrap_err();
        assert!(matches!(&error, Error::Config { field: Some(field), .. } if field == "where"), "{sql}: {error}");
    }
    assert_eq!(taken(&open(all.pack().folder()).unwrap()), rows(40), "nothing was changed");
}

#[test]
fn filters_select_rows_within_runs() {
    let (_folder, all) = pack();
    let filter = |filter: Filter| taken(&all.query("id < 30", &[]).unwrap().filter(&filter).unwrap());
    let expected =
        |keep: &dyn Fn(&StepRow) -> bool| -> Vec<StepRow> { rows(30).into_iter().filter(|row| keep(row)).collect() };
    let steps = Filter { step_index: (Some(3), Some(12)), ..Filter::default() };
    assert_eq!(filter(steps), expected(&|row| (3..=12).contains(&row.step_index)));
    let ranks = Filter { max_rank: (Some(5), None), ..Filter::default() };
    assert_eq!(filter(ranks), expected(&|row| row.max_rank >= 5));
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let both = Filter { step_index: (None, Some(9)), valuation: names(&["tuple10", "search"]), ..Filter::default() };
    assert_eq!(filter(both), expected(&|row| row.step_index <= 9 && row.valuation_type != 1));
    assert!(filter(Filter { valuation: names(&[]), ..Filter::default() }).is_empty());
    let unknown = Filter { valuation: names(&["tuple12"]), ..Filter::default() };
    let error = all.filter(&unknown).unwrap_err().to_string();
    assert!(error.contains("tuple12") && error.contains("tuple11"), "{error}");
}

fn ids(selection: &Selection) -> BTreeSet<u64> {
    selection.games().iter().copied().collect()
}

#[test]
fn no_run_is_on_both_sides_of_a_split() {
    let (_folder, all) = pack();
    let steps = Filter { step_index: (Some(5), None), ..Filter::default() };
    for selection in [all.clone(), all.query("id > 4", &[]).unwrap(), all.filter(&steps).unwrap()] {
        let sides = [
            selection.split(0.3, 42).unwrap(),
            selection.split_by("max_score > ?", &[Value::Integer(20_000)]).unwrap(),
            selection.split_ids(vec![39, 5, 5, 1000]).unwrap(),
        ];
        for (train, val) in sides {
            assert!(ids(&train).is_disjoint(&ids(&val)));
            assert_eq!(&(&ids(&train) | &ids(&val)), &ids(&selection));
            let seen = |side: &Selection| taken(side).iter().map(|row| u64::from(row.run_id)).collect::<BTreeSet<_>>();
            assert!(seen(&train).is_subset(&ids(&train)) && seen(&val).is_subset(&ids(&val)));
            let mut both = [taken(&train), taken(&val)].concat();
            both.sort_unstable_by_key(|row| (row.run_id, row.step_index));
            assert_eq!(both, taken(&selection));
        }
    }
    let (_, val) = all.split(0.3, 42).unwrap();
    assert!((4..=20).contains(&ids(&val).len()), "{:?}", ids(&val));
    assert_ne!(ids(&val), ids(&all.split(0.3, 43).unwrap().1));
    assert!(ids(&all.split(0.1, 42).unwrap().1).is_subset(&ids(&val)), "a smaller share is a part of a larger one");
    assert_eq!(ids(&all.split(0.0, 42).unwrap().1).len(), 0);
    for share in [-0.1, 1.0, f64::NAN, 1e-9] {
        assert!(all.split(share, 42).is_err(), "{share}");
    }
}

/// The side of a game is decided by its seed: it stays there when packs are merged and runs get other ids.
#[test]
fn a_game_is_on_the_same_side_in_every_pack() {
    let (_folder, all) = pack();
    let other = tempfile::tempdir().unwrap();
    let moved: Vec<Run> = runs(40).into_iter().map(|run| Run { id: run.id + 100, ..run }).collect();
    let theirs: Vec<StepRow> = rows(40).into_iter().map(|row| StepRow { run_id: row.run_id + 100, ..row }).collect();
    write_rows(other.path(), &theirs, &Form::default());
    write_runs(other.path(), &moved);
    let other = open(other.path()).unwrap();
    let here = ids(&all.split(0.3, 42).unwrap().1);
    let there = ids(&other.split(0.3, 42).unwrap().1);
    assert_eq!(there, here.iter().map(|id| id + 100).collect());
}

/// The sides are a promise: a change here is a change of format.
#[test]
fn sides_are_pinned_across_versions() {
    let (_folder, all) = pack();
    assert_eq!(ids(&all.split(0.1, 42).unwrap().1).into_iter().collect::<Vec<_>>(), PINNED);
}

const PINNED: &[u64] = &[0, 4, 15, 32, 37];

#[test]
fn rows_that_do_not_lie_as_the_database_says_are_found() {
    // In another order than the ids, and interleaved: found by reading the rows.
    let mut shuffled = rows(12);
    shuffled.sort_by_key(|row| (row.step_index, row.run_id));
    let mut reversed = rows(12);
    reversed.sort_by_key(|row| (std::cmp::Reverse(row.run_id), row.step_index));
    for order in [shuffled, reversed] {
        let folder = tempfile::tempdir().unwrap();
        write_rows(folder.path(), &order, &Form::default());
        write_runs(folder.path(), &runs(12));
        let all = open(folder.path()).unwrap();
        let expected: Vec<StepRow> = order.iter().filter(|row| row.run_id % 2 == 0).copied().collect();
        assert_eq!(taken(&all.query("id % 2 = 0", &[]).unwrap()), expected);
    }
    // Counts of the database that are wrong.
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), &rows(12), &Form::default());
    let mut wrong = runs(12);
    wrong[5].steps += 1;
    write_runs(folder.path(), &wrong);
    assert_eq!(
        taken(&open(folder.path()).unwrap().query("id = 6", &[]).unwrap()).len(),
        crate::fixture::steps(6) as usize
    );
    // A run that the database does not know.
    write_rows(folder.path(), &rows(13), &Form::default());
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("steps.npy") && error.contains("run 12"), "{error}");
}

#[test]
fn what_is_no_pack_says_what_it_is() {
    for (descr, word) in [
        (
            "[('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), ('branch_evs', '<f4', (4,))]",
            "up, right, down, left",
        ),
        ("[('x', '<u4')]", "a field `run_id`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let form = Form { layout: Arc::new(Layout::parse_descr(descr).unwrap()), ..Form::default() };
        let header = gristmill_format::container::npy::Header::write(
            &gristmill_format::layout::DType::Record(form.layout.as_ref().clone()),
            &[0],
            form.spelling,
        );
        std::fs::write(folder.path().join("steps.npy"), header.unwrap()).unwrap();
        write_runs(folder.path(), &runs(2));
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("steps.npy"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path()).unwrap_err().to_string().contains("no pack"));
    write_rows(folder.path(), &rows(3), &Form::default());
    assert!(open(folder.path()).unwrap_err().to_string().contains("metadata.db"));
    write_runs(folder.path(), &runs(3));
    std::fs::write(folder.path().join("valuation_types.json"), "{\"search\": 1}").unwrap();
    assert!(open(folder.path()).unwrap_err().to_string().contains("valuation_types.json"));
    std::fs::write(folder.path().join("valuation_types.json"), "[\"search\", \"tuple10\"]").unwrap();
    assert_eq!(open(folder.path()).unwrap().pack().as_a::<RowPack>().unwrap().valuations().id("tuple10"), Some(1));
    // Shards of two forms.
    write_rows(folder.path(), &rows(3), &Form { shard_rows: Some(20), ..Form::default() });
    std::fs::remove_file(folder.path().join("steps.npy")).unwrap();
    let packed = forms().remove(2);
    write_rows(folder.path(), &rows(3)[..1], &packed);
    std::fs::rename(folder.path().join("steps.npy"), folder.path().join("steps-00001.npy")).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("steps-00001.npy") && error.contains("46 and 48 bytes"), "{error}");
}

#[test]
fn runs_are_cut_by_place_and_recorded_steps_do_it_again() {
    let (_folder, all) = pack();
    let (runs, rows) = (all.slice_games(3, 5).unwrap(), all.slice(7, 40));
    assert_eq!((runs.games(), runs.is_whole().unwrap()), (&all.games()[3..5], true));
    assert_eq!((rows.games(), rows.rows().len()), (all.games(), 33));
    let steps = [&runs, &rows].map(|some| serde_json::to_string(&some.recipe().steps).unwrap());
    assert_eq!(steps, [r#"[{"games":{"from":3,"to":5}}]"#, r#"[{"slice":{"from":7,"to":40}}]"#]);
    for some in [runs, rows, all.slice_games(2, 9).unwrap().slice(1, 9).split(0.4, 3).unwrap().0] {
        let again = some.recipe().steps.iter().fold(all.clone(), |all, step| all.again(step).unwrap());
        assert_eq!((again.games(), again.rows()), (some.games(), some.rows()));
        assert_eq!(again.input().identity, some.input().identity);
    }
    let places: Vec<u64> = (0..all.games().len()).map(|place| all.frames_of(place)).collect();
    assert_eq!(places.iter().sum::<u64>(), all.rows().len());
    let of_run = all.game(4).unwrap();
    let first: u64 = places[..4].iter().sum();
    assert_eq!(of_run, all.take(&(first..first + places[4]).collect::<Vec<_>>()).unwrap());
    assert_eq!(all.game_of(first + 2), Some((all.games()[4], 2)));
}
