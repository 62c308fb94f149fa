//! Rows of any form become rows of any form that can hold them, and back; what cannot be held is named, not dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_engine::pack::manifest::Manifest;
use gristmill_engine::pack::metadata::{Metadata, MetadataWriter, Run};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::Selection;
use gristmill_format::Kind;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::form::{Columns, Form as Rows, Step};
use gristmill_format::layout::{Conform, DType, Layout, Order, Scalar};
use gristmill_jobs::convert::{ConvertOptions, Converted, To, convert};

use crate::fixture::{Form, open, row, rows, runs, write_pack, write_rows, write_runs};
use crate::forms::{interleaved, write};

fn options(input: &Path, output: &Path, to: To) -> ConvertOptions {
    ConvertOptions { input: input.to_owned(), output: output.to_owned(), to, ..ConvertOptions::default() }
}

fn run(options: &ConvertOptions) -> gristmill_engine::Result<Converted> {
    convert(options, &mut |done, all| assert!(done <= all))
}

/// Converts with everything allowed.
fn freely(input: &Path, output: &Path, to: To) -> Converted {
    run(&ConvertOptions { lossy: true, defaults: true, ..options(input, output, to) }).unwrap()
}

/// The stored records of a folder, in order, and their layout.
fn records(folder: &Path) -> (Selection, Vec<u8>) {
    let all = open(folder).unwrap();
    let places: Vec<u64> = (0..all.rows().len()).collect();
    let records = all.take(&places).unwrap();
    (all, records)
}

/// The steps of a folder, whatever its form.
fn steps(folder: &Path) -> Vec<Step> {
    let (all, records) = records(folder);
    let columns = Columns::of(all.layout()).unwrap();
    let conform = Conform::new(all.layout(), columns.form().layout()).unwrap();
    let read = |record: &[u8]| {
        let mut own = vec![0; columns.form().layout().size()];
        conform.record(record, &mut own);
        columns.step(&own).unwrap()
    };
    records.chunks_exact(all.layout().size()).map(read).collect()
}

fn listed(folder: &Path) -> Vec<Run> {
    let mut found = Vec::new();
    Metadata::open(folder.join("metadata.db"))
        .unwrap()
        .runs(&mut |run| {
            found.push(run);
            Ok(())
        })
        .unwrap();
    found
}

fn refused(options: &ConvertOptions, field: &str) -> String {
    match run(options) {
        Err(Error::Config { field: Some(found), message, .. }) if found == field => message,
        other => panic!("expected a refusal of {field}, found {other:?}"),
    }
}

fn places(root: &Path) -> impl Fn(&str) -> PathBuf {
    let root = root.to_owned();
    move |name| root.join(name)
}

#[test]
fn packs_survive_every_form_that_can_hold_them() {
    let root = tempfile::tempdir().unwrap();
    let at = places(root.path());
    fs::create_dir(at("pack")).unwrap();
    write_pack(&at("pack"), 9, &Form { shard_rows: Some(50), ..Form::default() });
    let mut metadata = MetadataWriter::open(at("pack").join("metadata.db")).unwrap();
    metadata.put_session("model_id", "x").unwrap();
    let engine = [("engine \"name\"".to_owned(), "TEXT".to_owned())];
    metadata.add_columns(&engine).unwrap();
    metadata.put_others(4, &engine, vec!["deep".to_owned().into()]).unwrap();
    metadata.finish().unwrap();
    let original = steps(&at("pack"));
    assert_eq!(original.len(), rows(9).len());

    let mut from = "pack";
    for (to, form) in
        [("packed", To::Packed46), ("exponents", To::Exponents), ("aligned", To::Aligned48), ("again", To::Exponents)]
    {
        let done = run(&ConvertOptions { shard_rows: Some(33), ..options(&at(from), &at(to), form) }).unwrap();
        assert_eq!((done.rows, done.runs, done.sorted, done.to), (original.len() as u64, 9, false, form.name()));
        assert!(done.lost.is_empty() && done.filled.is_empty() && done.remarks.is_empty());
        assert_eq!((steps(&at(to)), listed(&at(to))), (original.clone(), runs(9)));
        let metadata = Metadata::open(at(to).join("metadata.db")).unwrap();
        assert_eq!(metadata.session().unwrap()["model_id"], "x");
        assert_eq!(metadata.other_columns().unwrap(), engine);
        let query = "SELECT id FROM runs WHERE \"engine \"\"name\"\"\" = 'deep'";
        assert_eq!(metadata.connection().query_row(query, [], |row| row.get::<_, i64>(0)).unwrap(), 4);
        from = to;
    }
    // A pack of 46-byte rows, made by way of another form, is the pack to the byte, but for how it came to be.
    freely(&at("aligned"), &at("second"), To::Packed46);
    freely(&at("pack"), &at("first"), To::Packed46);
    for name in ["steps.npy", "valuation_types.json"] {
        assert_eq!(fs::read(at("first").join(name)).unwrap(), fs::read(at("second").join(name)).unwrap(), "{name}");
    }
    let [first, second] = ["first", "second"].map(|name| Manifest::read(&at(name)).unwrap().unwrap());
    assert_eq!((first.lineage[0].jobs(), second.lineage[0].jobs()), (2, 5));
    assert_eq!(first, Manifest { lineage: first.lineage.clone(), ..second });
    // All files of rows are full but the last, and the folders hold nothing else.
    let mut names: Vec<String> =
        fs::read_dir(at("exponents")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), original.len().div_ceil(33) + 3, "{names:?}");
    assert_eq!(names[0], ".gristmill-lineage.json");
}

