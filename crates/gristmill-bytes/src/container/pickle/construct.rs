//! What REDUCE, NEWOBJ and BUILD mean for the listed names: constructors of data, matched by the shape of their arguments.
//! An unexpected shape is refused; nothing is looked up, imported or called.

use std::collections::HashMap;
use std::sync::Arc;

use super::class::{Builtin, Class};
use super::machine::Machine;
use super::ndarray::{Array, DTypeState, Data, Element};
use super::value::{Blob, Id, Mapping, Node, Object};
use crate::error::{Error, Kind, Result};

/// Maximum number of fields of a record.
const MAX_FIELDS: usize = 16 << 10;

/// What `callable(*args)` stands for.
pub(super) fn reduce(machine: &mut Machine<'_>, callable: Id, args: Id) -> Result<Node> {
    let Node::Class(class) = *machine.node(callable) else {
        let what = machine.node(callable).type_name();
        return Err(Error::new(Kind::Corrupt, format!("a {what} is called; expected a listed name")));
    };
    let args = arguments(machine, args)?;
    match (class, args.as_slice()) {
        (Class::Reconstruct, [of, ..]) if is_class(machine, *of, Class::NdArray) => Ok(Node::Announced),
        (Class::DType, [code, ..]) => {
            let element = machine.text(*code).and_then(Element::from_code);
            element.map(Node::DType).ok_or_else(|| {
                let code = machine.text(*code).unwrap_or("no text");
                Error::new(Kind::Unsupported, format!("the NumPy type `{code}`"))
            })
        }
        (Class::NumpyScalar, [dtype, value]) => numpy_scalar(machine, *dtype, *value),
        (Class::FromBuffer, [buffer, dtype, shape, order]) => from_buffer(machine, [*buffer, *dtype, *shape, *order]),
        (Class::Encode, [text, encoding]) => encode(machine, *text, *encoding).map(Node::Bytes),
        (Class::Reconstructor, [of, base, state]) => reconstructor(machine, *of, *base, *state),
        (Class::Builtin(builtin), args) => construct(machine, builtin, args),
        (Class::Inflate, [space, named]) => match (machine.node(*space), machine.node(*named)) {
            (Node::Class(class @ Class::Space(_)), Node::Dict(..)) => {
                Ok(Node::Object(Object { class: *class, args: Vec::new(), state: Some(*named) }))
            }
            _ => Err(shape(class)),
        },
        (Class::ColorSpace | Class::Random, _) => Ok(Node::Object(Object { class, args, state: None })),
        _ => Err(shape(class)),
    }
}

/// What `class.__new__(class, *args)` stands for.
pub(super) fn inherit(machine: &mut Machine<'_>, class: Id, args: Id) -> Result<Node> {
    let args = arguments(machine, args)?;
    match *machine.node(class) {
        Node::Class(class @ (Class::Space(_) | Class::Trajectory | Class::TrajectoryTuple | Class::Random)) => {
            Ok(Node::Object(Object { class, args, state: None }))
        }
        Node::Class(Class::Builtin(builtin)) => construct(machine, builtin, &args),
        Node::Class(class) => Err(shape(class)),
        ref other => Err(Error::new(Kind::Corrupt, format!("an instance of a {}", other.type_name()))),
    }
}

/// Sets the state of `target`, in place: every reference to it sees the change.
pub(super) fn build(machine: &mut Machine<'_>, target: Id, state: Id) -> Result<()> {
    let node = match machine.node(target) {
        Node::Announced => array(machine, state)?,
        Node::DType(base) => dtype(machine, base.clone(), state)?,
        Node::Object(object) => Node::Object(Object { state: Some(state), ..object.clone() }),
        other => {
            return Err(Error::new(Kind::Unsupported, format!("a state for a {}", other.type_name())));
        }
    };
    machine.replace(target, node)
}

