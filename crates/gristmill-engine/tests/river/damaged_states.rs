//! States of streams that were damaged: whatever byte is another, missing or after the end, none leads to other batches.

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Missing, merge_states};
use serde_json::Value;

use super::damage::every_damage;
use super::games::{config, generate, hashes, loader, options, preset, without_checksum};

/// Holes up to the whole of most fields.
const HOLES: [usize; 7] = [1, 2, 3, 9, 40, 150, 700];

/// Whether two documents say the same: 1 and 1.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| same(a, b))
        }
        (a, b) => a == b,
    }
}

#[test]
fn no_damaged_state_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 3));
    let run = Lc0Preset { pool: 3, reservoir: Some(4), tensors: vec!["ids".into()], ..preset(folder.path()) };
    let original = loader(&run);
    hashes(&original, "", 2);
    let path = folder.path().join("state");
    original.save(&path).unwrap();
    let state = std::fs::read_to_string(&path).unwrap();
    let expected = hashes(&original, "", 20);
    let (said, again) = (serde_json::from_str::<Value>(&state).unwrap(), loader(&run));
    let (mut refused, mut files) = (0, 0);
    every_damage(state.as_bytes(), &HOLES, &mut |what, bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        match again.restore(text) {
            Ok(()) => assert!(same(&serde_json::from_str(text).unwrap(), &said), "{what}: {text}"),
            Err(Error::State(_)) => refused += 1,
            Err(other) => panic!("{what}: {other}"),
        }
        if refused % 50 == 0 {
            std::fs::write(&path, bytes).unwrap();
            let error = again.load(&path, Missing::Refuse).map_err(|e| e.to_string());
            let named = error.as_ref().err().is_none_or(|e| e.contains("state: ") && e.contains("another copy"));
            assert!(named, "{what}: {error:?}");
            files += 1;
        }
    });
    for cut in 0..state.len() {
        assert!(matches!(again.restore(&state[..cut]), Err(Error::State(_))), "cut at {cut}");
    }
    let bits = (0..state.len()).flat_map(|at| (0..8).map(move |bit| (at, 1u8 << bit)));
    for (at, bit) in bits {
        let mut bytes = state.clone().into_bytes();
        bytes[at] ^= bit;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if again.restore(&text).is_ok() {
            assert!(same(&serde_json::from_str(&text).unwrap(), &said), "byte {at}, bit {bit}: {text}");
        }
    }
    assert!(refused > 10 * state.len() && files > 100, "{refused} of {}, {files} files", state.len());
    again.restore(&state).unwrap();
    assert_eq!(hashes(&again, "", 20), expected);
    let older = loader(&run);
    older.restore(&without_checksum(&state)).unwrap();
    assert_eq!(hashes(&older, "", 20), expected, "a state of before is taken as it is");
}

#[test]
fn fields_may_stand_in_any_order_and_each_part_of_several_ranks_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 8));
    let base = config(&Lc0Preset { pool: 8, reservoir: Some(9), ..preset(folder.path()) });
    let rank = |rank, world_size| {
        let (rank, world_size) = (Some(rank), Some(world_size));
        DataLoader::new(DataLoaderConfig { lanes: Some(2), rank, world_size, ..base.clone() }).unwrap()
    };
    let states = folder.path().join("states");
    let parts: Vec<String> = [0, 1]
        .map(|r| {
            let rank = rank(r, 2);
            hashes(&rank, "", 3);
            rank.save(&states).unwrap();
            rank.state().unwrap()
        })
        .into();
    let whole = merge_states(&parts).unwrap();
    let expected = |text: &str| {
        let again = rank(0, 1);
        again.restore(text).unwrap();
        hashes(&again, "", 6)
    };
    let sorted: Value = serde_json::from_str(&whole).unwrap();
    let batches = expected(&whole);
    assert_eq!(expected(&serde_json::to_string_pretty(&sorted).unwrap()), batches);
    assert_eq!(expected(&format!("[{}]", parts.join(" , "))), batches);
    for part in 0..2 {
        let mut damaged = parts.clone();
        damaged[part] = damaged[part].replacen("\"reservoir_draws\":", "\"reservoir_draws\":1", 1);
        for refused in [merge_states(&damaged).err(), rank(0, 1).restore(&format!("[{}]", damaged.join(","))).err()] {
            let said = refused.unwrap().to_string();
            assert!(said.contains("its checksum is") && said.contains("another copy"), "{said}");
        }
        let file = std::fs::read_dir(&states).unwrap().map(|file| file.unwrap().path()).nth(part).unwrap();
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, String::from_utf8(whole.clone()).unwrap().replacen("\"seed\":", "\"seed\":1", 1))
            .unwrap();
        let said = rank(0, 1).load(&states, Missing::Refuse).unwrap_err().to_string();
        assert!(said.contains(file.to_str().unwrap()) && said.contains("another copy"), "{said}");
        std::fs::write(&file, whole).unwrap();
    }
}