#[test]
fn what_a_form_cannot_hold_is_named_and_dropped_only_when_told() {
    let root = tempfile::tempdir().unwrap();
    let at = places(root.path());
    fs::create_dir(at("pack")).unwrap();
    let mut all = rows(4);
    all[3].board |= 0xF << 60;
    all[3].tile_65536_mask = 1;
    write_rows(&at("pack"), &all, &Form::default());
    write_runs(&at("pack"), &runs(4));
    let text = refused(&options(&at("pack"), &at("play"), To::SelfPlay), "lossy");
    for field in ["move_dir", "ev_legal", "branch_evs", "valuation_type"] {
        assert!(text.contains(&format!("`{field}`")), "{text}");
    }
    let text = refused(&options(&at("pack"), &at("legacy"), To::Legacy), "lossy");
    assert!(["valuation_type", "scale of `branch_evs`", "65536"].iter().all(|word| text.contains(word)), "{text}");
    assert!(!at("play").exists() && !at("legacy").exists());

    let done = freely(&at("pack"), &at("play"), To::SelfPlay);
    assert_eq!((done.lost.len(), done.filled.len(), done.from), (4, 0, "steps"));
    let boards = |steps: &[Step]| {
        let board = |step: &Step| (step.run_id, step.row.step_index, *step.row.decoded_board().ranks());
        steps.iter().map(board).collect::<Vec<_>>()
    };
    assert_eq!(boards(&steps(&at("play"))), boards(&steps(&at("pack"))));
    let text = refused(&options(&at("play"), &at("back"), To::Aligned48), "defaults");
    assert!(text.contains("`move_dir`: 255") && text.contains("`branch_evs`: 0"), "{text}");
    freely(&at("play"), &at("back"), To::Aligned48);
    let back = steps(&at("back"));
    assert_eq!(boards(&back), boards(&steps(&at("pack"))));
    for (found, step) in back.iter().zip(&all) {
        let StepRow { run_id, step_index, board, tile_65536_mask, seed, .. } = *step;
        let board_eval = gristmill_format::g2048::heuristic::board_eval(&step.decoded_board()).unwrap();
        let max_rank = step.decoded_board().max_rank();
        let expected = StepRow {
            run_id,
            step_index,
            board,
            tile_65536_mask,
            board_eval,
            max_rank,
            seed,
            move_dir: 255,
            valuation_type: 3,
            ..StepRow::default()
        };
        assert_eq!(found.row, expected);
    }
    assert_eq!(open(&at("back")).unwrap().pack().as_a::<RowPack>().unwrap().valuations().name(3), Some("none"));

    // Legacy keeps shares of the values, and says so wherever it goes next.
    freely(&at("pack"), &at("legacy"), To::Legacy);
    let legacy = steps(&at("legacy"));
    assert_eq!(legacy[0].row.branch_evs[usize::from(all[0].move_dir)], 1.0);
    let query = "SELECT max(first_step_idx + num_steps) FROM runs";
    let metadata = Metadata::open(at("legacy").join("metadata.db")).unwrap();
    let rows: i64 = metadata.connection().query_row(query, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, all.len() as i64);
    assert_eq!(listed(&at("legacy")), runs(4));
    let plain = run(&options(&at("legacy"), &at("exponents"), To::Exponents)).unwrap();
    assert!(plain.lost.is_empty() && plain.filled.is_empty());
    run(&options(&at("legacy"), &at("steps"), To::Aligned48)).unwrap();
    run(&options(&at("legacy"), &at("twin"), To::Legacy)).unwrap();
    assert_eq!(steps(&at("twin")), legacy);
    for from in ["exponents", "steps"] {
        assert_eq!(
            open(&at(from)).unwrap().pack().as_a::<RowPack>().unwrap().valuations().names().last().unwrap(),
            "normalised"
        );
        let (to, name) = (at(&format!("{from}-legacy")), at("legacy").join("steps.npy"));
        run(&options(&at(from), &to, To::Legacy)).unwrap();
        assert_eq!(fs::read(to.join("steps.npy")).unwrap(), fs::read(name).unwrap());
    }
}

