//! What a pickle holds, as plain data: an arena of nodes that refer to each other by number, so that shared and recursive
//! values cost nothing and no depth can overflow a stack. Byte strings are ranges of the input wherever they can be.

use std::ops::Range;
use std::sync::Arc;

use super::class::Class;
use super::ndarray::{Array, Element};

/// Number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(super) u32);

/// Bytes: where they lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// A range of the input.
    Input(Range<usize>),
    /// Made while reading: escapes resolved, Latin-1 text turned back into bytes. Shared by all that hold them.
    Owned(Arc<[u8]>),
}

/// Which mapping of Python a dict was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// `dict`.
    Dict,
    /// `collections.OrderedDict`.
    Ordered,
    /// `collections.defaultdict`; its factory is not kept.
    Default,
}

/// An instance of a listed class: what its constructor was given and what its state was set to. Nothing was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The class.
    pub class: Class,
    /// Positional arguments: for a named tuple, its fields in order.
    pub args: Vec<Id>,
    /// The state: most often a dict of attributes.
    pub state: Option<Id>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `None`.
    None,
    /// `bool`.
    Bool(bool),
    /// An `int` of up to 64 bits.
    Int(i64),
    /// A larger `int`, little-endian two's complement.
    BigInt(Blob),
    /// `float`.
    Float(f64),
    /// `complex`: real, imaginary.
    Complex(f64, f64),
    /// `str`, valid UTF-8.
    Text(Blob),
    /// `bytes`.
    Bytes(Blob),
    /// `bytearray`.
    ByteArray(Blob),
    /// `list`.
    List(Vec<Id>),
    /// `tuple`.
    Tuple(Vec<Id>),
    /// `set`.
    Set(Vec<Id>),
    /// `frozenset`.
    FrozenSet(Vec<Id>),
    /// `collections.deque`.
    Deque(Vec<Id>),
    /// A mapping, in order of insertion.
    Dict(Mapping, Vec<(Id, Id)>),
    /// `numpy.ndarray`.
    Array(Array),
    /// A NumPy scalar: its type and its bytes.
    Scalar(Element, Blob),
    /// `numpy.dtype`.
    DType(Element),
    /// A class itself.
    Class(Class),
    /// An instance of a listed class.
    Object(Object),
    /// An array that was announced and whose contents have not come: never left when reading has ended.
    Announced,
}

/// A whole pickle: its values, over the bytes it was read from.
#[derive(Debug, Clone)]
pub struct Pickle<'a> {
    pub(super) input: &'a [u8],
    pub(super) nodes: Vec<Node>,
    pub(super) root: Id,
}

impl<'a> Pickle<'a> {
    /// The value that was pickled.
    pub fn root(&self) -> Id {
        self.root
    }

    /// The node of a value.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// How many nodes there are; every [`Id`] is below.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: a pickle holds at least its root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every value.
    pub fn ids(&self) -> impl Iterator<Item = Id> + use<> {
        (0..self.nodes.len() as u32).map(Id)
    }

    /// The number of a value, for tables indexed by it.
    pub fn index(&self, id: Id) -> usize {
        id.0 as usize
    }

    /// The bytes of a blob.
    pub fn bytes<'b>(&'b self, blob: &'b Blob) -> &'b [u8] {
        resolve(self.input, blob)
    }

    /// The text of a `str`.
    pub fn text(&self, id: Id) -> Option<&str> {
        match self.node(id) {
            Node::Text(blob) => std::str::from_utf8(self.bytes(blob)).ok(),
            _ => None,
        }
    }

    /// The value of a small `int`, `bool` or integer NumPy scalar.
    pub fn int(&self, id: Id) -> Option<i64> {
        match self.node(id) {
            Node::Int(n) => Some(*n),
            Node::Bool(b) => Some(i64::from(*b)),
            Node::Scalar(element, blob) => element.int(self.bytes(blob)),
            _ => None,
        }
    }

    /// The value of a mapping under a text key.
    pub fn get(&self, id: Id, key: &str) -> Option<Id> {
        match self.node(id) {
            Node::Dict(_, items) => items.iter().find(|(k, _)| self.text(*k) == Some(key)).map(|(_, v)| *v),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub fn items(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::List(items) | Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The array of a value.
    pub fn array(&self, id: Id) -> Option<&Array> {
        match self.node(id) {
            Node::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The Python type of a value, for messages.
    pub fn type_name(&self, id: Id) -> &'static str {
        self.node(id).type_name()
    }

    /// The bytes that the pickle was read from.
    pub fn input(&self) -> &'a [u8] {
        self.input
    }
}

/// The bytes of a blob over `input`.
pub(super) fn resolve<'b>(input: &'b [u8], blob: &'b Blob) -> &'b [u8] {
    match blob {
        Blob::Input(range) => &input[range.clone()],
        Blob::Owned(bytes) => bytes,
    }
}

impl Node {
    /// The Python type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Node::None => "None",
            Node::Bool(_) => "bool",
            Node::Int(_) | Node::BigInt(_) => "int",
            Node::Float(_) => "float",
            Node::Complex(..) => "complex",
            Node::Text(_) => "str",
            Node::Bytes(_) => "bytes",
            Node::ByteArray(_) => "bytearray",
            Node::List(_) => "list",
            Node::Tuple(_) => "tuple",
            Node::Set(_) => "set",
            Node::FrozenSet(_) => "frozenset",
            Node::Deque(_) => "deque",
            Node::Dict(..) => "dict",
            Node::Array(_) | Node::Announced => "ndarray",
            Node::Scalar(..) => "NumPy scalar",
            Node::DType(_) => "dtype",
            Node::Class(_) => "class",
            Node::Object(object) => object.class.name(),
        }
    }
}
