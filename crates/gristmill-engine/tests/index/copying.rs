//! A loader copies fields of records straight from the pack. An encoder makes the same batches of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, Shuffle};
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::container::described::Described;
use gristmill_format::records::pack::CODEC;

const SCHEMA: &str = r#"{"layout": "[('n', '<u8'), ('square', '|u1', (33,)), ('k', '<u2')]", "identity": ["n"], "columns": [], "facts": []}"#;

/// A pack of records, each of which says its number, in games of these lengths.
fn pack(folder: &Path, lengths: &[u64]) -> Selection {
    let (mut out, mut writer, mut first) = (MAGIC.to_vec(), ChunkFileWriter::new(CODEC), 0);
    for frames in lengths {
        let record = |n: u64| [&n.to_le_bytes()[..], &[n as u8; 33], &(n as u16 ^ 0x0FF0).to_le_bytes()].concat();
        let records: Vec<u8> = (first..first + frames).flat_map(record).collect();
        let mut packed = Vec::new();
        let described = Described { frames: *frames as usize, texts: [SCHEMA, ""], records: &records };
        described.write(&mut packed).unwrap();
        writer.add("game", *frames as u32, &packed).unwrap();
        out.extend(packed);
        first += frames;
    }
    out.extend(writer.finish());
    std::fs::write(folder.join("games-00000.chunks"), out).unwrap();
    Selection::all(Arc::new(ChunkPack::open(folder, Residence::Mapped).unwrap()))
}

/// Number and columns of every batch with these tensors.
fn batches(rows: &Selection, tensors: &[&str], config: IndexConfig) -> Vec<(usize, Vec<Vec<u8>>)> {
    let tensors = tensors.iter().map(|name| (*name).to_owned()).collect();
    let config = IndexConfig { encoder: EncoderConfig::Fields, tensors, seed: Some(5), ..config };
    let loader = IndexLoader::new(rows.input(), config).unwrap();
    let mut found = Vec::new();
    while let Next::Batch(batch) = loader.next("", Some(Duration::from_secs(20))).unwrap() {
        found.push((batch.rows, batch.columns.iter().map(|column| column.bytes().to_vec()).collect()));
    }
    found
}

#[test]
fn what_is_copied_is_what_is_encoded() {
    let folder = tempfile::tempdir().unwrap();
    let all = pack(folder.path(), &[250, 1, 999, 250, 3, 250, 1000]);
    let some = all.slice(7, 2700);
    let shuffles = [Shuffle::Off, Shuffle::Rows, Shuffle::Blocks { rows: 64, blocks: 3 }];
    for (rows, batch_size, world_size) in [(&all, 1024, 1), (&some, 2048, 2), (&some, 7, 1), (&all, 2600, 1)] {
        for shuffle in shuffles {
            let epochs = if batch_size < 10 { 1 } else { 3 };
            let config = |threads| IndexConfig {
                batch_size,
                epochs: Some(epochs),
                shuffle,
                world_size,
                rank: world_size - 1,
                last_batch: LastBatch::Pad,
                threads: Some(threads),
                ..IndexConfig::default()
            };
            // `draw` is no part of a record, so the encoder makes this batch.
            let mut encoded = batches(rows, &["k", "n", "square", "draw"], config(1));
            encoded.iter_mut().for_each(|(_, columns)| columns.truncate(3));
            for threads in [1, 2] {
                let copied = batches(rows, &["k", "n", "square"], config(threads));
                assert!(copied == encoded, "batches of {batch_size}, {shuffle:?}, {threads} threads");
            }
        }
    }
}
