//! Plies until progress, which only whole games tell, in the values of streams.

use std::collections::BTreeMap;

use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{Batch, Error};

use super::games::{hashes, ids, loader, mixed, next, preset};

type Frame = (u64, u64, u64);

fn options(tensors: &[&str]) -> Lc0Preset {
    Lc0Preset { tensors: tensors.iter().map(|name| (*name).to_owned()).collect(), ..preset(mixed()) }
}

fn floats(batch: &Batch) -> Vec<f32> {
    let bytes = batch.column("values").unwrap().bytes().as_chunks::<4>().0;
    bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Plies until the next frame of each game whose fifty-move count is 0.
fn expected() -> BTreeMap<Frame, Option<u64>> {
    let whole =
        Lc0Preset { epochs: Some(1), reservoir: Some(0), sampling_rate: Some(1.0), ..options(&["planes:bits", "ids"]) };
    let loader = loader(&whole);
    let mut counts = BTreeMap::new();
    while let Some(batch) = next(&loader, "") {
        let meta = batch.column("meta").unwrap().bytes().to_vec();
        counts.extend(ids(&batch).into_iter().zip(meta.chunks_exact(12).map(|meta| meta[5])));
    }
    let next_of = |&(file, game, ply): &Frame| {
        let later = (ply + 1..).map_while(|later| Some((later, *counts.get(&(file, game, later))?)));
        later.into_iter().find(|(_, count)| *count == 0).map(|(later, _)| later - ply)
    };
    counts.keys().map(|frame| (*frame, next_of(frame))).collect()
}

#[test]
fn plies_until_progress_stand_beside_the_result() {
    let expected = expected();
    assert!(expected.values().any(Option::is_none) && expected.values().any(|plies| plies.is_some_and(|n| n > 1)));
    for threads in [1, 8] {
        let with = |tensors: &[&str]| loader(&Lc0Preset { threads: Some(threads), ..options(tensors) });
        let (four, three) = (with(&["values:4", "ids"]), with(&["values", "ids"]));
        for _ in 0..20 {
            let (batch, plain) = (next(&four, "").unwrap(), next(&three, "").unwrap());
            assert_eq!(batch.column("values").unwrap().shape(), [16, 6, 4]);
            assert_eq!(ids(&batch), ids(&plain));
            let (values, narrow) = (floats(&batch), floats(&plain));
            for ((frame, row), narrow) in ids(&batch).iter().zip(values.chunks_exact(24)).zip(narrow.chunks_exact(18)) {
                for (i, (value, narrow)) in row.chunks_exact(4).zip(narrow.chunks_exact(3)).enumerate() {
                    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&value[..3]), bits(narrow));
                    let plies = expected[frame].filter(|_| i == 0).map_or(f32::NAN, |plies| plies as f32);
                    assert_eq!(value[3].to_bits(), plies.to_bits(), "{frame:?}, row {i}");
                }
            }
        }
    }
}

#[test]
fn a_restored_stream_has_them_too() {
    let options = options(&["values:4", "ids"]);
    let first = loader(&options);
    hashes(&first, "", 5);
    let (state, expected) = (first.state().unwrap(), hashes(&first, "", 10));
    let again = loader(&options);
    again.restore(&state).unwrap();
    assert_eq!(hashes(&again, "", 10), expected);
    assert!(first.metrics().stages.iter().all(|stage| !stage.name.is_empty()), "what completes games is no stage");
    let wrong = Lc0Preset { tensors: vec!["values".into(), "values:4".into()], ..options };
    let refused = gristmill_engine::DataLoader::new(super::games::config(&wrong)).unwrap_err();
    assert!(matches!(&refused, Error::Config { .. }) && refused.to_string().contains("one form"), "{refused}");
}
