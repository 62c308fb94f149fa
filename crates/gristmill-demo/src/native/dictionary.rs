//! An `.npz` of whole arrays, all steps one after another -> frames as they are, ended where `dones` is true: what
//! `load_dataset_dict` gives, and `gristmill convert` writes.

use gristmill_bytes::container::npy::ObjectHeader;
use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::container::pickle::Node;
use gristmill_bytes::error::{Error, Kind, Result};

use super::object::{npz_frames, npz_objects, repickled};
use crate::budget::Budget;
use crate::frames::Frames;
use crate::names::shown;
use crate::trajectory::{End, Trajectories};
use crate::value::{Extra, Value};

/// Reads the file. Arrays of Python objects travel beside the frames; where one holds `None`, the frame has none.
///
/// Errors: `WrongSize` where arrays have other first axes than `dones`; `Missing` without `dones`; what the members' readers say;
/// `TooLarge` beyond `max` bytes.
pub fn dictionary(bytes: &[u8], max: usize) -> Result<Trajectories> {
    let npz = Npz::open(bytes)?;
    let (mut arrays, mut beside) = (Vec::<(String, Frames)>::new(), Vec::<(String, Vec<Option<Extra>>)>::new());
    let budget = Budget::new(max);
    for name in npz.names() {
        let mut file = Vec::new();
        npz.read(name, budget.left(), &mut file)?;
        let objects = ObjectHeader::parse(&file).map_err(|e| e.in_member(shown(&format!("{name}.npy"))))?;
        drop(file);
        match objects {
            None => arrays.push((name.clone(), npz_frames(&npz, name, &budget)?)),
            Some(_) => {
                let objects = npz_objects(&npz, name, &budget, |pickle, items| {
                    let value = |item| match pickle.node(item) {
                        Node::None => Ok(None),
                        _ => repickled(pickle, item, &budget).map(Some),
                    };
                    items.iter().map(|item| value(*item)).collect()
                });
                beside.push((name.clone(), objects?));
            }
        }
    }
    let steps = arrays.iter().find(|(name, _)| name == "dones").map(|(_, frames)| frames.len());
    let steps = steps.ok_or_else(|| Error::new(Kind::Missing, "a dictionary of arrays without `dones`"))?;
    let lengths = arrays.iter().map(|(name, frames)| (name, frames.len()));
    let lengths = lengths.chain(beside.iter().map(|(name, values)| (name, values.len())));
    if let Some((name, len)) = lengths.into_iter().find(|(_, len)| *len != steps) {
        let detail = format!("`{}` has {len} steps, `dones` {steps}", shown(name));
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let mut all = Trajectories::new(max);
    for t in 0..steps {
        let mut values: Vec<(String, Value<'_>)> = Vec::with_capacity(arrays.len() + beside.len());
        for (name, frames) in &arrays {
            let (scalar, shape) = (frames.scalar, frames.shape.clone());
            values.push((name.clone(), Value::Array { scalar, shape, bytes: frames.get(t).into() }));
        }
        for (name, extras) in &mut beside {
            values.extend(extras[t].take().map(|extra| (name.clone(), Value::Extra(extra))));
        }
        all.push(values).map_err(|e| e.in_frame(t))?;
        let is = |name: &str| all.field(t, name).is_some_and(|bytes| bytes.iter().any(|b| *b != 0));
        if is("dones") {
            let how = if is("truncated") { End::Truncated } else { End::Terminated };
            all.end(how);
        }
    }
    all.end(End::Truncated);
    Ok(all)
}
