//! Raw logs of 2048 stream through the river as they are; a bad line costs its game and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gristmill_engine::DataLoader;
use gristmill_engine::config::{EncoderConfig, G2048EncoderConfig, G2048Target};
use gristmill_engine::preset::Lc0Preset;
use gristmill_generate::{G2048Generator, G2048Options};

use super::games::{config, hash, next, of_pool, preset};

/// Eight short games, and their sidecars.
pub(crate) fn logs(folder: &Path) -> G2048Generator {
    let options = G2048Options {
        folder: folder.to_owned(),
        games: 8,
        first: 0,
        seed: 3,
        depth: 0,
        moves_max: 60,
        level: 6,
        threads: 2,
    };
    let generator = G2048Generator::new(options).unwrap();
    generator.run(&mut |_| {}).unwrap();
    generator
}

fn loader(folder: &Path, threads: usize) -> DataLoader {
    let mut config = config(&Lc0Preset { pool: 8, threads: Some(threads), ..preset(folder) });
    let encoder = G2048EncoderConfig { target: G2048Target::HardMove, ..G2048EncoderConfig::default() };
    let mut generators = config.stage.iter_mut().filter_map(|stage| stage.tensor_generator.as_mut());
    generators.next().unwrap().encoder = EncoderConfig::G2048(encoder);
    DataLoader::new(config).unwrap()
}

#[test]
fn a_loader_streams_raw_logs_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    logs(folder.path());
    let hashes = |threads| {
        let loader = loader(folder.path(), threads);
        (0..20).map(|_| hash(&next(&loader, "").unwrap())).collect::<Vec<_>>()
    };
    let one = hashes(1);
    assert_eq!(hashes(4), one);
    assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 20, "batches differ from each other");
}

#[test]
fn a_bad_line_costs_its_game_alone() {
    let folder = tempfile::tempdir().unwrap();
    let generator = logs(folder.path());
    fs::write(&generator.paths(5)[0], "{\"move\":\"up\"}\n").unwrap();
    let loader = loader(folder.path(), 2);
    let rows: usize = (0..60).map(|_| next(&loader, "").unwrap().rows).sum();
    assert_eq!(rows, 60 * 16);
    assert_eq!(of_pool(&loader, "chunks_current"), 7, "sidecars are no games, and one game is bad");
    let bad = loader.metrics().bad_chunks;
    assert_eq!(bad.by_kind.into_iter().collect::<Vec<_>>(), [("corrupt".to_owned(), 1)]);
    assert!(bad.latest.iter().any(|text| text.contains("line 1 column")), "{:?}", bad.latest);
}
