//! Small packs of made-up games in every form that there is, written by our own writers.

use std::path::Path;
use std::sync::{Arc, Once};

use gristmill_engine::pack::metadata::{MetadataWriter, Run};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::bucket::{Options, set_options};
use gristmill_engine::store::{Cache, Residence, set_cache};
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::g2048::{Board, RowForm, StepRow};
use gristmill_format::layout::{Conform, DType, Layout};

/// Says how a bucket is reached that a server of this process has. What is fetched lies in one folder, as all tests are one process.
pub(crate) fn reach(bucket: &str, server: &str) {
    static CACHE: Once = Once::new();
    let folder = || Some(tempfile::tempdir().unwrap().keep());
    CACHE.call_once(|| set_cache(Cache { folder: folder(), limit: None }));
    set_options(bucket, Options { endpoint: Some(server.to_owned()), anonymous: true, ..Options::default() });
}

/// A state as it was written before states had checksums.
pub(crate) fn without_checksum(state: &str) -> String {
    let mut state: serde_json::Value = serde_json::from_str(state).unwrap();
    for key in ["checksum", "gristmill_state", "of"] {
        state.as_object_mut().unwrap().remove(key).unwrap();
    }
    state["gristmill_index_state"] = 1.into();
    state.to_string()
}

/// How many rows run `i` has; run 3 has none.
pub(crate) fn steps(run: u32) -> u32 {
    if run == 3 { 0 } else { 20 + run * 7 % 11 }
}

/// A row that says where it is: its board holds its number.
pub(crate) fn row(run: u32, step: u32) -> StepRow {
    let mut ranks = [0; 16];
    (0..4).for_each(|i| ranks[i] = (run >> (3 * i) & 7) as u8 + 1);
    (0..8).for_each(|i| ranks[4 + i] = (step >> (2 * i) & 3) as u8);
    let board = Board::new(ranks).unwrap();
    let packed = board.pack();
    StepRow {
        run_id: run,
        step_index: step,
        board: packed.board,
        board_eval: gristmill_format::g2048::heuristic::board_eval(&board).unwrap(),
        tile_65536_mask: packed.mask,
        move_dir: (run + step) as u8 % 4,
        valuation_type: (step % 3) as u8,
        ev_legal: 15,
        max_rank: board.max_rank(),
        seed: 1000 + run,
        branch_evs: [0.5, 0.6, 0.7, 0.8],
    }
}

/// How a pack is written.
pub(crate) struct Form {
    pub(crate) layout: Arc<Layout>,
    pub(crate) spelling: Spelling,
    pub(crate) shard_rows: Option<usize>,
}

impl Default for Form {
    fn default() -> Self {
        Form { layout: Arc::clone(layout_aligned()), spelling: Spelling::NumPy, shard_rows: None }
    }
}

/// Every form that packs of step rows have.
pub(crate) fn forms() -> Vec<Form> {
    let packed = || Arc::clone(RowForm::Packed.layout());
    let mut fields = layout_aligned().fields().to_vec();
    fields.rotate_left(3);
    let mut offset = 0;
    for field in &mut fields {
        field.offset = offset;
        offset += field.bytes();
    }
    let turned = Arc::new(Layout::new(fields, offset + 3).unwrap());
    vec![
        Form::default(),
        Form { shard_rows: Some(64), ..Form::default() },
        Form { layout: packed(), spelling: Spelling::Reserved, shard_rows: None },
        Form { layout: packed(), spelling: Spelling::Spaced, shard_rows: Some(7) },
        Form { layout: turned, spelling: Spelling::NumPy, shard_rows: Some(100) },
    ]
}

/// All rows of a pack of `runs` runs, in order.
pub(crate) fn rows(runs: u32) -> Vec<StepRow> {
    (0..runs).flat_map(|run| (0..steps(run)).map(move |step| row(run, step))).collect()
}

pub(crate) fn write_rows(folder: &Path, rows: &[StepRow], form: &Form) {
    let conform = Conform::new(layout_aligned(), &form.layout).unwrap();
    let shards: Vec<&[StepRow]> = rows.chunks(form.shard_rows.unwrap_or(rows.len()).max(1)).collect();
    for (i, shard) in shards.into_iter().enumerate() {
        let dtype = DType::Record(form.layout.as_ref().clone());
        let mut bytes = Header::write(&dtype, &[shard.len() as u64], form.spelling).unwrap();
        for row in shard {
            let mut record = vec![0; form.layout.size()];
            conform.record(&row.to_aligned(), &mut record);
            bytes.extend_from_slice(&record);
        }
        let name = if form.shard_rows.is_some() { format!("steps-{i:05}.npy") } else { "steps.npy".into() };
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

pub(crate) fn write_runs(folder: &Path, runs: &[Run]) {
    let mut writer = MetadataWriter::open(folder.join("metadata.db")).unwrap();
    runs.iter().for_each(|run| writer.put_run(run).unwrap());
    writer.finish().unwrap();
}

pub(crate) fn runs(runs: u32) -> Vec<Run> {
    let run = |i: u32| Run {
        id: i.into(),
        seed: Some(u64::from(i) + 1000),
        steps: steps(i).into(),
        max_score: u64::from(i) * 1000,
        highest_tile: 1 << (i % 8),
    };
    (0..runs).map(run).collect()
}

/// A pack of `runs` runs in `folder`.
pub(crate) fn write_pack(folder: &Path, runs: u32, form: &Form) {
    write_rows(folder, &rows(runs), form);
    write_runs(folder, &self::runs(runs));
}

/// All rows of a new pack of 40 runs.
pub(crate) fn pack() -> (tempfile::TempDir, Selection) {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 40, &Form::default());
    let pack = open(folder.path()).unwrap();
    (folder, pack)
}

pub(crate) fn open(folder: &Path) -> gristmill_engine::Result<Selection> {
    Ok(Selection::all(Arc::new(RowPack::open(folder, Residence::Mapped)?)))
}

/// Rows of a selection, as step rows.
pub(crate) fn taken(selection: &Selection) -> Vec<StepRow> {
    let places: Vec<u64> = (0..selection.rows().len()).collect();
    let records = selection.take(&places).unwrap();
    let conform = Conform::new(selection.layout(), layout_aligned()).unwrap();
    let aligned = |record: &[u8]| {
        let mut out = [0; 48];
        conform.record(record, &mut out);
        StepRow::from_aligned(&out)
    };
    records.chunks_exact(selection.layout().size()).map(aligned).collect()
}
