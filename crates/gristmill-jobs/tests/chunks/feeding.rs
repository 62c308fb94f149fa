//! Packs opened: positions by number, selections, and batches that are the tensors of the records.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, HanseSamplingConfig, IndexConfig, LastBatch, Pad, Shuffle, View};
use gristmill_engine::selection::Selection;
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::Residence;
use gristmill_engine::{Batch, IndexLoader, Next};
use gristmill_format::chess::{ChessEncoder, Outputs};
use gristmill_format::encode::{Encoder, Provenance, Row};

use crate::fixture::{input, packed, records};
use crate::resumed::check_every_batch;

fn open(pack: &Path) -> Selection {
    Selection::all(Arc::new(ChunkPack::open(pack, Residence::Mapped).unwrap()))
}

/// The records of a folder, widened, one after another.
fn wide(folder: &Path) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for game in records(folder, &[".gz", ".tar"]) {
        let size = if game[0] == 7 { 8396 } else { 8356 };
        for record in game.chunks_exact(size) {
            let mut record = record.to_vec();
            record.resize(8396, 0);
            frames.push(record);
        }
    }
    frames
}

fn row(record: &[u8]) -> Row<'_> {
    Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None }
}

fn config(threads: usize) -> IndexConfig {
    IndexConfig {
        encoder: EncoderConfig::Chess,
        batch_size: 40,
        seed: Some(5),
        epochs: Some(2),
        threads: Some(threads),
        ..IndexConfig::default()
    }
}

fn columns(batch: &Batch) -> Vec<Vec<u8>> {
    batch.columns.iter().map(|column| column.bytes().to_vec()).collect()
}

fn batches(loader: &IndexLoader) -> Vec<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    while let Next::Batch(batch) = loader.next("", None).unwrap() {
        found.push(columns(&batch));
    }
    found
}

#[test]
fn batches_are_the_tensors_of_the_records_in_any_order() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let all = open(out.path());
    let frames = wide(input.path());
    assert_eq!((all.rows().len(), all.games().len()), (frames.len() as u64, 11));
    let places: Vec<u64> = (0..frames.len() as u64).rev().collect();
    let taken = all.take(&places).unwrap();
    assert!(taken.chunks_exact(8396).rev().eq(frames.iter().map(Vec::as_slice)));
    assert!(all.take(&[frames.len() as u64]).is_err());

    // With the policy, without it, and with what follows from it alone.
    for tensors in [&["planes", "probs", "values"][..], &["planes:bits", "values"], &["planes:packed", "best_idx"]] {
        let tensors: Vec<String> = tensors.iter().copied().map(String::from).collect();
        let encoder = ChessEncoder::new(&Outputs::parse(&tensors).unwrap()).unwrap();
        let stored = IndexConfig { tensors, shuffle: Shuffle::Off, epochs: Some(1), ..config(1) };
        let found = batches(&IndexLoader::new(all.input(), stored).unwrap());
        for (batch, frames) in found.iter().zip(frames.chunks(40)) {
            let mut out: Vec<Vec<u8>> =
                encoder.outputs().iter().map(|spec| vec![0; frames.len() * spec.row_bytes()]).collect();
            let rows: Vec<Row<'_>> = frames.iter().map(|record| row(record)).collect();
            encoder.encode(&rows, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
            assert!(*batch == out);
        }
        assert_eq!(found.len(), frames.len().div_ceil(40));
    }
}

#[test]
fn a_shuffle_goes_on_exactly_with_any_threads_and_ranks_share_it() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let all = open(out.path());
    let whole = batches(&IndexLoader::new(all.input(), config(1)).unwrap());
    assert!(batches(&IndexLoader::new(all.input(), config(3)).unwrap()) == whole);
    let rank = |rank| IndexConfig { rank, world_size: 2, ..config(1) };
    let [even, odd] = [0, 1].map(|r| batches(&IndexLoader::new(all.input(), rank(r)).unwrap()));
    let values = |batch: &Vec<Vec<u8>>| batch[2].chunks_exact(72).map(<[u8]>::to_vec).collect::<Vec<_>>();
    for ((even, odd), whole) in even.iter().zip(&odd).zip(&whole) {
        let mut union = [values(even), values(odd)].concat();
        let mut expected = values(whole);
        union.sort();
        expected.sort();
        assert!(union == expected);
    }
}

