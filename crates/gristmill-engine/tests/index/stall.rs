//! Who waits for whom where rows are fed by number: each cause is made on purpose and read by its name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, G2048EncoderConfig, IndexConfig};
use gristmill_engine::pipeline::Waits;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::{IndexLoader, Next};
use gristmill_faultserver::{Network, start};
use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs::pack::PackOptions;

use crate::fixture::{pack, reach};
use crate::waited::{is_mostly, until_it_is};

fn config() -> IndexConfig {
    let encoder = EncoderConfig::G2048(G2048EncoderConfig::default());
    IndexConfig { encoder, batch_size: 256, epochs: None, seed: Some(9), threads: Some(1), ..IndexConfig::default() }
}

/// What was waited for while `batches` were taken, the first one not counted.
fn while_taking(loader: &IndexLoader, batches: usize, train: impl Fn()) -> Waits {
    let next = || assert!(matches!(loader.next("", Some(Duration::from_secs(60))), Ok(Next::Batch(_))));
    next();
    let before = loader.metrics().waits;
    for _ in 0..batches {
        train();
        next();
    }
    loader.metrics().waits.since(&before)
}

#[test]
fn a_slow_trainer_is_named() {
    let (_folder, rows) = pack();
    let loader = IndexLoader::new(rows.input(), config()).unwrap();
    assert_eq!(loader.metrics().waits, Waits::default(), "nobody wanted a batch");
    let train = || std::thread::sleep(Duration::from_millis(30));
    let is_so = |found: &Waits| found.limited_by_since_start == "trainer" && found.stall_since_start < 0.05;
    until_it_is(|| while_taking(&loader, 30, train), is_so);
}

/// Writes a pack of games of chess.
fn chess(folder: &Path, pack: &Path, games: u64) {
    let from = folder.join("games");
    let of = ChessOptions {
        folder: from.clone(),
        games,
        first: 1,
        seed: 7,
        plies_max: 60,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(of).unwrap();
    while generator.write_next().unwrap().is_some() {}
    gristmill_jobs::pack::pack(&PackOptions::new(&from, pack), &mut |_| ()).unwrap();
}

fn loader(pack: &Path) -> IndexLoader {
    let pack = Selection::all(Arc::new(ChunkPack::open(pack, Residence::Mapped).unwrap()));
    IndexLoader::new(pack.input(), IndexConfig { encoder: EncoderConfig::Chess, ..config() }).unwrap()
}

#[test]
fn heavy_encoding_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("pack");
    chess(folder.path(), &pack, 20);
    let loader = loader(&pack);
    // Tensors are made straight from the packed positions: nothing is gathered before.
    until_it_is(|| while_taking(&loader, 20, || ()), is_mostly("encode", 4.0));
}

#[test]
fn a_slow_bucket_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("slow-pack");
    std::fs::create_dir(&bucket).unwrap();
    chess(folder.path(), &bucket.join("pack"), 300);
    let network = Network { anonymous: true, latency: Duration::from_millis(600), ..Network::default() };
    let server = start(folder.path().into(), network).unwrap();
    reach("s3://slow-pack", &server.address);
    let loader = loader(Path::new("s3://slow-pack/pack"));
    // Opening it fetched the ends of its files, not what is between.
    assert!(matches!(loader.next("", Some(Duration::from_secs(60))), Ok(Next::Batch(_))));
    let found = loader.metrics().waits;
    assert_eq!(found.limited_by_since_start, "storage", "{found:?}");
    assert!(found.stall_since_start > 0.8 && found.seconds("storage") > 0.4, "{found:?}");
}
