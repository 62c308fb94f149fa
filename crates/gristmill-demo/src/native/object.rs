//! Reads arrays, numbers and attributes out of pickled objects, with errors that name the attribute.
//! Knows no project's classes: they differ in the names and places of their attributes only.

use gristmill_bytes::container::npy::ObjectHeader;
use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::container::pickle::{Array, Data, Id, Node, Object, Pickle, PickleLimits, PickleWriter, parse};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use crate::budget::Budget;
use crate::frames::Frames;
use crate::names::shown;
use crate::shard::npy;
use crate::value::{Extra, Value};

/// The attribute `name` of an object, or the item of a mapping.
pub(super) fn attribute(pickle: &Pickle<'_>, id: Id, name: &str) -> Option<Id> {
    match pickle.node(id) {
        Node::Object(Object { state: Some(state), .. }) => pickle.get(*state, name),
        _ => pickle.get(id, name),
    }
}

/// As [`attribute`]. Errors: `Missing`.
pub(super) fn wanted(pickle: &Pickle<'_>, id: Id, name: &str) -> Result<Id> {
    let missing = || Error::new(Kind::Missing, format!("a {} without `{name}`", pickle.type_name(id)));
    attribute(pickle, id, name).ok_or_else(missing)
}

/// The observations in an array whose first axis is time, or in a list of arrays of one type and shape.
///
/// Errors: `Unsupported` for what is neither, `WrongSize` for a list whose arrays differ, `TooLarge` beyond the budget (a list
/// may have one array many times); all name `what`.
pub(super) fn frames(pickle: &Pickle<'_>, id: Id, what: &str, budget: &Budget) -> Result<Frames> {
    let named = |e: Error| Error::new(e.kind(), format!("`{what}`: {}", e.detail()));
    if let Some(items) = pickle.items(id) {
        let mut all: Option<Frames> = None;
        for item in items {
            let (scalar, shape, bytes) = array(pickle, *item).map_err(named)?;
            let all = all.get_or_insert_with(|| Frames { scalar, shape: shape.clone(), bytes: Vec::new() });
            if all.scalar != scalar || all.shape != shape {
                let detail = format!("shape {shape:?} among frames of shape {:?}", all.shape);
                return Err(named(Error::new(Kind::WrongSize, detail)));
            }
            budget.take(bytes.len()).map_err(named)?;
            all.bytes.extend_from_slice(&bytes);
        }
        return all.ok_or_else(|| named(Error::new(Kind::Empty, "an empty list")));
    }
    let (scalar, shape, bytes) = array(pickle, id).map_err(named)?;
    budget.take(bytes.len()).map_err(named)?;
    Frames::new(scalar, &shape, bytes.into_owned()).map_err(named)
}

type Parts<'a> = (Scalar, Vec<usize>, std::borrow::Cow<'a, [u8]>);

fn array<'a>(pickle: &'a Pickle<'_>, id: Id) -> Result<Parts<'a>> {
    match Value::of_pickle(pickle, id, &[])? {
        Value::Array { scalar, shape, bytes } => Ok((scalar, shape, bytes)),
        Value::Extra(_) => Err(Error::new(Kind::Unsupported, format!("a {}; expected an array", pickle.type_name(id)))),
    }
}

/// The value of a truth: a `bool`, or a NumPy one.
pub(super) fn truth(pickle: &Pickle<'_>, id: Id) -> Option<bool> {
    pickle.int(id).map(|value| value != 0)
}

/// Whether the last of a list of infos says that the time limit ended the episode.
pub(super) fn cut_by_limit(pickle: &Pickle<'_>, infos: Option<Id>) -> bool {
    let last = infos.and_then(|infos| pickle.items(infos)).and_then(<[Id]>::last);
    last.and_then(|info| pickle.get(*info, "TimeLimit.truncated")).and_then(|flag| truth(pickle, flag)).unwrap_or(false)
}

/// What the environment said after each step, each a pickle by itself; nothing where the list is `None`.
///
/// Errors: `Unsupported` for what is no list, and for values that cannot be written again; `TooLarge` where all of them together
/// are beyond the budget.
pub(super) fn infos(pickle: &Pickle<'_>, id: Id, budget: &Budget) -> Result<Option<Vec<Extra>>> {
    let items = match pickle.node(id) {
        Node::None => return Ok(None),
        Node::Array(Array { data: Data::Objects(items), .. }) | Node::List(items) | Node::Tuple(items) => items,
        other => return Err(Error::new(Kind::Unsupported, format!("`infos` is a {}", other.type_name()))),
    };
    items.iter().map(|item| repickled(pickle, *item, budget)).collect::<Result<_>>().map(Some)
}

/// One value of a pickle as a pickle of its own.
///
/// Errors: as [`infos`].
pub(super) fn repickled(pickle: &Pickle<'_>, id: Id, budget: &Budget) -> Result<Extra> {
    let named = |e: Error| Error::new(e.kind(), format!("`infos`: {}", e.detail()));
    let mut writer = PickleWriter::new(budget.left());
    writer.value(pickle, id).map_err(named)?;
    let written = Extra::Pickle(writer.finish());
    budget.take(size_of::<Extra>() + written.len()).map_err(named)?;
    Ok(written)
}

/// The array `name` of an `.npz`.
///
/// Errors: as of its members; `TooLarge` beyond the budget.
pub(super) fn npz_frames(npz: &Npz<'_>, name: &str, budget: &Budget) -> Result<Frames> {
    let mut file = Vec::new();
    npz.read(name, budget.left(), &mut file)?;
    budget.take(file.len()).map_err(|e| e.in_member(shown(&format!("{name}.npy"))))?;
    match npy(&file).map_err(|e| e.in_member(shown(&format!("{name}.npy"))))? {
        Value::Array { scalar, shape, bytes } => Frames::new(scalar, &shape, bytes.into_owned()),
        Value::Extra(_) => Err(Error::new(Kind::Unsupported, format!("`{name}` is no array"))),
    }
}

/// The Python objects of the member `name`, as `read` makes something of them.
pub(super) fn npz_objects<T>(
    npz: &Npz<'_>,
    name: &str,
    budget: &Budget,
    read: impl FnOnce(&Pickle<'_>, &[Id]) -> Result<T>,
) -> Result<T> {
    let mut file = Vec::new();
    npz.read(name, budget.left(), &mut file)?;
    let place = |e: Error| e.in_member(shown(&format!("{name}.npy")));
    let header = ObjectHeader::parse(&file).map_err(place)?;
    let header = header.ok_or_else(|| place(Error::new(Kind::Unsupported, "expected an array of Python objects")))?;
    let start = usize::try_from(header.data_offset).unwrap_or(usize::MAX).min(file.len());
    let pickle = parse(&file[start..], &PickleLimits { max_bytes: budget.left() }).map_err(place)?;
    let found = pickle.array(pickle.root()).map(|array| &array.data);
    let Some(Data::Objects(objects)) = found else {
        return Err(place(Error::new(Kind::Corrupt, "expected a pickled array of objects")));
    };
    read(&pickle, objects).map_err(place)
}
