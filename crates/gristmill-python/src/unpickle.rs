//! Pickled bytes in, plain Python values out: built by the safe unpickler's arena, never by Python's own `pickle`.
//! Values are made in the order in which they were pickled and filled afterwards, so that no depth can overflow a stack.

use std::collections::HashMap;

use gristmill_format::container::pickle::{Array, Blob, Class, Data, Element, Id, Mapping, Node, Object, Pickle};
use gristmill_format::container::pickle::{PickleLimits, parse};
use gristmill_format::layout::Scalar;
use gristmill_format::{Error, Kind};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    IntoPyDict, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};

use crate::array::{Contiguous, Memory};
use crate::error::Fault;

/// The value that is pickled in `data`; arrays lie over `data` itself unless `copy`.
#[pyfunction]
pub(crate) fn unpickle<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    source: Option<String>,
    max_bytes: usize,
    copy: bool,
) -> Result<Bound<'py, PyAny>, Fault> {
    let held: Contiguous = data.extract()?;
    let place = |e: Error| match &source {
        Some(source) => e.in_source(source),
        None => e,
    };
    let limits = PickleLimits { max_bytes };
    let room = max_bytes.saturating_add(held.bytes().len());
    let pickle = py.detach(|| parse(held.bytes(), &limits)).map_err(place)?;
    Maker::new(py, data, &pickle, copy, room)?.run().map_err(|fault| match fault {
        Fault::Format(e) => Fault::Format(place(e)),
        other => other,
    })
}

/// Maximum number of values of one key, those within it and their own, and how deep they may lie in each other.
const MAX_KEY_VALUES: usize = 1 << 16;
const MAX_KEY_DEPTH: usize = 128;

/// Maximum number of keys of one mapping or set that may have one hash.
const MAX_COLLISIONS: usize = 256;

struct Maker<'a, 'py> {
    py: Python<'py>,
    data: &'a Bound<'py, PyAny>,
    pickle: &'a Pickle<'a>,
    copy: bool,
    numpy: Bound<'py, PyModule>,
    collections: Bound<'py, PyModule>,
    /// The module of the plain classes that values become.
    plain: Bound<'py, PyModule>,
    dtypes: HashMap<String, Bound<'py, PyAny>>,
    made: Vec<Option<Bound<'py, PyAny>>>,
    /// Bytes that may still be copied: many values may be made of the same ones.
    room: usize,
}

impl<'a, 'py> Maker<'a, 'py> {
    fn new(
        py: Python<'py>,
        data: &'a Bound<'py, PyAny>,
        pickle: &'a Pickle<'a>,
        copy: bool,
        room: usize,
    ) -> PyResult<Self> {
        Ok(Maker {
            py,
            data,
            pickle,
            copy,
            numpy: py.import("numpy")?,
            collections: py.import("collections")?,
            plain: py.import("gristmill.safe_pickle")?,
            dtypes: HashMap::new(),
            made: Vec::new(),
            room,
        })
    }