#[test]
fn interleaved_games_are_brought_into_order_with_their_vectors() {
    let root = tempfile::tempdir().unwrap();
    let at = places(root.path());
    fs::create_dir(at("play")).unwrap();
    let all = interleaved(7);
    write(&at("play"), "steps-000001.npy", Rows::SelfPlay, Rows::SelfPlay.layout(), &all);
    let mut bytes = Header::write(&DType::Scalar(Scalar::F32, Order::Little), &[all.len() as u64, 2], Spelling::Spaced);
    for step in &all {
        let numbers = [step.run_id as f32, step.row.step_index as f32];
        numbers.iter().for_each(|n| bytes.as_mut().unwrap().extend(n.to_le_bytes()));
    }
    fs::write(at("play").join("embeddings-000001.npy"), bytes.unwrap()).unwrap();
    let mut known = runs(7);
    known.remove(5);
    write_runs(&at("play"), &known);
    let done = run(&options(&at("play"), &at("exponents"), To::Exponents)).unwrap();
    assert!(done.sorted && done.lost.is_empty() && done.filled.is_empty());
    let (selection, stored) = records(&at("exponents"));
    assert_eq!(selection.layout().size(), 28 + 8);
    let mut expected = all.clone();
    expected.sort_by_key(|step| (step.run_id, step.row.step_index));
    for (record, step) in stored.chunks_exact(36).zip(&expected) {
        assert_eq!(record[..8], step.run_id.to_le_bytes());
        assert_eq!(record[8..12], step.row.step_index.to_le_bytes());
        assert_eq!(record[12..28], *step.row.decoded_board().ranks());
        assert_eq!(record[28..32], (step.run_id as f32).to_le_bytes());
        assert_eq!(record[32..], (step.row.step_index as f32).to_le_bytes());
    }
    // Back: the same rows in order, in shards with their vectors.
    run(&ConvertOptions { shard_rows: Some(40), ..options(&at("exponents"), &at("again"), To::SelfPlay) }).unwrap();
    let again = open(&at("again")).unwrap();
    let found = again.take_embeddings(&[41]).unwrap();
    assert_eq!(found[..4], (expected[41].run_id as f32).to_le_bytes());
    assert_eq!(found[4..], (expected[41].row.step_index as f32).to_le_bytes());
    assert!(at("again").join("steps-000002.npy").exists());
    // A pack has no room for vectors, and no run without a score.
    let text = refused(&options(&at("play"), &at("pack"), To::Packed46), "lossy");
    assert!(text.contains("embeddings"), "{text}");
    let text = refused(&ConvertOptions { lossy: true, ..options(&at("play"), &at("pack"), To::Packed46) }, "defaults");
    assert!(text.contains("scores and seeds of 1 runs"), "{text}");
    freely(&at("play"), &at("pack"), To::Packed46);
    assert_eq!(listed(&at("pack")).len(), 7);
    let seeds: Vec<u32> = steps(&at("pack")).iter().map(|step| step.row.seed).collect();
    assert!(seeds.contains(&1006) && seeds.contains(&0) && !seeds.contains(&1005));
}

