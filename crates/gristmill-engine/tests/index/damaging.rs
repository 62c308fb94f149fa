//! States of rows that were damaged: whatever byte is another, missing or after the end, none leads to other batches.

use gristmill_engine::config::{EncoderConfig, IndexConfig};
use gristmill_engine::{Error, IndexLoader, Next};
use serde_json::Value;

use crate::damage::every_damage;
use crate::fixture::{pack, without_checksum};

/// All that comes.
fn rest(loader: &IndexLoader) -> Vec<Vec<u8>> {
    let next = || match loader.next("", None).unwrap() {
        Next::Batch(batch) => Some(batch.columns.iter().flat_map(|column| column.bytes().to_vec()).collect()),
        _ => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn no_damaged_state_is_taken() {
    let (folder, pack) = pack();
    let rows = pack.split(0.3, 42).unwrap().0;
    let encoder = EncoderConfig::G2048(Default::default());
    let config = IndexConfig { encoder, batch_size: 20, epochs: Some(3), ..IndexConfig::default() };
    let loader = |seed| IndexLoader::new(rows.input(), IndexConfig { seed, ..config.clone() }).unwrap();
    let original = loader(Some(5));
    original.next("", None).unwrap();
    let (state, path) = (original.state().unwrap(), folder.path().join("state"));
    let (said, expected) = (serde_json::from_str::<Value>(&state).unwrap(), rest(&original));
    let mut refused = 0;
    let mut check = |what: &str, bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        match loader(None).restore(text) {
            Ok(()) => assert_eq!(serde_json::from_str::<Value>(text).unwrap(), said, "{what}"),
            Err(Error::State(_)) => refused += 1,
            Err(other) => panic!("{what}: {other}"),
        }
        if refused % 99 == 0 {
            std::fs::write(&path, bytes).unwrap();
            let error = loader(None).load(&path).map_err(|e| e.to_string());
            let named = error.as_ref().err().is_none_or(|e| e.contains("state: ") && e.contains("another copy"));
            assert!(named, "{what}: {error:?}");
        }
    };
    every_damage(state.as_bytes(), &[1, 2, 3, 20, 90], &mut check);
    (0..state.len()).for_each(|cut| check("cut", &state.as_bytes()[..cut]));
    assert!(refused > 8 * state.len(), "{refused}");
    for state in [state.clone(), without_checksum(&state)] {
        let again = loader(None);
        again.restore(&state).unwrap();
        assert_eq!(rest(&again), expected);
    }
}