    /// Makes what the root needs, then fills what may refer to what comes later.
    fn run(mut self) -> Result<Bound<'py, PyAny>, Fault> {
        let needed = self.needed();
        self.check_keys(&needed)?;
        self.made.resize_with(self.pickle.len(), || None);
        for (id, _) in self.pickle.ids().zip(&needed).filter(|(_, needed)| **needed) {
            self.made[self.pickle.index(id)] = Some(self.make(id)?);
        }
        for (id, _) in self.pickle.ids().zip(&needed).filter(|(_, needed)| **needed) {
            self.fill(id)?;
        }
        self.value(self.pickle.root())
    }

    /// Which values the root is made of.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.pickle.len()];
        let mut open = vec![self.pickle.root()];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut needed[self.pickle.index(id)], true) {
                continue;
            }
            match self.pickle.node(id) {
                Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) => {
                    open.extend(items);
                }
                Node::Deque(items) | Node::Array(Array { data: Data::Objects(items), .. }) => open.extend(items),
                Node::Dict(_, pairs) => open.extend(pairs.iter().flat_map(|(key, value)| [*key, *value])),
                Node::Object(object) => open.extend(object.args.iter().chain(&object.state)),
                _ => {}
            }
        }
        needed
    }

    /// Refuses keys that Python would take very long to hash, or run out of stack: tuples deep within each other, or of each
    /// other many times.
    fn check_keys(&self, needed: &[bool]) -> Result<(), Fault> {
        // What a value is made of came before it.
        let mut sizes: Vec<(usize, usize)> = Vec::with_capacity(self.pickle.len());
        for id in self.pickle.ids() {
            let within: &[Id] = match self.pickle.node(id) {
                Node::Tuple(items) | Node::FrozenSet(items) => items,
                Node::Object(object) => &object.args,
                _ => &[],
            };
            let found = within.iter().filter_map(|id| sizes.get(self.pickle.index(*id)));
            let sum =
                found.fold((0, 0), |(depth, count): (usize, usize), (d, c)| (depth.max(*d), count.saturating_add(*c)));
            sizes.push((sum.0 + 1, sum.1.saturating_add(1)));
        }
        let check = |key: &Id| match sizes[self.pickle.index(*key)] {
            (..=MAX_KEY_DEPTH, ..=MAX_KEY_VALUES) => Ok(()),
            _ => {
                let detail = format!(
                    "a key of more than {MAX_KEY_VALUES} values, or more than {MAX_KEY_DEPTH} within each other"
                );
                Err(Fault::from(Error::new(Kind::TooLarge, detail)))
            }
        };
        for (id, _) in self.pickle.ids().zip(needed).filter(|(_, needed)| **needed) {
            match self.pickle.node(id) {
                Node::Dict(_, pairs) => pairs.iter().try_for_each(|(key, _)| check(key))?,
                Node::Set(items) | Node::FrozenSet(items) => items.iter().try_for_each(check)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses keys most of which have one hash: Python compares each with all before it. Texts are hashed with a secret of the
    /// process, so no one can make such keys.
    fn check_hashes(&self, keys: &[Bound<'py, PyAny>]) -> Result<(), Fault> {
        if keys.len() <= MAX_COLLISIONS {
            return Ok(());
        }
        let mut counts: HashMap<isize, usize> = HashMap::with_capacity(keys.len());
        for key in keys.iter().filter(|key| !key.is_instance_of::<PyString>()) {
            let count = counts.entry(key.hash().map_err(unhashable)?).or_default();
            *count += 1;
            if *count > MAX_COLLISIONS {
                let detail =
                    format!("more than {MAX_COLLISIONS} of {} keys have one hash: made to take for ever", keys.len());
                return Err(Error::new(Kind::TooLarge, detail).into());
            }
        }
        Ok(())
    }

    /// Counts bytes that are about to be copied.
    fn copies(&mut self, bytes: usize) -> Result<(), Fault> {
        let left = self.room.checked_sub(bytes);
        let detail =
            "its values take more bytes than `max_bytes`: many are made of the same ones; raise it if they are real";
        self.room = left.ok_or_else(|| Error::new(Kind::TooLarge, detail))?;
        Ok(())
    }

    fn value(&self, id: Id) -> Result<Bound<'py, PyAny>, Fault> {
        let made = self.made[self.pickle.index(id)].clone();
        made.ok_or_else(|| Error::new(Kind::Unsupported, "an immutable value that holds itself").into())
    }

    fn values(&self, ids: &[Id]) -> Result<Vec<Bound<'py, PyAny>>, Fault> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    /// The value itself where it cannot change; else an empty one, for [`Maker::fill`].
    fn make(&mut self, id: Id) -> Result<Bound<'py, PyAny>, Fault> {
        let (py, pickle) = (self.py, self.pickle);
        if let Node::Bytes(blob) | Node::ByteArray(blob) | Node::BigInt(blob) | Node::Scalar(_, blob) = pickle.node(id)
        {
            self.copies(pickle.bytes(blob).len())?;
        }
        Ok(match pickle.node(id) {
            Node::None => py.None().into_bound(py),
            Node::Bool(value) => value.into_pyobject(py).map_err(PyErr::from)?.to_owned().into_any(),
            Node::Int(value) => PyInt::new(py, *value).into_any(),
            Node::BigInt(blob) => {
                let named = PyDict::new(py);
                named.set_item("signed", true)?;
                let bytes = PyBytes::new(py, pickle.bytes(blob));
                py.get_type::<PyInt>().call_method("from_bytes", (bytes, "little"), Some(&named))?
            }
            Node::Float(value) => PyFloat::new(py, *value).into_any(),
            Node::Complex(re, im) => PyComplex::from_doubles(py, *re, *im).into_any(),
            Node::Text(_) => PyString::new(py, pickle.text(id).unwrap_or_default()).into_any(),
            Node::Bytes(blob) => PyBytes::new(py, pickle.bytes(blob)).into_any(),
            Node::ByteArray(blob) => PyByteArray::new(py, pickle.bytes(blob)).into_any(),
            Node::List(_) => PyList::empty(py).into_any(),
            Node::Tuple(items) => PyTuple::new(py, self.values(items)?)?.into_any(),
            Node::Set(_) => PySet::empty(py)?.into_any(),
            Node::FrozenSet(items) => {
                let items = self.values(items)?;
                self.check_hashes(&items)?;
                PyFrozenSet::new(py, items).map_err(unhashable)?.into_any()
            }
            Node::Deque(_) => self.collections.call_method0("deque")?,
            Node::Dict(Mapping::Dict, _) => PyDict::new(py).into_any(),
            Node::Dict(Mapping::Ordered, _) => self.collections.call_method0("OrderedDict")?,
            Node::Dict(Mapping::Default, _) => self.collections.call_method0("defaultdict")?,
            Node::Array(array) => self.array(array)?,
            Node::Scalar(element, blob) => {
                let dtype = self.dtype(element).map_err(refused)?;
                let named = [("dtype", dtype)].into_py_dict(py)?;
                let bytes = PyBytes::new(py, pickle.bytes(blob));
                let made = match element.size() {
                    0 => self.numpy.call_method("zeros", (1,), Some(&named)),
                    _ => self.numpy.call_method("frombuffer", (bytes,), Some(&named)),
                };
                made.and_then(|made| made.get_item(0)).map_err(refused)?
            }
            Node::DType(element) => self.dtype(element).map_err(refused)?,
            Node::Class(class) => self.plain.getattr("Name")?.call1((class.name(),))?,
            Node::Object(Object { class: Class::ColorSpace, args, .. }) => match args.as_slice() {
                [value] => self.value(*value)?,
                _ => return Err(Error::new(Kind::Unsupported, "a colour space of more than its name").into()),
            },
            Node::Object(Object { class: Class::TrajectoryTuple, args, .. }) if args.len() == 4 => {
                self.plain.getattr("TrajectoryTuple")?.call1(PyTuple::new(py, self.values(args)?)?)?
            }
            Node::Object(object) => self.plain.getattr("Instance")?.call1((object.class.name(),))?,
            Node::Announced => return Err(Error::new(Kind::Corrupt, "an array without contents").into()),
        })
    }

    /// Puts into a mutable value what it holds.
    fn fill(&self, id: Id) -> Result<(), Fault> {
        match self.pickle.node(id) {
            Node::List(items) => {
                let list = self.value(id)?;
                let list = list.cast::<PyList>().map_err(PyErr::from)?;
                items.iter().try_for_each(|item| Ok(list.append(self.value(*item)?)?))
            }
            Node::Set(items) => {
                let set = self.value(id)?;
                let set = set.cast::<PySet>().map_err(PyErr::from)?;
                let items = self.values(items)?;
                self.check_hashes(&items)?;
                items.into_iter().try_for_each(|item| set.add(item).map_err(unhashable))
            }
            Node::Deque(items) => {
                self.value(id)?.call_method1("extend", (self.values(items)?,))?;
                Ok(())
            }
            Node::Dict(_, pairs) => {
                let dict = self.value(id)?;
                let keys = pairs.iter().map(|(key, _)| self.value(*key)).collect::<Result<Vec<_>, _>>()?;
                self.check_hashes(&keys)?;
                pairs.iter().try_for_each(|(key, value)| {
                    let (key, value) = (self.value(*key)?, self.value(*value)?);
                    dict.set_item(key, value).map_err(unhashable)
                })
            }
            Node::Array(Array { data: Data::Objects(items), .. }) => {
                let named = [("dtype", "O".into_pyobject(self.py).map_err(PyErr::from)?.into_any())];
                let named = named.into_py_dict(self.py)?;
                named.set_item("count", items.len())?;
                let filled =
                    self.numpy.call_method("fromiter", (self.values(items)?,), Some(&named)).map_err(refused)?;
                let flat = self.value(id)?.call_method1("reshape", (-1,)).map_err(refused)?;
                flat.set_item(self.py.Ellipsis(), filled).map_err(refused)?;
                Ok(())
            }
            Node::Object(Object { class: Class::ColorSpace, .. }) => Ok(()),
            Node::Object(Object { class: Class::TrajectoryTuple, args, .. }) if args.len() == 4 => Ok(()),
            Node::Object(object) => {
                let instance = self.value(id)?;
                instance.setattr("args", PyTuple::new(self.py, self.values(&object.args)?)?)?;
                if let Some(state) = object.state {
                    instance.setattr("state", self.value(state)?)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn array(&mut self, array: &Array) -> Result<Bound<'py, PyAny>, Fault> {
        let shape = PyTuple::new(self.py, &array.shape)?;
        let blob = match &array.data {
            Data::Raw(blob) => blob,
            Data::Objects(_) => return self.numpy.call_method1("empty", (shape, "O")).map_err(refused),
        };
        let named = PyDict::new(self.py);
        named.set_item("dtype", self.dtype(&array.element).map_err(refused)?)?;
        named.set_item("order", if array.fortran { "F" } else { "C" })?;
        let bytes = self.pickle.bytes(blob);
        let aligned = bytes.as_ptr().addr().is_multiple_of(alignment(&array.element));
        match blob {
            Blob::Input(range) if aligned && !self.copy && !range.is_empty() => {
                named.set_item("buffer", self.data)?;
                named.set_item("offset", range.start)?;
            }
            _ => {
                self.copies(bytes.len())?;
                named.set_item("buffer", Bound::new(self.py, Memory::of_vec(bytes.to_vec(), bytes.len()))?)?;
            }
        }
        let made = self.numpy.getattr(intern!(self.py, "ndarray"))?.call((shape,), Some(&named)).map_err(refused)?;
        if !self.copy {
            made.call_method1("setflags", (false,))?;
        }
        Ok(made)
    }

    fn dtype(&mut self, element: &Element) -> PyResult<Bound<'py, PyAny>> {
        if let Element::Block(element, shape) = element {
            let parts = (self.dtype(element)?, PyTuple::new(self.py, shape)?);
            return self.numpy.call_method1("dtype", (parts,));
        }
        let descr = element.descr();
        if let Some(known) = self.dtypes.get(&descr) {
            return Ok(known.clone());
        }
        let made = match element {
            Element::Record(_) => self.plain.call_method1("_record_dtype", (&descr,))?,
            _ => self.numpy.call_method1("dtype", (&descr,))?,
        };
        self.dtypes.insert(descr, made.clone());
        Ok(made)
    }
}

/// What NumPy wants the address of an element to be a multiple of.
fn alignment(element: &Element) -> usize {
    match element {
        Element::Scalar(Scalar::Bytes(_) | Scalar::Void(_), _) | Element::Record(_) => 1,
        Element::Scalar(scalar, _) => scalar.swap_unit().max(1),
        _ => 8,
    }
}

/// Whatever NumPy cannot make of a type or shape.
fn refused(e: PyErr) -> Fault {
    Error::new(Kind::Unsupported, format!("an array that NumPy cannot hold: {e}")).into()
}

/// A key or member of a set that Python cannot hash is no key: the pickle never came from a real dictionary.
fn unhashable(e: PyErr) -> Fault {
    Error::new(Kind::Unsupported, format!("a key that cannot be hashed here: {e}")).into()
}