#[test]
fn every_tensor_view_and_draw_goes_on_after_any_batch() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let (some, _) = open(out.path()).split(0.3, 42).unwrap();
    let orders = [Shuffle::Rows, Shuffle::Blocks { rows: 16, blocks: 2 }, Shuffle::Off];
    let window = View::Window { offsets: vec![-2, 0, 1], pad: Pad::Zero, tensors: vec!["values".into()] };
    let kinds: [(&[&str], Option<View>, bool); 5] = [
        (&[], None, false),
        (&["planes:f16", "legal", "ids"], None, false),
        (&["planes:u8", "values"], Some(window), false),
        (&["planes:bits", "probs"], Some(View::Next { steps: 2, pad: Pad::Drop }), false),
        (&["planes:bits", "probs", "values"], None, true),
    ];
    for (i, (tensors, view, sampled)) in kinds.into_iter().enumerate() {
        let config = IndexConfig {
            batch_size: 24,
            epochs: Some(3),
            shuffle: if sampled { Shuffle::Rows } else { orders[i % 3] },
            last_batch: [LastBatch::Pad, LastBatch::Keep, LastBatch::Drop][i % 3],
            tensors: tensors.iter().map(|name| name.to_string()).collect(),
            view,
            sampling: sampled.then(HanseSamplingConfig::default),
            ..config(0)
        };
        check_every_batch(&format!("{tensors:?}"), &some.input(), &config, &[1, 4, 2]);
    }
}

#[test]
fn games_are_selected_in_sql_and_by_side() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let all = open(out.path());
    let wide = all.query("version = ?", &[SqlValue::Integer(7)]).unwrap();
    assert_eq!(wide.games().len(), 2);
    assert!(wide.games().iter().all(|game| all.pack().source(*game).unwrap().starts_with("wide/")));
    let rest = all.query("SELECT id FROM games WHERE version = 6", &[]).unwrap();
    assert_eq!(rest.rows().len() + wide.rows().len(), all.rows().len());
    assert!(all.query("nonsense = 1", &[]).unwrap_err().to_string().contains("nonsense"));
    let (train, val) = all.split(0.4, 42).unwrap();
    let mut both = [train.games(), val.games()].concat();
    both.sort_unstable();
    assert_eq!(both, all.games());
    // The sides are those of the games, not of the pack.
    let again = tempfile::tempdir().unwrap();
    fs::rename(input.path().join("wide"), input.path().join("a")).unwrap();
    packed(input.path(), again.path(), |_| {}).unwrap();
    let moved = open(again.path());
    let names = |side: &Selection| {
        let name = |game: &u64| side.pack().source(*game).unwrap().replace("wide/", "a/");
        side.games().iter().map(name).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names(&moved.split(0.4, 42).unwrap().1), names(&val));
    assert!(all.split(1.0, 1).is_err());
    assert_ne!(train.input().identity, all.input().identity);
}

#[test]
fn damage_is_told_with_file_and_game() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let path = out.path().join("games-00000.chunks");
    let mut bytes = fs::read(&path).unwrap();
    bytes[200] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let all = open(out.path());
    let error = all.take(&[0]).unwrap_err().to_string();
    assert!(error.contains("games-00000.chunks") && error.contains("chunk 0") && error.contains("checksum"), "{error}");
    let last = all.rows().len() - 1;
    all.take(&[last]).unwrap();
    let loader = IndexLoader::new(all.input(), IndexConfig { shuffle: Shuffle::Off, ..config(1) }).unwrap();
    let error = loader.next("", None).unwrap_err().to_string();
    assert!(error.contains("games-00000.chunks") && error.contains("chunk 0"), "{error}");
    // A mapped file must not be cut while anyone reads it.
    loader.stop();
    drop((loader, all));
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(ChunkPack::open(out.path(), Residence::Mapped).unwrap_err().to_string().contains("games-00000.chunks"));
    let empty = tempfile::tempdir().unwrap();
    assert!(ChunkPack::open(empty.path(), Residence::Mapped).is_err());
}