#[test]
fn legacy_packs_of_the_time_are_mended() {
    let root = tempfile::tempdir().unwrap();
    let at = places(root.path());
    fs::create_dir(at("appended")).unwrap();
    let once: Vec<Step> = rows(2).into_iter().map(|row| Step { run_id: row.run_id.into(), row }).collect();
    let long = |i: u32| Step { run_id: 0, row: StepRow { step_index: i, ..row(0, i % 20) } };
    let added: Vec<Step> = (0..66_000).map(long).collect();
    let all = [once.clone(), added].concat();
    write(&at("appended"), "steps.npy", Rows::Legacy, Rows::Legacy.layout(), &all);
    let mut known = runs(2);
    known.push(Run { id: 2, seed: Some(0), steps: 66_000, max_score: 5, highest_tile: 4 });
    let mut metadata = MetadataWriter::open(at("appended").join("metadata.db")).unwrap();
    known.iter().for_each(|run| metadata.put_run(run).unwrap());
    metadata.make_legacy().unwrap();
    metadata.finish().unwrap();
    assert!(open(&at("appended")).unwrap_err().to_string().contains("convert"));
    let text = refused(&options(&at("appended"), &at("legacy"), To::Legacy), "lossy");
    assert!(text.contains("up to 65999"), "{text}");
    run(&options(&at("appended"), &at("exponents"), To::Exponents)).unwrap();
    let found = steps(&at("exponents"));
    assert_eq!(found.len(), all.len());
    let keys: Vec<(u64, u32)> = found.iter().map(|step| (step.run_id, step.row.step_index)).collect();
    assert!(keys.is_sorted() && keys.last() == Some(&(2, 65_999)));
}

fn sidecar(folder: &Path, name: &str, keys: &[(u32, u32)]) {
    let layout = "[('run_id', '<u4'), ('step_index', '<u4'), ('value', '<f4')]";
    let dtype = DType::Record(Layout::parse_descr(layout).unwrap());
    let mut bytes = Header::write(&dtype, &[keys.len() as u64], Spelling::NumPy).unwrap();
    for (run, step) in keys {
        bytes.extend([run.to_le_bytes(), step.to_le_bytes()].concat());
        bytes.extend((*run as f32 * 100.0 + *step as f32).to_le_bytes());
    }
    fs::write(folder.join(name), bytes).unwrap();
}

#[test]
fn fields_of_other_files_are_joined_by_game_and_step() {
    let root = tempfile::tempdir().unwrap();
    let at = places(root.path());
    fs::create_dir(at("pack")).unwrap();
    write_pack(&at("pack"), 3, &Form::default());
    let mut keys: Vec<(u32, u32)> = rows(3).iter().map(|row| (row.run_id, row.step_index)).collect();
    keys.reverse();
    let (one, two) = keys.split_at(9);
    sidecar(&at("pack"), "values-00000.npy", one);
    sidecar(&at("pack"), "values-00001.npy", two);
    sidecar(&at("pack"), "values-student-00000.npy", &[]);
    let join = |name: &str| ConvertOptions {
        join: vec![at("pack").join(name)],
        ..options(&at("pack"), &at("joined"), To::Exponents)
    };
    run(&join("values")).unwrap();
    let (selection, stored) = records(&at("joined"));
    let field = selection.layout().field("value").unwrap().offset;
    for (record, row) in stored.chunks_exact(selection.layout().size()).zip(rows(3)) {
        assert_eq!(record[field..][..4], (row.run_id as f32 * 100.0 + row.step_index as f32).to_le_bytes());
    }
    // The same fields again, and a form without room for them.
    let twice = ConvertOptions { join: vec![at("pack").join("values"); 2], output: at("x"), ..join("values") };
    assert!(refused(&twice, "join").contains("`value` is there already"));
    assert!(refused(&ConvertOptions { to: To::SelfPlay, lossy: true, ..join("values") }, "join").contains("exponents"));
    // Partners that are missing, or there twice.
    sidecar(&at("pack"), "values-00001.npy", &two[1..]);
    let missing = ConvertOptions { output: at("y"), ..join("values") };
    let Err(Error::Format(e)) = run(&missing) else { panic!() };
    assert!(e.kind() == Kind::Missing && e.to_string().contains("steps.npy") && e.detail().contains("--inner"), "{e}");
    let inner = run(&ConvertOptions { inner: true, ..missing.clone() }).unwrap();
    assert_eq!((inner.rows, inner.read, inner.remarks.len()), (keys.len() as u64 - 1, keys.len() as u64, 1));
    sidecar(&at("pack"), "values-00001.npy", &[two, &two[..1]].concat());
    let Err(Error::Format(e)) = run(&ConvertOptions { output: at("z"), ..missing }) else { panic!() };
    assert!(e.kind() == Kind::Corrupt && e.to_string().contains("values-0000") && e.detail().contains("twice"), "{e}");
    assert!(fs::read_dir(at("z")).map_or(0, Iterator::count) == 0);
    assert!(matches!(run(&join("nothing")), Err(Error::Format(e)) if e.kind() == Kind::Missing));
}

