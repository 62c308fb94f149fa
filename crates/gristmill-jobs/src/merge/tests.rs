//! Packs of a few generated games into one: what goes along with the rows, what is said of the rest, and what is refused.

mod chunks;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::marks;
use gristmill_engine::pack::manifest::Manifest;
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::pack::rows::RowBlock;
use gristmill_engine::pack::values::Made;
use gristmill_engine::pack_table::PackTable;
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_engine::store::publish::place_of;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::StepRow;
use gristmill_format::layout::{DType, Order, Scalar};
use gristmill_generate::{G2048Generator, G2048Options};

use super::block::{Block, BlockReader};
use super::input::Input;
use super::*;
use crate::mark::{MarkOptions, Which, mark};
use crate::pack::{PackOptions, pack};
use crate::values::{ValuesOptions, values};

/// A folder with packs.
struct Packs(tempfile::TempDir);

impl Packs {
    fn new() -> Self {
        Packs(tempfile::tempdir().unwrap())
    }

    /// `a`: two games in files of 9 rows; `empty`: a game without moves; `b`: three games.
    fn of_rows() -> Self {
        let packs = Packs::new();
        packs.played("a", 1, 2, Some(9));
        packs.played("b", 5, 3, None);
        let games = packs.at("empty-games");
        fs::create_dir(&games).unwrap();
        fs::write(games.join("x.meta.json"), r#"{"seed":1,"num_moves":0,"score":0,"max_tile":2}"#).unwrap();
        fs::write(games.join("x.jsonl.gz"), gristmill_format::container::gzip::compress(1, b"").unwrap()).unwrap();
        pack(&PackOptions { workers: 1, ..PackOptions::new(&games, packs.at("empty")) }, &mut |_| {}).unwrap();
        packs
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Plays games of 16 moves, and packs them.
    fn played(&self, name: &str, seed: u64, games: u64, shard_rows: Option<u64>) {
        let folder = self.at(&format!("{name}-games"));
        let options = G2048Options {
            folder: folder.clone(),
            games,
            first: 0,
            seed,
            depth: 0,
            moves_max: 16,
            level: 1,
            threads: 1,
        };
        let generator = G2048Generator::new(options).unwrap();
        generator.run(&mut |_| {}).unwrap();
        let options = PackOptions { shard_rows, workers: 1, ..PackOptions::new(&folder, self.at(name)) };
        pack(&options, &mut |_| {}).unwrap();
    }

    fn options(&self, inputs: &[&str], output: &str) -> MergeOptions {
        let inputs = inputs.iter().map(|name| self.at(name)).collect();
        MergeOptions { workers: 2, ..MergeOptions::new(inputs, self.at(output)) }
    }

    fn merged(&self, inputs: &[&str], output: &str) -> Merged {
        merge(&self.options(inputs, output), &mut |_, _| {}).unwrap()
    }

    fn valued(&self, name: &str) {
        values(&ValuesOptions { workers: 1, overwrite: true, ..ValuesOptions::new(self.at(name)) }, &mut |_, _| {})
            .unwrap();
    }

    /// Writes vectors of `size` numbers beside rows in one file: the first is `first`, the last the number of the row.
    fn vectors(&self, name: &str, size: usize, first: f32) {
        let rows = self.rows(name).len();
        let scalar = DType::Scalar(Scalar::F32, Order::Little);
        let mut bytes = Header::write(&scalar, &[rows as u64, size as u64], Spelling::NumPy).unwrap();
        for row in 0..rows {
            let start = bytes.len();
            bytes.extend(first.to_le_bytes());
            bytes.resize(start + 4 * (size - 1), 0);
            bytes.extend((row as f32).to_le_bytes());
        }
        fs::write(self.at(name).join("embeddings.npy"), bytes).unwrap();
    }

    fn rows(&self, name: &str) -> Vec<StepRow> {
        let list = gristmill_engine::pack::shards::list(&self.at(name)).unwrap();
        let rows = |shard: gristmill_engine::pack::shards::Shard| {
            let bytes = fs::read(&shard.path).unwrap();
            let rows = bytes[shard.offset as usize..].as_chunks().0.iter();
            rows.map(StepRow::from_aligned).collect::<Vec<_>>()
        };
        list.into_iter().flat_map(rows).collect()
    }

    fn manifest(&self, name: &str) -> Manifest {
        Manifest::read(&self.at(name)).unwrap().unwrap()
    }
}

fn opened(folder: &Path) -> Arc<dyn PackTable> {
    match gristmill_engine::chunks::is_pack(folder).unwrap() {
        true => Arc::new(ChunkPack::open(folder, Residence::Mapped).unwrap()),
        false => Arc::new(RowPack::open(folder, Residence::Mapped).unwrap()),
    }
}

fn ruled(folder: &Path, name: &str, rule: &str) {
    let options = MarkOptions { workers: 1, replace: true, ..MarkOptions::new(name) };
    mark(&opened(folder), &Which::Rule(rule.into()), &options, &mut |_, _| {}).unwrap();
}

/// Asserts that a pack has exactly these marks, each with some frames, and those that its rule finds now.
fn are_as_found(folder: &Path, names: &[&str]) {
    assert_eq!(marks::names(folder).unwrap(), names);
    for name in names {
        let pack = opened(folder);
        let carried = marks::read(&*pack, name).unwrap();
        assert!(!carried.rows.is_empty() && carried.rows.len() < carried.frames, "{name} tells nothing: {carried:?}");
        ruled(folder, name, &carried.rule);
        assert_eq!(marks::read(&*pack, name).unwrap(), carried, "{name}");
    }
}

fn says(said: &[String], name: &str, why: &str) {
    let start = format!("mark `{name}` is not carried: ");
    assert!(said.iter().any(|text| text.starts_with(&start) && text.contains(why)), "{name}: {why}: {said:#?}");
}

fn refused(options: &MergeOptions) -> String {
    merge(options, &mut |_, _| {}).unwrap_err().to_string()
}

#[test]
fn packs_and_their_output_may_be_urls_of_files() {
    let packs = Packs::of_rows();
    let url = |name| PathBuf::from(format!("file://{}", packs.at(name).display()));
    let options = MergeOptions { workers: 1, ..MergeOptions::new(vec![url("a"), url("b")], url("ab")) };
    merge(&options, &mut |_, _| {}).unwrap();
    packs.merged(&["a", "b"], "plain");
    assert!(packs.rows("ab") == packs.rows("plain"));
    let into_itself = |output| {
        let inputs = vec![packs.at("a"), packs.at("b")];
        let options = MergeOptions { overwrite: true, ..MergeOptions::new(inputs, output) };
        merge(&options, &mut |_, _| {}).unwrap_err().to_string()
    };
    assert_eq!(into_itself(url("a")), into_itself(packs.at("a")));
}

#[test]
fn options_are_read_from_json() {
    let options =
        MergeOptions::from_json(r#"{"inputs":["a","b"],"output":"c","shard_rows":7,"dry_run":true}"#).unwrap();
    assert_eq!((options.inputs, options.output), (vec!["a".into(), "b".into()], PathBuf::from("c")));
    assert_eq!((options.shard_rows, options.dry_run, options.overwrite), (Some(7), true, false));
    assert!(MergeOptions::from_json(r#"{"inptus":[]}"#).unwrap_err().to_string().contains("inputs"));
}

#[test]
fn what_is_planned_is_what_comes() {
    let packs = Packs::of_rows();
    ["a", "b"].iter().for_each(|name| {
        packs.valued(name);
        ruled(&packs.at(name), "high", "max_exponent >= 3 AND game.steps > 3");
        ruled(&packs.at(name), "paid", "reward > 0");
        ruled(&packs.at(name), "first", "run_id = 0");
    });
    packs.vectors("b", 2, 1.0);
    let options = MergeOptions { shard_rows: Some(10), ..packs.options(&["b", "empty", "a"], "all") };
    let plan = merge(&MergeOptions { dry_run: true, ..options.clone() }, &mut |_, _| {}).unwrap();
    let mut most = (0, 0);
    let done = merge(&options, &mut |rows, of| most = (rows, of)).unwrap();
    let (a, b) = (packs.rows("a").len() as u64, packs.rows("b").len() as u64);
    assert_eq!((&done.pack, done.packs, done.layout), (&packs.at("all").display().to_string(), 3, "aligned48"));
    assert_eq!((done.rows, done.runs, done.files, most), (a + b, 6, (a + b).div_ceil(10), (a + b, a + b)));
    assert_eq!((&done.carried, &done.marks), (&vec!["values"], &vec!["high".to_owned(), "paid".into()]));
    says(&done.lost, "first", "`frame.run_id`");
    assert!(done.lost.len() == 2 && done.lost[0].contains("vectors of rows") && done.lost[0].contains("/a has none"));
    assert_eq!(
        (plan.pack, plan.layout, plan.rows, plan.runs, plan.files),
        (done.pack, done.layout, done.rows, 6, done.files)
    );
    assert_eq!((plan.carried, plan.marks, plan.lost), (done.carried, done.marks, done.lost));
    assert!(done.seconds < 600.0 && done.cpu_seconds >= 0.0);
    are_as_found(&packs.at("all"), &["high", "paid"]);
    let merged = packs.manifest("all").sources.merged;
    assert_eq!(merged.iter().map(|pack| (pack.rows, pack.runs)).collect::<Vec<_>>(), [(b, 3), (0, 1), (a, 2)]);
}

#[test]
fn a_bound_of_no_rows_is_none() {
    let packs = Packs::of_rows();
    let done =
        merge(&MergeOptions { shard_rows: Some(0), ..packs.options(&["a", "b"], "ab") }, &mut |_, _| {}).unwrap();
    assert_eq!((done.files, packs.manifest("ab").shard_rows), (1, None));
}

/// Of the large ones three are copied at a time.
#[test]
fn vectors_are_cut_where_rows_are() {
    let packs = Packs::of_rows();
    packs.merged(&["a", "empty"], "whole");
    let (a, b) = (packs.rows("whole").len(), packs.rows("b").len());
    for size in [2, 80_000] {
        packs.vectors("whole", size, 1.0);
        packs.vectors("b", size, 2.0);
        let options = MergeOptions { shard_rows: Some(7), overwrite: true, ..packs.options(&["whole", "b"], "ab") };
        assert_eq!(merge(&options, &mut |_, _| {}).unwrap().carried, ["embeddings"]);
        let read = |name: &str| {
            let bytes = fs::read(packs.at("ab").join(name)).unwrap();
            let header = Header::read(&bytes[..]).unwrap();
            let numbers = bytes[header.data_offset() as usize..].chunks_exact(4 * size);
            let ends =
                |row: &[u8]| [&row[..4], &row[row.len() - 4..]].map(|b| f32::from_le_bytes(b.try_into().unwrap()));
            (header.shape()[0], numbers.map(ends).collect::<Vec<_>>())
        };
        let files = (a + b).div_ceil(7);
        let found: Vec<_> = (0..files).map(|i| read(&format!("embeddings-{i:05}.npy"))).collect();
        assert!(found[..files - 1].iter().all(|(rows, _)| *rows == 7));
        let all: Vec<[f32; 2]> = found.into_iter().flat_map(|(_, vectors)| vectors).collect();
        let expected = (0..a).map(|i| [1.0, i as f32]).chain((0..b).map(|i| [2.0, i as f32]));
        assert_eq!(all, expected.collect::<Vec<_>>());
    }
}

#[test]
fn what_is_not_carried_stays_when_inputs_are_deleted() {
    let packs = Packs::of_rows();
    packs.valued("b");
    ruled(&packs.at("b"), "alone", "max_exponent > 2");
    let done =
        merge(&MergeOptions { delete_inputs: true, ..packs.options(&["a", "b"], "ab") }, &mut |_, _| {}).unwrap();
    assert_eq!((done.carried.len(), done.lost.len(), done.deleted.len()), (0, 2, 2));
    assert!(!packs.at("a").exists());
    let mut left: Vec<_> = done.left.iter().map(|path| Path::new(path).file_name().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, ["marks", "values.json", "values.npy"]);
    assert!(packs.at("b/marks/alone.mark").exists());
}

#[test]
fn a_new_pack_says_how_all_that_have_rows_came_to_be() {
    let packs = Packs::of_rows();
    ["a", "b"].iter().for_each(|name| packs.valued(name));
    packs.merged(&["a", "empty", "b"], "all");
    let (step, own) = (&packs.manifest("all").lineage[0], |name: &str| packs.manifest(name).lineage);
    assert_eq!((step.job.as_str(), &step.from), ("merge", &vec![own("a"), own("empty"), own("b")]));
    let made = |name: &str| Made::read(&packs.at(name)).unwrap().unwrap().lineage;
    assert_eq!(made("all")[0].from, [made("a"), made("b")], "an empty pack has no values");
    // A pack of another program, and values without a lineage.
    fs::remove_file(packs.at("a").join("manifest.json")).unwrap();
    let told = fs::read_to_string(packs.at("b").join("values.json")).unwrap();
    let mut told: serde_json::Value = serde_json::from_str(&told).unwrap();
    told["lineage"] = serde_json::json!([]);
    fs::write(packs.at("b").join("values.json"), told.to_string()).unwrap();
    packs.merged(&["a", "b"], "ab");
    let step = &packs.manifest("ab").lineage[0];
    assert_eq!((step.from[0][0].job.as_str(), &step.from[1]), ("unrecorded", &own("b")));
    let path = packs.at("b").join("manifest.json");
    let mut told: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    told["lineage"] = serde_json::json!([]);
    fs::write(path, told.to_string()).unwrap();
    packs.merged(&["empty", "b"], "untold");
    assert_eq!(packs.manifest("untold").lineage[0].from[1][0].job, "unrecorded");
    assert_eq!(made("ab")[0].from[0], made("a"));
    assert_eq!(made("ab")[0].from[1][0].job, "unrecorded");
}

#[test]
fn names_of_valuations_get_other_ids_and_marks_that_ask_for_them_are_lost() {
    let packs = Packs::of_rows();
    let own = packs.rows("b")[0].valuation_type;
    ["a", "b"].iter().for_each(|name| ruled(&packs.at(name), "asks", "valuation_type = 9 OR max_exponent > 2"));
    packs.merged(&["a", "b"], "same");
    are_as_found(&packs.at("same"), &["asks"]);
    assert!(packs.rows("same").iter().all(|row| row.valuation_type == own));
    let path = packs.at("b").join("valuation_types.json");
    let names: Vec<String> = (0..=own).map(|i| if i == own { "new".into() } else { format!("n{i}") }).collect();
    fs::write(path, serde_json::to_string(&names).unwrap()).unwrap();
    let done = packs.merged(&["a", "b"], "other");
    says(&done.lost, "asks", "`frame.valuation_type`");
    let names = gristmill_engine::pack::open::valuations(&packs.at("other")).unwrap();
    let a = packs.rows("a").len();
    let id = packs.rows("other")[a].valuation_type;
    assert!(id != own && names.to_json().contains(&format!("\"new\": {id}")), "{id}: {}", names.to_json());
    assert!(packs.rows("other")[a..].iter().all(|row| row.valuation_type == id));
}

#[test]
fn marks_that_are_not_alike_in_all_packs_are_named() {
    let packs = Packs::of_rows();
    let (a, b) = (packs.at("a"), packs.at("b"));
    ruled(&a, "alone", "max_exponent > 2");
    ruled(&a, "other", "max_exponent > 2");
    ruled(&b, "other", "max_exponent > 1");
    [&a, &b].iter().for_each(|pack| ruled(pack, "chosen", "max_exponent = (SELECT 3)"));
    let mut some = Intervals::default();
    some.push(2, 7);
    for (name, which) in [("given", Which::Given(some.clone())), ("again", Which::Duplicates(some))] {
        let options = MarkOptions::new(name);
        [&a, &b].iter().for_each(|pack| _ = mark(&opened(pack), &which, &options, &mut |_, _| {}).unwrap());
    }
    ruled(&a, "broken", "max_exponent > 2");
    ruled(&b, "broken", "max_exponent > 2");
    let path = b.join("marks/broken.mark");
    let mut bytes = fs::read(&path).unwrap();
    bytes[70] ^= 1;
    fs::write(path, bytes).unwrap();
    ruled(&a, "foreign", "max_exponent > 2");
    fs::copy(a.join("marks/foreign.mark"), b.join("marks/foreign.mark")).unwrap();
    let done = packs.merged(&["a", "b"], "ab");
    assert_eq!((&done.marks, done.lost.len()), (&vec!["given".to_owned()], 6));
    for (name, why) in [
        ("alone", "/b has none of this name"),
        ("other", "different rules"),
        ("again", "dedup"),
        ("broken", "broken.mark"),
        ("foreign", "of another pack"),
        ("chosen", "SELECT"),
    ] {
        says(&done.lost, name, why);
    }
    let first = packs.rows("a").len() as u64;
    let given = marks::rows(&*opened(&packs.at("ab")), "given").unwrap();
    assert_eq!(given.iter().collect::<Vec<_>>(), [(2, 7), (first + 2, first + 7)]);
}

#[test]
fn a_row_that_names_no_run_is_told_by_its_number_in_its_file() {
    let packs = Packs::of_rows();
    let mut input = Input::open(&packs.at("b"), None).unwrap();
    // The rows of the third game.
    let first = packs.rows("b").iter().position(|row| row.run_id == 2).unwrap() as u64;
    input.runs.pop();
    let reader = BlockReader::new([input].into(), RowForm::Aligned, false);
    let of = RowBlock { file: 0, first: first - 3, start: first - 3, rows: 5 };
    let Err(e) = reader.read(&Block { input: 0, of }) else { panic!("the run is not there") };
    assert!(e.to_string().contains(&format!("row {first}: run 2 is not in the database")), "{e}");
}

#[test]
fn values_of_another_row_are_told_by_their_number_in_their_file() {
    let packs = Packs::of_rows();
    packs.valued("b");
    let path = packs.at("b").join("values.npy");
    let mut bytes = fs::read(&path).unwrap();
    let at = Header::read(&bytes[..]).unwrap().data_offset() as usize + 24 * 8;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let inputs: Arc<[Input]> = [Input::open(&packs.at("b"), None).unwrap()].into();
    let reader = BlockReader::new(inputs, RowForm::Aligned, true);
    let read = |first, rows| reader.read(&Block { input: 0, of: RowBlock { file: 0, first, start: first, rows } });
    let Err(e) = read(5, 6) else { panic!("the value is of another run") };
    let e = e.to_string();
    assert!(e.contains("value 8 is of another run") && e.contains(&format!("byte {at}")), "{e}");
    let taken = read(9, 2).unwrap();
    assert_eq!(taken.values.len(), 2 * 24);
}

/// Every way in which a published pack can be another than the one that was written.
#[test]
fn what_was_written_is_read_back_before_anything_is_deleted() {
    let packs = Packs::of_rows();
    packs.merged(&["a", "empty"], "whole");
    ["whole", "b"].iter().for_each(|name| {
        packs.valued(name);
        packs.vectors(name, 2, 1.0);
    });
    let options = packs.options(&["whole", "b"], "ab");
    let mut merging = rows::Merging::new(&options).unwrap();
    let (staging, _) = Staging::open(&options.output, pack::STAGING, JOB).unwrap();
    assert_eq!(merging.write(&staging, &mut |_, _| {}).unwrap(), 1);
    staging.publish(&[]).unwrap();
    merging.read_back().unwrap();
    let at = |name: &str| packs.at("ab").join(name);
    for name in ["steps.npy", "values.npy", "embeddings.npy"] {
        let whole = fs::read(at(name)).unwrap();
        let mut other = whole.clone();
        *other.last_mut().unwrap() ^= 1;
        fs::write(at(name), other).unwrap();
        let e = merging.read_back().unwrap_err().to_string();
        assert!(e.contains(name) && e.contains("inputs were kept"), "{e}");
        // A row less, whose number the header says.
        let header = Header::read(&whole[..]).unwrap();
        let shape: Vec<u64> = header.shape().iter().enumerate().map(|(i, n)| n - u64::from(i == 0)).collect();
        let start = Header::write(header.dtype(), &shape, Spelling::NumPy).unwrap();
        let row = (whole.len() - header.data_offset() as usize) / header.shape()[0] as usize;
        let rows = &whole[header.data_offset() as usize..whole.len() - row];
        fs::write(at(name), [&start[..], rows].concat()).unwrap();
        assert!(merging.read_back().unwrap_err().to_string().contains(name));
        fs::write(at(name), whole).unwrap();
    }
    fs::copy(packs.at("b").join("metadata.db"), at("metadata.db")).unwrap();
    assert!(merging.read_back().unwrap_err().to_string().contains("metadata.db"));
}

#[test]
fn an_output_with_something_else_is_left_alone() {
    let packs = Packs::of_rows();
    packs.chess("games", 1, 2);
    let before = packs.manifest("b");
    let options = MergeOptions { overwrite: true, ..packs.options(&["a", "empty"], "games") };
    assert!(refused(&options).contains("a pack of something else"));
    assert!(refused(&packs.options(&["a", "empty"], "b")).contains("a pack already"));
    assert_eq!(packs.manifest("b"), before);
    merge(&MergeOptions { overwrite: true, ..packs.options(&["a", "empty"], "b") }, &mut |_, _| {}).unwrap();
    assert_eq!(packs.manifest("b").rows, packs.manifest("a").rows);
}

#[test]
fn what_a_job_left_in_the_output_is_finished_or_given_up_as_the_user_says() {
    let packs = Packs::of_rows();
    let killed = |output: &str| {
        let (staging, _) = Staging::open(&packs.at(output), pack::STAGING, JOB).unwrap();
        fs::write(staging.path("notes"), "of a merge that was killed while it published").unwrap();
        let job = fs::read(place_of(&packs.at(output), pack::STAGING, ".job.json")).unwrap();
        let job: serde_json::Value = serde_json::from_slice(&job).unwrap();
        let plan = serde_json::json!({"token": job["token"], "remove": [], "publish": ["notes"]});
        staging.keep();
        fs::write(place_of(&packs.at(output), pack::STAGING, ".publish.json"), plan.to_string()).unwrap();
    };
    killed("ab");
    assert!(refused(&packs.options(&["a", "b"], "ab")).contains("was completed there now"));
    assert!(packs.at("ab/notes").exists());
    killed("ab");
    merge(&MergeOptions { overwrite: true, ..packs.options(&["a", "b"], "ab") }, &mut |_, _| {}).unwrap();
    assert_eq!(packs.rows("ab").len(), packs.rows("a").len() + packs.rows("b").len());
    // A job of packing that was stopped left games that are packed already.
    let stopped =
        PackOptions { workers: 1, checkpoint_rows: 1, ..PackOptions::new(packs.at("b-games"), packs.at("c")) };
    let stop = stopped.stop.clone();
    let e = pack(&stopped, &mut |_| stop.store(true, std::sync::atomic::Ordering::Relaxed)).unwrap_err();
    assert!(matches!(e, Error::Stopped), "{e}");
    assert!(refused(&packs.options(&["a", "b"], "c")).contains("an interrupted job of `pack`"));
    merge(&MergeOptions { overwrite: true, ..packs.options(&["a", "b"], "c") }, &mut |_, _| {}).unwrap();
    assert_eq!(packs.rows("c"), packs.rows("ab"));
}
