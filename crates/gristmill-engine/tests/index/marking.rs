//! Marks of packs of 2048: rules over fields, boards, values and runs, in every form of rows; added rows are
//! recognized.

use std::sync::Arc;

use gristmill_engine::pack_table::PackTable;
use gristmill_engine::selection::Selection;
use gristmill_format::container::npy::Spelling;
use gristmill_format::g2048::{RowForm, StepRow};
use gristmill_jobs::mark::{MarkOptions, Which, mark, update};
use gristmill_jobs::values::{ValuesOptions, values};
use xxhash_rust::xxh3::xxh3_64;

use crate::fixture::{Form, forms, open, rows, runs, taken, write_pack, write_rows, write_runs};

fn marked(all: &Selection, name: &str, rule: &str) -> gristmill_engine::Result<Selection> {
    let pack: Arc<dyn PackTable> = Arc::clone(all.pack());
    mark(&pack, &Which::Rule(rule.to_owned()), &MarkOptions::new(name), &mut |_, _| {})?;
    all.marked(name)
}

#[test]
fn rules_are_asked_of_every_form_of_rows() {
    for form in forms() {
        let folder = tempfile::tempdir().unwrap();
        write_pack(folder.path(), 12, &form);
        let all = open(folder.path()).unwrap();
        let empty = |row: &StepRow| row.decoded_board().ranks().iter().filter(|rank| **rank == 0).count();
        let expected =
            |keep: &dyn Fn(&StepRow) -> bool| rows(12).into_iter().filter(|row| keep(row)).collect::<Vec<_>>();
        let rule = "empty_cells < 11 AND max_exponent >= 3 AND game.max_score >= 5000";
        let found = marked(&all, "a", rule).unwrap();
        let kept = expected(&|row| empty(row) < 11 && row.max_rank >= 3 && row.run_id >= 5);
        assert_eq!(taken(&found), kept);
        assert!(!kept.is_empty() && kept.len() < rows(12).len() / 2);
        let moves = marked(&all, "b", "move_dir = 1 OR branch_evs_3 < 0.75 AND step_index = 4").unwrap();
        assert_eq!(
            taken(&moves),
            expected(&|row| row.move_dir == 1 || row.step_index == 4 && row.branch_evs[3] < 0.75)
        );
        let sums = marked(&all, "c", "tile_sum >= 60").unwrap();
        assert_eq!(taken(&sums), expected(&|row| row.decoded_board().sum_tile() >= 60));
        let both = found.without("b").unwrap().query("id < 9", &[]).unwrap();
        assert_eq!(
            taken(&both),
            kept.iter()
                .filter(|row| row.run_id < 9 && row.move_dir != 1)
                .filter(|row| row.step_index != 4 || row.branch_evs[3] >= 0.75)
                .copied()
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn values_beside_the_rows_can_be_asked_for_and_rows_that_were_added_are() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 4, &Form::default());
    let all = open(folder.path()).unwrap();
    assert!(marked(&all, "v", "reward > 0").unwrap_err().to_string().contains("no such column: reward"));
    if values(&ValuesOptions::new(folder.path()), &mut |_, _| {}).is_ok() {
        let all = open(folder.path()).unwrap();
        let kept = marked(&all, "v", "reward >= 0 AND return_raw >= reward").unwrap();
        assert_eq!(kept.rows().len(), all.rows().len());
        std::fs::remove_file(folder.path().join("values.npy")).unwrap();
    }
    let all = open(folder.path()).unwrap();
    let before = all.rows().len();
    marked(&all, "late", "step_index > 15").unwrap();
    write_rows(folder.path(), &rows(9), &Form::default());
    write_runs(folder.path(), &runs(9));
    let all = open(folder.path()).unwrap();
    assert!(all.marked("late").unwrap_err().to_string().contains("mark_before_growth"));
    let pack: Arc<dyn PackTable> = Arc::clone(all.pack());
    let said = update(&pack, &MarkOptions::new("late"), &mut |_, _| {}).unwrap();
    assert_eq!(said.asked, all.rows().len() - before);
    let expected: Vec<StepRow> = rows(9).into_iter().filter(|row| row.step_index > 15).collect();
    assert_eq!(taken(&all.marked("late").unwrap()), expected);
    // Other rows in place of the first: another pack.
    let mut other = rows(9);
    other[0].board ^= 0x11;
    write_rows(folder.path(), &other, &Form::default());
    assert!(open(folder.path()).unwrap().marked("late").unwrap_err().to_string().contains("mark_of_another_pack"));
}

/// The names and types of a row of 46 bytes, spelled as NumPy does.
const PACKED_DESCR: &str = "[('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), ('board_eval', '<i4'), \
    ('tile_65536_mask', '<u2'), ('move_dir', '|u1'), ('valuation_type', '|u1'), ('ev_legal', '|u1'), ('max_rank', '|u1'), \
    ('seed', '<u4'), ('branch_evs', '<f4', (4,))]";

#[test]
fn the_identity_of_packed_rows_is_that_of_the_page_whatever_their_header_spells() {
    for spelling in [Spelling::NumPy, Spelling::Reserved, Spelling::Spaced] {
        let folder = tempfile::tempdir().unwrap();
        let form = Form { layout: Arc::clone(RowForm::Packed.layout()), spelling, shard_rows: None };
        write_pack(folder.path(), 5, &form);
        marked(&open(folder.path()).unwrap(), "a", "move_dir = 1").unwrap();
        let file = std::fs::read(folder.path().join("marks/a.mark")).unwrap();

        let data = std::fs::read(folder.path().join("steps.npy")).unwrap();
        let total = rows(5).len() as u64;
        let records = &data[data.len() - total as usize * 46..];
        let mut hashed = PACKED_DESCR.as_bytes().to_vec();
        let mut first = 0u64;
        for run in runs(5).iter().filter(|run| run.steps > 0) {
            [first, run.id, run.seed.unwrap()].iter().for_each(|number| hashed.extend(number.to_le_bytes()));
            first += run.steps;
        }
        hashed.extend(total.to_le_bytes());
        for i in 0..64.min(total) {
            let at = ((total - 1) * i / 63) as usize * 46;
            hashed.extend_from_slice(&records[at..at + 46]);
        }
        assert_eq!(file[32..40], xxh3_64(&hashed).to_le_bytes());
    }
}