fn arguments(machine: &mut Machine<'_>, args: Id) -> Result<Vec<Id>> {
    let Node::Tuple(items) = machine.node(args) else {
        return Err(Error::new(Kind::Corrupt, format!("arguments in a {}", machine.node(args).type_name())));
    };
    let items = items.clone();
    machine.spend(4 * items.len())?;
    Ok(items)
}

fn shape(class: Class) -> Error {
    Error::new(Kind::Unsupported, format!("{} with arguments of an unexpected shape", class.name()))
}

fn is_class(machine: &Machine<'_>, id: Id, class: Class) -> bool {
    *machine.node(id) == Node::Class(class)
}

/// The bytes of a `bytes`, `bytearray` or ASCII string of Python 2.
fn blob(machine: &Machine<'_>, id: Id) -> Option<Blob> {
    match machine.node(id) {
        Node::Bytes(blob) | Node::ByteArray(blob) | Node::Text(blob) => Some(blob.clone()),
        _ => None,
    }
}

fn items(machine: &Machine<'_>, id: Id) -> Option<Vec<Id>> {
    match machine.node(id) {
        Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) => Some(items.clone()),
        _ => None,
    }
}

fn int(machine: &Machine<'_>, id: Id) -> Option<i64> {
    match machine.node(id) {
        Node::Int(n) => Some(*n),
        Node::Bool(b) => Some(i64::from(*b)),
        _ => None,
    }
}

fn sizes(machine: &Machine<'_>, id: Id) -> Option<Vec<usize>> {
    let Node::Tuple(items) = machine.node(id) else { return None };
    items.iter().map(|id| int(machine, *id).and_then(|n| usize::try_from(n).ok())).collect()
}

/// Text whose characters stand for bytes.
fn encode(machine: &mut Machine<'_>, text: Id, encoding: Id) -> Result<Blob> {
    let wrong = || shape(Class::Encode);
    if !machine.text(encoding).is_some_and(|name| matches!(name, "latin1" | "latin-1" | "iso-8859-1")) {
        return Err(wrong());
    }
    let text = machine.text(text).ok_or_else(wrong)?;
    let bytes = text.chars().map(|c| u8::try_from(u32::from(c))).collect::<Result<Vec<_>, _>>();
    let bytes = bytes.map_err(|_| Error::new(Kind::Corrupt, "a character that is no byte"))?;
    machine.spend(bytes.len())?;
    Ok(Blob::Owned(bytes.into()))
}