#[test]
fn refusals_and_interruptions_leave_what_was_there() {
    let root = tempfile::tempdir().unwrap();
    let at = places(root.path());
    for name in ["pack", "there"] {
        fs::create_dir(at(name)).unwrap();
        write_pack(&at(name), 5, &Form::default());
    }
    let before = fs::read(at("there").join("steps.npy")).unwrap();
    let to = |output: &str| options(&at("pack"), &at(output), To::Packed46);
    for output in ["there", "pack", "pack/inside"] {
        refused(&to(output), "output");
    }
    refused(&ConvertOptions { shard_rows: Some(5), to: To::Legacy, ..to("new") }, "shard_rows");
    let dry = run(&ConvertOptions { dry_run: true, ..to("new") }).unwrap();
    assert!(dry.dry_run && dry.rows == rows(5).len() as u64 && !at("new").exists());
    let stopped = ConvertOptions { overwrite: true, ..to("there") };
    stopped.stop.store(true, Ordering::Relaxed);
    assert!(matches!(run(&stopped), Err(Error::Stopped)));
    // An error after the staging was made takes it away again.
    let mut twice = rows(5);
    twice[7].step_index = twice[6].step_index;
    write_rows(&at("pack"), &twice, &Form::default());
    let exponents = ConvertOptions { overwrite: true, to: To::Exponents, ..to("there") };
    let Err(Error::Format(e)) = run(&exponents) else { panic!() };
    assert!(e.kind() == Kind::Corrupt && e.place().frame == Some(7), "{e}");
    assert_eq!(fs::read(at("there").join("steps.npy")).unwrap(), before);
    assert!(!at("there").join(".pack.part").exists());
    // A form that does not ask for an order takes such rows as they are.
    run(&ConvertOptions { overwrite: true, ..to("there") }).unwrap();
    assert_eq!(steps(&at("there")).iter().map(|step| step.row).collect::<Vec<_>>(), twice);
    let mut wide = rows(2);
    wide.truncate(1);
    let wide = Step { run_id: 1 << 40, row: StepRow { run_id: 0, ..wide[0] } };
    fs::create_dir(at("wide")).unwrap();
    write(&at("wide"), "steps-000001.npy", Rows::SelfPlay, Rows::SelfPlay.layout(), &[wide]);
    write_runs(&at("wide"), &[Run { id: 1 << 40, seed: Some(1), steps: 1, max_score: 4, highest_tile: 2 }]);
    let to = ConvertOptions { defaults: true, ..options(&at("wide"), &at("narrow"), To::Aligned48) };
    assert!(refused(&to, "renumber").contains("32 bits"));
    run(&ConvertOptions { renumber: true, ..to }).unwrap();
    assert_eq!((steps(&at("narrow"))[0].run_id, listed(&at("narrow"))[0].id), (0, 0));
    let kept = open(&at("narrow")).unwrap().query("original_id = ?", &[(1i64 << 40).into()]).unwrap();
    assert_eq!(kept.rows().len(), 1);
}
