//! Trajectories of any fields there and back; steps by themselves; bytes that must stay what they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_bytes::error::Kind;
use gristmill_bytes::layout::{Layout, Scalar};
use proptest::prelude::*;

use super::{About, Blocks, PackedTrajectory, Scratch, Shelf, Trajectory, content, pack};
use crate::trajectory::{End, layout};
use crate::value::Extra;

type Extras = BTreeMap<String, Vec<(usize, Extra)>>;

fn about(layout: &Arc<Layout>) -> About {
    let facts = vec![("env_name".to_owned(), "Corridor-v0".to_owned())];
    About { layout: layout.clone(), form: "demo.shard".into(), facts, metadata: Some(b"}.".to_vec()) }
}

fn packed(layout: &Arc<Layout>, records: &[u8], extras: &Extras, end: End) -> Vec<u8> {
    stored(layout, records, extras, end, Blocks::Compressed)
}

fn stored(layout: &Arc<Layout>, records: &[u8], extras: &Extras, end: End, blocks: Blocks) -> Vec<u8> {
    let mut out = Vec::new();
    pack(&Trajectory { about: &about(layout), records, extras, end }, blocks, &mut out).unwrap();
    out
}

/// Records of a layout from numbers; padding is zero.
fn records(layout: &Layout, frames: usize, byte: impl Fn(usize, usize) -> u8) -> Vec<u8> {
    let mut records = vec![0; frames * layout.size()];
    for (frame, record) in records.chunks_exact_mut(layout.size()).enumerate() {
        for field in layout.fields() {
            let values = &mut record[field.offset..][..field.bytes()];
            values.iter_mut().enumerate().for_each(|(i, value)| *value = byte(frame, i));
        }
    }
    records
}

