//! Which row of which game stands in a batch, from the state alone, against the batches themselves.

use gristmill_engine::config::{EncoderConfig, IndexConfig, Shuffle};
use gristmill_engine::{IndexLoader, Next};
use gristmill_plans::xray::{XrayOptions, xray};

use crate::fixture::{Form, open, write_pack};

fn ints(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn rows_of_past_and_future_batches_are_those_that_come() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 40, &Form { shard_rows: Some(64), ..Form::default() });
    let all = open(folder.path()).unwrap();
    let low = all.filter(&gristmill_engine::selection::Filter { step_index: (Some(3), None), ..Default::default() });
    let named = all.query("max_score > ? and seed <> ?", &[2000.into(), 1005.into()]).unwrap();
    let (train, val) = named.split(0.3, 42).unwrap();
    let (_, ids) = named.split_ids(vec![7, 9, 11]).unwrap();
    let (without, _) = all.split_by("highest_tile > 4", &[]).unwrap();
    let shuffles = [Shuffle::Rows, Shuffle::Off, Shuffle::Blocks { rows: 16, blocks: 3 }];
    for (i, rows) in [all, low.unwrap(), train, val, ids, without].into_iter().enumerate() {
        let (world_size, seed) = ([1, 2, 3][i % 3], i as u64);
        for rank in 0..world_size {
            let config = IndexConfig {
                encoder: EncoderConfig::G2048(Default::default()),
                batch_size: 12,
                epochs: Some(2),
                seed: Some(seed),
                shuffle: shuffles[i % 3],
                rank,
                world_size,
                ..IndexConfig::default()
            };
            let loader = IndexLoader::new(rows.input(), config).unwrap();
            let state = |at: u64| {
                let other = IndexLoader::new(rows.input(), loader.config()).unwrap();
                other.seek(at).unwrap();
                other.state().unwrap()
            };
            let (early, late) = (state(0), state(loader.batches().unwrap()));
            let mut seen = 0;
            while let Next::Batch(batch) = loader.next("", None).unwrap() {
                let state = if batch.number % 2 == 0 { &early } else { &late };
                let row = (batch.number % 3 == 0).then_some(batch.rows - 1);
                let options = XrayOptions {
                    state: state.clone(),
                    pack: folder.path().to_owned(),
                    batch: batch.number,
                    row,
                    rank: Some((rank, world_size)),
                };
                let column = |name: &str| ints(batch.column(name).unwrap().bytes());
                let came: Vec<(u64, u64)> = column("run_id").into_iter().zip(column("step_index")).collect();
                let found: Vec<(u64, u64)> =
                    xray(&options).unwrap().iter().map(|r| (r.place.game, r.place.ply)).collect();
                let came = &came[row.unwrap_or(0)..];
                // A state knows no end: the last batch would have been full.
                assert_eq!(found[..came.len()], *came, "batch {} of selection {i}", batch.number);
                seen += 1;
            }
            assert_eq!(Some(seen), loader.batches());
        }
    }
}

#[test]
fn what_cannot_be_seen_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pack", "other"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    write_pack(&folder.path().join("pack"), 12, &Form::default());
    write_pack(&folder.path().join("other"), 13, &Form::default());
    let rows = open(&folder.path().join("pack")).unwrap();
    let encoder = EncoderConfig::G2048(Default::default());
    let loader = IndexLoader::new(rows.input(), IndexConfig { encoder, batch_size: 10, ..Default::default() }).unwrap();
    let options = |pack: &str, batch, row| XrayOptions {
        state: loader.state().unwrap(),
        pack: folder.path().join(pack),
        batch,
        row,
        rank: None,
    };
    let refused = |options| xray(&options).unwrap_err().to_string();
    assert!(refused(options("other", 0, None)).contains("another pack"));
    assert!(refused(options("pack", 3, Some(10))).contains("no row 10: batch 3 has 10"));
    assert!(refused(options("pack", u64::MAX, None)).contains("no batch"));
    assert_eq!(xray(&options("pack", 1_000_000, None)).unwrap().len(), 10, "a state has no end");
    let old = XrayOptions { state: "{}".into(), ..options("pack", 0, None) };
    assert!(refused(old).contains("state does not fit"));
}