fn numpy_scalar(machine: &Machine<'_>, dtype: Id, value: Id) -> Result<Node> {
    let (Node::DType(element), Some(blob)) = (machine.node(dtype), blob(machine, value)) else {
        return Err(shape(Class::NumpyScalar));
    };
    let found = machine.bytes(&blob).len();
    if *element == Element::Object || found != element.size() {
        let detail = format!("a scalar of type {} over {found} bytes", element.descr());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    Ok(Node::Scalar(element.clone(), blob))
}

fn from_buffer(machine: &Machine<'_>, [buffer, dtype, dims, order]: [Id; 4]) -> Result<Node> {
    let parts = blob(machine, buffer).zip(sizes(machine, dims));
    let (Node::DType(element), Some((blob, dims))) = (machine.node(dtype), parts) else {
        return Err(shape(Class::FromBuffer));
    };
    if *element == Element::Object {
        return Err(Error::new(Kind::Unsupported, "Python objects in a buffer"));
    }
    let fortran = match machine.text(order) {
        Some("C") => false,
        Some("F") => true,
        _ => return Err(shape(Class::FromBuffer)),
    };
    let stored = machine.bytes(&blob).len();
    Array::new(element.clone(), dims, fortran, Data::Raw(blob), stored).map(Node::Array)
}

/// The state of an array: (version, shape, dtype, is_fortran, data), the version left out by the oldest.
fn array(machine: &mut Machine<'_>, state: Id) -> Result<Node> {
    let wrong = || Error::new(Kind::Unsupported, "an array state of an unexpected shape");
    let state = arguments(machine, state)?;
    let [dims, dtype, fortran, data] = match state.as_slice() {
        [_, rest @ ..] if rest.len() == 4 => [rest[0], rest[1], rest[2], rest[3]],
        [a, b, c, d] => [*a, *b, *c, *d],
        _ => return Err(wrong()),
    };
    let dims = sizes(machine, dims).ok_or_else(wrong)?;
    let fortran = int(machine, fortran).ok_or_else(wrong)? != 0;
    let Node::DType(element) = machine.node(dtype) else { return Err(wrong()) };
    let element = element.clone();
    let (data, stored) = match (&element, machine.node(data)) {
        (Element::Object, Node::List(objects)) => {
            let objects = objects.clone();
            machine.spend(4 * objects.len())?;
            let count = objects.len();
            (Data::Objects(objects), count)
        }
        (Element::Object, _) => return Err(wrong()),
        _ => {
            let blob = blob(machine, data).ok_or_else(wrong)?;
            let stored = machine.bytes(&blob).len();
            (Data::Raw(blob), stored)
        }
    };
    // The objects of an array stand in C order, whatever the flag says.
    let fortran = fortran && element != Element::Object;
    Array::new(element, dims, fortran, data, stored).map(Node::Array)
}

/// The state of a dtype: (version, order, subdtype, names, fields, size, alignment, flags, metadata perhaps).
fn dtype(machine: &mut Machine<'_>, base: Element, state: Id) -> Result<Node> {
    let wrong = || Error::new(Kind::Unsupported, "a dtype state of an unexpected shape");
    let state = arguments(machine, state)?;
    let [_, order, block, names, fields, size, _, _, more @ ..] = state.as_slice() else { return Err(wrong()) };
    let element = |id: Id| match machine.node(id) {
        Node::DType(element) => Some(element.clone()),
        _ => None,
    };
    let block = match machine.node(*block) {
        Node::None => None,
        Node::Tuple(parts) => {
            let [of, dims] = parts.as_slice() else { return Err(wrong()) };
            let dims = sizes(machine, *dims).or_else(|| int(machine, *dims)?.try_into().ok().map(|n| vec![n]));
            Some((element(*of).ok_or_else(wrong)?, dims.ok_or_else(wrong)?))
        }
        _ => return Err(wrong()),
    };
    let mut found = Vec::new();
    if let (Node::Tuple(names), Node::Dict(_, pairs)) = (machine.node(*names), machine.node(*fields)) {
        if names.len() > MAX_FIELDS {
            return Err(Error::new(Kind::TooLarge, format!("a record of more than {MAX_FIELDS} fields")));
        }
        let known: HashMap<&str, Id> =
            pairs.iter().filter_map(|(key, value)| Some((machine.text(*key)?, *value))).collect();
        for name in names {
            let name = machine.text(*name).ok_or_else(wrong)?;
            let value = *known.get(name).ok_or_else(wrong)?;
            let Node::Tuple(parts) = machine.node(value) else { return Err(wrong()) };
            let [of, at, ..] = parts.as_slice() else { return Err(wrong()) };
            let at = int(machine, *at).and_then(|at| usize::try_from(at).ok()).ok_or_else(wrong)?;
            found.push((name.to_owned(), element(*of).ok_or_else(wrong)?, at));
        }
    }
    let state = DTypeState {
        order: machine.text(*order).ok_or_else(wrong)?,
        block,
        fields: found,
        size: int(machine, *size).ok_or_else(wrong)?,
        unit: more.first().and_then(|metadata| unit(machine, *metadata)),
    };
    Ok(Node::DType(state.apply(base)?))
}

/// The unit in a date's metadata: (None, (b'ns', 1, 1, 1)).
fn unit(machine: &Machine<'_>, metadata: Id) -> Option<(String, i64)> {
    let Node::Tuple(parts) = machine.node(metadata) else { return None };
    let Node::Tuple(unit) = machine.node(*parts.get(1)?) else { return None };
    let name = blob(machine, *unit.first()?)?;
    let name = std::str::from_utf8(machine.bytes(&name)).ok()?.to_owned();
    Some((name, int(machine, *unit.get(1)?)?))
}

/// An instance as protocols 0 and 1 spell it: class, base class, value of the base.
fn reconstructor(machine: &mut Machine<'_>, of: Id, base: Id, state: Id) -> Result<Node> {
    let args = match (machine.node(base), machine.node(state)) {
        (Node::Class(Class::Builtin(Builtin::Object)), Node::None) => Vec::new(),
        (Node::Class(Class::Builtin(Builtin::Tuple)), Node::Tuple(items)) => items.clone(),
        _ => return Err(shape(Class::Reconstructor)),
    };
    match *machine.node(of) {
        Node::Class(class @ (Class::Space(_) | Class::Trajectory | Class::TrajectoryTuple)) => {
            Ok(Node::Object(Object { class, args, state: None }))
        }
        _ => Err(shape(Class::Reconstructor)),
    }
}

fn construct(machine: &mut Machine<'_>, builtin: Builtin, args: &[Id]) -> Result<Node> {
    let wrong = || shape(Class::Builtin(builtin));
    let sequence = |machine: &Machine<'_>| match args {
        [] => Some(Vec::new()),
        [of] => items(machine, *of),
        _ => None,
    };
    match builtin {
        Builtin::OrderedDict => mapping(machine, Mapping::Ordered, args),
        Builtin::Dict => mapping(machine, Mapping::Dict, args),
        Builtin::DefaultDict => match args {
            [] | [_] => Ok(Node::Dict(Mapping::Default, Vec::new())),
            _ => Err(wrong()),
        },
        Builtin::Deque => match args {
            [] => Ok(Node::Deque(Vec::new())),
            [of] | [of, _] => Ok(Node::Deque(items(machine, *of).ok_or_else(wrong)?)),
            _ => Err(wrong()),
        },
        Builtin::List => Ok(Node::List(sequence(machine).ok_or_else(wrong)?)),
        Builtin::Tuple => Ok(Node::Tuple(sequence(machine).ok_or_else(wrong)?)),
        Builtin::Set => Ok(Node::Set(sequence(machine).ok_or_else(wrong)?)),
        Builtin::FrozenSet => Ok(Node::FrozenSet(sequence(machine).ok_or_else(wrong)?)),
        Builtin::Bytes => bytes(machine, args).map(Node::Bytes),
        Builtin::ByteArray => bytes(machine, args).map(Node::ByteArray),
        Builtin::Complex => match args {
            [re, im] => match (machine.node(*re), machine.node(*im)) {
                (Node::Float(re), Node::Float(im)) => Ok(Node::Complex(*re, *im)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        },
        Builtin::Object | Builtin::Int | Builtin::Float | Builtin::Str => Err(wrong()),
    }
}

/// `bytes()`, `bytes(b"..")` or, in protocol 2, `bytearray("..", "latin-1")`.
fn bytes(machine: &mut Machine<'_>, args: &[Id]) -> Result<Blob> {
    match args {
        [] => Ok(Blob::Owned(Arc::default())),
        [of] => blob(machine, *of).ok_or_else(|| shape(Class::Builtin(Builtin::Bytes))),
        [text, encoding] => encode(machine, *text, *encoding),
        _ => Err(shape(Class::Builtin(Builtin::Bytes))),
    }
}

/// An empty mapping, or one from a list of pairs.
fn mapping(machine: &mut Machine<'_>, mapping: Mapping, args: &[Id]) -> Result<Node> {
    let wrong = || shape(Class::Builtin(Builtin::OrderedDict));
    let pairs = match args {
        [] => Vec::new(),
        [list] => {
            let list = items(machine, *list).ok_or_else(wrong)?;
            machine.spend(8 * list.len())?;
            let pair = |id: &Id| match items(machine, *id).as_deref() {
                Some([key, value]) => Some((*key, *value)),
                _ => None,
            };
            list.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    };
    Ok(Node::Dict(mapping, pairs))
}