fn any_field() -> impl Strategy<Value = (Scalar, Vec<usize>)> {
    let scalar = prop::sample::select(vec![
        Scalar::Bool,
        Scalar::U8,
        Scalar::F32,
        Scalar::I64,
        Scalar::C128,
        Scalar::Text(3),
        Scalar::Bytes(5),
    ]);
    (scalar, prop::collection::vec(0usize..9, 0..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_record_and_value_comes_back_whatever_its_fields_are(
        fields in prop::collection::vec(any_field(), 1..6), frames in 1usize..30, seed in any::<u64>(), period in 1usize..9,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        beside in prop::collection::btree_map(0usize..30, ".{0,40}", 0..12), truncated in any::<bool>(),
        plain in any::<bool>(), room in 0usize..4096,
    ) {
        let named: Vec<(String, Scalar, Vec<usize>)> =
            fields.into_iter().enumerate().map(|(i, (scalar, shape))| (format!("f{i}"), scalar, shape)).collect();
        let Ok(made) = layout(named.iter().map(|(name, scalar, shape)| (name.as_str(), *scalar, &shape[..]))) else {
            return Ok(());
        };
        let layout = Arc::new(made);
        let byte = |frame: usize, i: usize| (seed.rotate_left((frame % period) as u32 * 7 + i as u32) >> 3) as u8;
        let records = records(&layout, frames, byte);
        let mut extras = Extras::new();
        for (frame, text) in beside.into_iter().filter(|(frame, _)| *frame < frames) {
            let kinds = [Extra::Text(text.clone()), Extra::Bytes(text.clone().into()), Extra::Pickle(text.into())];
            extras.entry(format!("x{}", frame % 2)).or_default().push((frame, kinds[frame % 3].clone()));
        }
        let end = if truncated { End::Truncated } else { End::Terminated };
        let blocks = if plain { Blocks::Plain } else { Blocks::Compressed };
        let bytes = stored(&layout, &records, &extras, end, blocks);
        prop_assert_eq!(&stored(&layout, &records, &extras, end, blocks), &bytes, "the same gives the same");
        let back = PackedTrajectory::new(&bytes).unwrap();
        prop_assert_eq!((back.frames(), back.end(), back.about().unwrap()), (frames, end, about(&layout)));
        let (mut scratch, mut record) = (Scratch::default(), vec![0xEE; layout.size()]);
        let shelf = Arc::new(Shelf::new(room));
        for (i, frame) in order.iter().map(|i| i.index(frames)).chain(0..frames).enumerate() {
            // The test reads the trajectory as three chunks in turn. The shelf has room for some of their blocks.
            scratch.turn_to(i as u64 % 3, &shelf);
            back.record(frame, &mut scratch, &mut record).unwrap();
            prop_assert_eq!(&record[..], &records[frame * layout.size()..][..layout.size()]);
        }
        for (slot, field) in layout.fields().iter().enumerate() {
            let mut value = vec![0; field.bytes()];
            back.fields(frames / 2, &[slot], &mut scratch, &mut [&mut value[..]]).unwrap();
            prop_assert_eq!(&value[..], &records[frames / 2 * layout.size() + field.offset..][..field.bytes()]);
        }
        prop_assert_eq!(back.extras(0..frames).unwrap(), extras.clone());
        let half: Extras = extras.iter().map(|(name, values)| {
            (name.clone(), values.iter().filter(|(frame, _)| *frame >= frames / 2).cloned().collect::<Vec<_>>())
        }).filter(|(_, values)| !values.is_empty()).collect();
        prop_assert_eq!(back.extras(frames / 2..frames).unwrap(), half);
        prop_assert_eq!(back.record(frames, &mut scratch, &mut record).unwrap_err().kind(), Kind::Missing);
        prop_assert_ne!(content(&records, &extras), content(&records[..records.len() - layout.size()], &extras));
    }
}

/// Noise that does not compress, the same for the same number.
fn noise(of: usize, i: usize) -> u8 {
    let mut x = (of as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
    x ^= x >> 29;
    (x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as u8
}

#[test]
fn a_picture_is_stored_once_whatever_stacks_it_is_in() {
    const SIDE: usize = 16;
    let (frames, pixels) = (40, SIDE * SIDE);
    // Four pictures in each stack, oldest first; the next stack is that of the next step.
    for (shape, last) in [(vec![4, SIDE, SIDE], false), (vec![SIDE, SIDE, 4], true)] {
        let fields = [("obs", Scalar::U8, &shape[..]), ("next_obs", Scalar::U8, &shape), ("acts", Scalar::I64, &[])];
        let layout = Arc::new(layout(fields.into_iter()).unwrap());
        let stacks = |frame: usize, i: usize| {
            let (plane, pixel) = if last { (i % 4, i / 4) } else { (i / pixels, i % pixels) };
            noise(frame + plane, pixel)
        };
        let mut records = records(&layout, frames, |_, _| 0);
        for (frame, record) in records.chunks_exact_mut(layout.size()).enumerate() {
            (0..4 * pixels).for_each(|i| record[i] = stacks(frame, i));
            (0..4 * pixels).for_each(|i| record[4 * pixels + i] = stacks(frame + 1, i));
        }
        let bytes = packed(&layout, &records, &Extras::new(), End::Terminated);
        let once = (frames + 4) * pixels;
        assert!(bytes.len() < once + once / 8, "{} bytes for {once} of pictures", bytes.len());
        let back = PackedTrajectory::new(&bytes).unwrap();
        let (mut scratch, mut record) = (Scratch::default(), vec![0; layout.size()]);
        for frame in [39, 0, 17, 18] {
            back.record(frame, &mut scratch, &mut record).unwrap();
            assert!(record == records[frame * layout.size()..][..layout.size()], "{frame}, {shape:?}");
        }
    }
}

/// Of the golden trajectory: splits go by it.
const GOLDEN_CONTENT: u128 = 0x1361_5006_f1b2_738f_5a8a_dc25_f27d_83a8;

#[test]
fn the_bytes_of_form_1_stay_what_they_are() {
    let fields = [("obs", Scalar::U8, &[2usize, 200][..]), ("acts", Scalar::F32, &[2]), ("dones", Scalar::Bool, &[])];
    let layout = Arc::new(layout(fields.into_iter()).unwrap());
    let records = records(&layout, 3, |frame, i| (frame / 2 + i / 50) as u8);
    let extras = Extras::from([("infos".into(), vec![(1, Extra::Json("{}".into()))])]);
    let bytes = packed(&layout, &records, &extras, End::Truncated);
    let golden = include_bytes!("golden.bin");
    // What Zstandard makes of a block may change with its version; what is read from the golden bytes may not.
    for (name, bytes) in [("written now", &bytes[..]), ("golden", golden)] {
        let back = PackedTrajectory::new(bytes).unwrap();
        assert_eq!((back.frames(), back.end(), back.about().unwrap()), (3, End::Truncated, about(&layout)), "{name}");
        assert_eq!(back.extras(0..3).unwrap(), extras, "{name}");
        let (mut scratch, mut record) = (Scratch::default(), vec![0; layout.size()]);
        for frame in 0..3 {
            back.record(frame, &mut scratch, &mut record).unwrap();
            assert!(record == records[frame * layout.size()..][..layout.size()], "{name}, {frame}");
        }
    }
    assert_eq!(bytes[..32], golden[..32], "the sizes");
    assert_eq!(content(&records, &extras), GOLDEN_CONTENT);
}

#[test]
fn cuts_and_changed_bytes_are_refused_or_give_as_many_bytes() {
    let fields = [("obs", Scalar::U16, &[300usize][..]), ("acts", Scalar::I64, &[])];
    let layout = Arc::new(layout(fields.into_iter()).unwrap());
    let records = records(&layout, 9, |frame, i| (frame * i) as u8);
    let extras = Extras::from([("infos".into(), vec![(1, Extra::Text("größe".into()))])]);
    let bytes = packed(&layout, &records, &extras, End::Terminated);
    let mut record = vec![0; layout.size()];
    for at in 0..bytes.len() {
        for damaged in [bytes[..at].to_vec(), [&bytes[..at], &[bytes[at] ^ 0x41], &bytes[at + 1..]].concat()] {
            let Ok(back) = PackedTrajectory::new(&damaged) else { continue };
            let mut scratch = Scratch::default();
            for frame in 0..9 {
                _ = back.record(frame, &mut scratch, &mut record);
            }
            _ = (back.about(), back.extras(0..9));
        }
    }
    let mut out = Vec::new();
    let about = about(&layout);
    let refused = |records: &[u8], out: &mut Vec<u8>| {
        let extras = &Extras::new();
        pack(&Trajectory { about: &about, records, extras, end: End::Terminated }, Blocks::Plain, out)
            .unwrap_err()
            .kind()
    };
    assert_eq!((refused(&[], &mut out), refused(&records[1..], &mut out)), (Kind::Empty, Kind::WrongSize));
}
