//! Trajectories -> one `.npz` of whole arrays, all steps one after another: `obs`, `acts`, `dones`, ... as
//! `load_dataset_dict` gives them. Arrays are plain; `infos` and other values of no fixed size are arrays of Python objects.

use std::collections::BTreeSet;
use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::publish::{Staged, sync_folder};
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::container::pickle::PickleWriter;
use gristmill_format::demo::pickled::{extra, is_data, plain_name};
use gristmill_format::layout::Field;
use gristmill_format::{Error as FormatError, Kind};

use super::gather::{Gathered, Steps};

/// Writes trajectories `these` as the file `path`, which is there whole or not at all; arrays are deflated at `level`, or stored
/// (0). `told` gets the number of steps written, once for each array, and of all steps.
///
/// Errors: `Path`; `Format` for extras that are not plain data, and for names that two fields have; `Stopped`.
pub(super) fn write(
    found: &mut Gathered,
    these: &[usize],
    path: &Path,
    level: u32,
    told: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let frames: usize = these.iter().map(|i| found.parts[*i].frames).sum();
    let fields: Vec<Field> = found.layout.fields().iter().filter(|field| is_data(&field.name)).cloned().collect();
    let extras = beside(found, these)?;
    let names: Vec<String> =
        fields.iter().map(|f| plain_name(&f.name)).chain(extras.iter().map(|e| plain_name(e))).collect();
    if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        let detail = format!("two fields would be called `{}`", twice.1);
        return Err(FormatError::new(Kind::OutOfRange, detail).into());
    }
    let all = (frames * names.len()) as u64;
    let mut staged = Staged::within(path.to_owned())?;
    let mut npz = NpzWriter::new(&mut staged, level);
    let mut steps = Steps::default();
    // What stops an array from being filled, and is no fault of the format, waits here.
    let mut stopped: Option<Error> = None;
    for field in &fields {
        let shape: Vec<u64> = std::iter::once(frames as u64).chain(field.shape.iter().map(|dim| *dim as u64)).collect();
        let size = found.layout.size();
        let filled = npz.array(&plain_name(&field.name), &field.dtype, &shape, &mut |to| {
            for i in these {
                let read = found.steps(*i, &mut steps).and_then(|()| told(found.parts[*i].frames as u64, all));
                if let Err(e) = read {
                    stopped = Some(e);
                    return Err(FormatError::new(Kind::Empty, "stopped"));
                }
                for record in steps.records.chunks_exact(size) {
                    to.write_all(&record[field.offset..field.offset + field.bytes()])?;
                }
            }
            Ok(())
        });
        filled.map_err(|e| stopped.take().unwrap_or_else(|| e.into()))?;
    }
    for (name, plain) in extras.iter().map(|name| (name, plain_name(name))) {
        let filled = npz.objects(&plain, frames as u64, &mut |to| {
            let mut pickle = PickleWriter::new(usize::MAX);
            pickle.begin_objects(frames)?;
            for i in these {
                let read = found.steps(*i, &mut steps).and_then(|()| told(found.parts[*i].frames as u64, all));
                if let Err(e) = read {
                    stopped = Some(e);
                    return Err(FormatError::new(Kind::Empty, "stopped"));
                }
                for (t, all) in steps.extras.iter().enumerate() {
                    match all.iter().find(|(known, _)| known == name) {
                        Some((_, value)) => pickle.finished(&extra(value).map_err(|e| e.in_frame(t).in_chunk(*i))?),
                        None => pickle.none(),
                    }
                    to.write_all(&pickle.take())?;
                }
            }
            pickle.end_objects();
            Ok(to.write_all(&pickle.finish())?)
        });
        filled.map_err(|e| stopped.take().unwrap_or_else(|| e.into()))?;
    }
    npz.finish()?;
    staged.seal()?;
    staged.publish()?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// The fields of no fixed size that some frame has; in frames that lack one its value is `None`.
fn beside(found: &mut Gathered, these: &[usize]) -> Result<BTreeSet<String>> {
    let (mut names, mut steps) = (BTreeSet::new(), Steps::default());
    for i in these {
        found.steps(*i, &mut steps)?;
        let all = steps.extras.iter().flatten().map(|(name, _)| name).filter(|name| is_data(name));
        all.for_each(|name| _ = names.insert(name.clone()));
    }
    Ok(names)
}
