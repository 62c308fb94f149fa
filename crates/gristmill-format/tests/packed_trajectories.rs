//! Packed trajectories, as seeds of the fuzz corpora begin with them.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use gristmill_format::demo::pack::{About, Blocks, Trajectory, pack};
use gristmill_format::demo::trajectory::{End, layout};
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::Scalar;

/// A packed trajectory whose observations have this shape; those that have planes are stacks.
pub(crate) fn trajectory_of(shape: &[usize]) -> Vec<u8> {
    let fields = [("obs", Scalar::U8, shape), ("next_obs", Scalar::U8, shape), ("rews", Scalar::F64, &[])];
    let layout = Arc::new(layout(fields.into_iter()).unwrap());
    let plane = shape[1..].iter().product::<usize>();
    let mut records = vec![0; 9 * layout.size()];
    for (frame, record) in records.chunks_exact_mut(layout.size()).enumerate() {
        for (next, field) in layout.fields()[..2].iter().enumerate() {
            let value = &mut record[field.offset..][..field.bytes()];
            value.iter_mut().enumerate().for_each(|(i, b)| *b = (7 * (frame + next + i / plane) + i % plane) as u8);
        }
    }
    let facts = vec![("env_name".to_owned(), "Corridor-v0".to_owned())];
    let about = About { layout, form: "demo.shard".to_owned(), facts, metadata: None };
    let extras = [("infos".to_owned(), vec![(0, Extra::Json("{}".to_owned())), (8, Extra::Text("end".to_owned()))])];
    let mut out = Vec::new();
    let end = End::Terminated;
    let trajectory = Trajectory { about: &about, records: &records, extras: &extras.into(), end };
    pack(&trajectory, Blocks::Compressed, &mut out).unwrap();
    out
}
