//! Pickle bytes -> an arena of plain values, by a stack machine that can only build data.
//! Nothing is imported or called: a name off the list is refused, and memory, memo and values are counted as they grow.

use std::collections::HashSet;

use super::class::Class;
use super::construct::{build, inherit, reduce};
use super::opcode::{Op, Reader};
use super::text;
use super::value::{Blob, Id, Mapping, Node, Pickle, resolve};
use crate::error::{Error, Kind, Result};

/// Bytes that a node is counted with.
const NODE_BYTES: usize = std::mem::size_of::<Node>();

/// Bounds of one pickle, whatever it says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PickleLimits {
    /// Maximum number of bytes that values, memo and stack may take, the input itself not counted.
    pub max_bytes: usize,
}

impl Default for PickleLimits {
    /// 1 GiB: some ten million values.
    fn default() -> Self {
        PickleLimits { max_bytes: 1 << 30 }
    }
}

/// Reads a pickle that is all of `bytes`.
///
/// Errors, with the byte: as [`parse_prefix`]; `Corrupt` where bytes follow its end.
pub fn parse<'a>(bytes: &'a [u8], limits: &PickleLimits) -> Result<Pickle<'a>> {
    let (pickle, used) = parse_prefix(bytes, limits)?;
    match used == bytes.len() {
        true => Ok(pickle),
        false => {
            let detail = format!("{} bytes after the end of the pickle", bytes.len() - used);
            Err(Error::new(Kind::Corrupt, detail).at_byte(used as u64))
        }
    }
}

/// Reads the pickle that `bytes` start with, protocols 0 to 5, and tells how many bytes it took.
///
/// Errors, with the byte: `Forbidden` for a name that is not on the list of data; `Unsupported` for references to things
/// outside the file and for instances of unexpected shape; `Truncated`, `Corrupt`, `WrongSize`; `TooLarge` beyond
/// `limits`.
pub fn parse_prefix<'a>(bytes: &'a [u8], limits: &PickleLimits) -> Result<(Pickle<'a>, usize)> {
    let mut machine = Machine {
        input: bytes,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        spent: 0,
        bound: limits.max_bytes,
    };
    let mut reader = Reader::new(bytes);
    loop {
        let at = reader.at() as u64;
        let op = reader.next()?;
        if op == Op::Stop {
            let root = machine.finish().map_err(|e| e.at_byte(at))?;
            return Ok((Pickle { input: bytes, nodes: machine.nodes, root }, reader.at()));
        }
        machine.step(op).map_err(|e| e.at_byte(at))?;
    }
}

/// The state of a reading.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) input: &'a [u8],
    pub(super) nodes: Vec<Node>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: Vec<Option<Id>>,
    spent: usize,
    bound: usize,
}

impl Machine<'_> {
    fn step(&mut self, op: Op) -> Result<()> {
        let node = match op {
            Op::Proto(version) if version > 5 => {
                return Err(Error::new(Kind::Unsupported, format!("protocol {version}; 0 to 5 can be read")));
            }
            Op::Proto(_) | Op::Frame | Op::Stop => return Ok(()),
            Op::Mark => {
                self.spend(8)?;
                self.marks.push(self.stack.len());
                return Ok(());
            }
            Op::Pop => {
                // As in CPython: a mark on top is popped instead of a value.
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                    return Ok(());
                }
                return self.pop().map(drop);
            }
            Op::PopMark => return self.since_mark().map(drop),
            Op::Dup => {
                let top = self.top()?;
                return self.push_id(top);
            }
            Op::Put(index) => return self.put(index),
            Op::Memoize => return self.put(self.memo.len() as u64),
            Op::Get(index) => {
                let found = usize::try_from(index).ok().and_then(|index| self.memo.get(index).copied().flatten());
                let id = found.ok_or_else(|| Error::new(Kind::Corrupt, format!("the memo has no entry {index}")))?;
                return self.push_id(id);
            }
            Op::Append | Op::Appends | Op::AddItems => {
                let items = if op == Op::Append { vec![self.pop()?] } else { self.since_mark()? };
                return self.extend(items);
            }
            Op::SetItem | Op::SetItems => {
                let items = if op == Op::SetItem { self.pop_two()? } else { self.since_mark()? };
                return self.set_items(&items);
            }
            Op::Reduce => {
                let (args, callable) = (self.pop()?, self.pop()?);
                reduce(self, callable, args)?
            }
            Op::NewObjEx => {
                let (named, args, class) = (self.pop()?, self.pop()?, self.pop()?);
                match self.node(named) {
                    Node::Dict(_, items) if items.is_empty() => inherit(self, class, args)?,
                    _ => return Err(Error::new(Kind::Unsupported, "an instance made with named arguments")),
                }
            }
            Op::NewObj => {
                let (args, class) = (self.pop()?, self.pop()?);
                inherit(self, class, args)?
            }
            Op::Build => {
                let (state, target) = (self.pop()?, self.top()?);
                return build(self, target, state);
            }
            Op::StackGlobal => {
                let (name, module) = (self.pop()?, self.pop()?);
                let texts = self.text(module).zip(self.text(name));
                let (module, name) = texts.ok_or_else(|| Error::new(Kind::Corrupt, "a class named by no text"))?;
                Node::Class(find(module, name)?)
            }
            Op::Global(module, name) => {
                let texts = std::str::from_utf8(&self.input[module]).ok();
                let texts = texts.zip(std::str::from_utf8(&self.input[name]).ok());
                let (module, name) = texts.ok_or_else(|| Error::new(Kind::Corrupt, "a class named by no text"))?;
                Node::Class(find(module, name)?)
            }
            Op::List => Node::List(self.since_mark()?),
            Op::Tuple => Node::Tuple(self.since_mark()?),
            Op::FrozenSet => Node::FrozenSet(self.since_mark()?),
            Op::Dict => {
                let items = self.since_mark()?;
                self.push(Node::Dict(Mapping::Dict, Vec::new()))?;
                return self.set_items(&items);
            }
            Op::TupleOf(n) => {
                let from = self.stack.len().checked_sub(n).filter(|from| *from >= self.floor());
                let from = from.ok_or_else(underflow)?;
                Node::Tuple(self.stack.split_off(from))
            }
            Op::None => Node::None,
            Op::Bool(value) => Node::Bool(value),
            Op::Int(value) => Node::Int(value),
            Op::Float(value) => Node::Float(value),
            Op::Long(range) => text::long(self.input, range),
            Op::Decimal(range) => text::decimal(&self.input[range])?,
            Op::Text(range) => {
                std::str::from_utf8(&self.input[range.clone()])
                    .map_err(|_| Error::new(Kind::Unsupported, "a text that is not valid UTF-8"))?;
                Node::Text(Blob::Input(range))
            }
            Op::EscapedText(range) => Node::Text(Blob::Owned(text::raw_unicode(&self.input[range])?.into())),
            Op::EscapedString(range) => text::quoted(&self.input[range])?,
            Op::String(range) if self.input[range.clone()].is_ascii() => Node::Text(Blob::Input(range)),
            Op::String(range) | Op::Bytes(range) => Node::Bytes(Blob::Input(range)),
            Op::ByteArray(range) => Node::ByteArray(Blob::Input(range)),
            Op::EmptyList => Node::List(Vec::new()),
            Op::EmptyTuple => Node::Tuple(Vec::new()),
            Op::EmptyDict => Node::Dict(Mapping::Dict, Vec::new()),
            Op::EmptySet => Node::Set(Vec::new()),
        };
        self.push(node)
    }

    /// Counts what is about to be allocated.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.spent = self.spent.saturating_add(bytes);
        match self.spent <= self.bound {
            true => Ok(()),
            false => {
                let detail =
                    format!("its values take more than {} bytes; raise the bound if they are real", self.bound);
                Err(Error::new(Kind::TooLarge, detail))
            }
        }
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Puts another node into the place of one.
    ///
    /// Errors: `TooLarge` where it does not fit any more.
    pub(super) fn replace(&mut self, id: Id, node: Node) -> Result<()> {
        self.spend(beside(&node))?;
        self.nodes[id.0 as usize] = node;
        Ok(())
    }

    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match self.node(id) {
            Node::Text(blob) => std::str::from_utf8(resolve(self.input, blob)).ok(),
            _ => None,
        }
    }

    pub(super) fn bytes<'b>(&'b self, blob: &'b Blob) -> &'b [u8] {
        resolve(self.input, blob)
    }

    /// A new node that is not on the stack.
    pub(super) fn add(&mut self, node: Node) -> Result<Id> {
        let owned = match &node {
            Node::Text(Blob::Owned(bytes)) | Node::Bytes(Blob::Owned(bytes)) | Node::BigInt(Blob::Owned(bytes)) => {
                bytes.len()
            }
            Node::List(items) | Node::Tuple(items) | Node::FrozenSet(items) => 4 * items.len(),
            // An empty one takes as much in Python, where values may end up.
            Node::Set(_) | Node::Deque(_) | Node::Dict(Mapping::Ordered | Mapping::Default, _) => 512,
            other => beside(other),
        };
        self.spend(NODE_BYTES + owned)?;
        let id = u32::try_from(self.nodes.len()).map_err(|_| Error::new(Kind::TooLarge, "more than 2^32 values"))?;
        self.nodes.push(node);
        Ok(Id(id))
    }

    fn push(&mut self, node: Node) -> Result<()> {
        let id = self.add(node)?;
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<()> {
        self.spend(4)?;
        self.stack.push(id);
        Ok(())
    }

    /// Where the values after the last mark begin: what is below cannot be reached.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id> {
        if self.stack.len() <= self.floor() {
            return Err(underflow());
        }
        self.stack.pop().ok_or_else(underflow)
    }

    fn pop_two(&mut self) -> Result<Vec<Id>> {
        let (second, first) = (self.pop()?, self.pop()?);
        Ok(vec![first, second])
    }

    fn top(&self) -> Result<Id> {
        let above = self.stack.len() > self.floor();
        self.stack.last().copied().filter(|_| above).ok_or_else(underflow)
    }

    /// The values since the last mark, which goes with them.
    fn since_mark(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop().ok_or_else(|| Error::new(Kind::Corrupt, "no mark on the stack"))?;
        Ok(self.stack.split_off(mark))
    }

    fn put(&mut self, index: u64) -> Result<()> {
        let top = self.top()?;
        // A writer numbers what it remembers one after another, so no number is above that of values so far.
        let index =
            usize::try_from(index).ok().filter(|index| *index <= self.nodes.len().saturating_add(self.memo.len()));
        let index = index.ok_or_else(|| Error::new(Kind::Corrupt, "a memo number far beyond the values so far"))?;
        if index >= self.memo.len() {
            self.spend(8 * (index + 1 - self.memo.len()))?;
            self.memo.resize(index + 1, None);
        }
        self.memo[index] = Some(top);
        Ok(())
    }

    fn extend(&mut self, items: Vec<Id>) -> Result<()> {
        let target = self.top()?;
        self.spend(4 * items.len())?;
        match &mut self.nodes[target.0 as usize] {
            Node::List(list) | Node::Set(list) | Node::Deque(list) => {
                list.extend(items);
                Ok(())
            }
            other => Err(Error::new(Kind::Corrupt, format!("items for a {}", other.type_name()))),
        }
    }

    fn set_items(&mut self, items: &[Id]) -> Result<()> {
        let target = self.top()?;
        self.spend(4 * items.len())?;
        if !items.len().is_multiple_of(2) {
            return Err(Error::new(Kind::Corrupt, "a key without a value"));
        }
        match &mut self.nodes[target.0 as usize] {
            Node::Dict(_, pairs) => {
                pairs.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
                Ok(())
            }
            other => Err(Error::new(Kind::Corrupt, format!("keys and values for a {}", other.type_name()))),
        }
    }

    /// The one value that is left, once everything has been checked that could not be checked on the way.
    fn finish(&mut self) -> Result<Id> {
        let root = self.pop()?;
        if !self.stack.is_empty() || !self.marks.is_empty() {
            return Err(Error::new(Kind::Corrupt, "values are left on the stack"));
        }
        for node in &self.nodes {
            match node {
                Node::Announced => return Err(Error::new(Kind::Corrupt, "an array was announced and never filled")),
                Node::Dict(_, pairs) => self.keys_differ(pairs)?,
                _ => {}
            }
        }
        Ok(root)
    }

    fn keys_differ(&self, pairs: &[(Id, Id)]) -> Result<()> {
        let mut seen = HashSet::with_capacity(pairs.len());
        for (key, _) in pairs {
            let key = match self.node(*key) {
                Node::Text(blob) => (0, self.bytes(blob).to_vec()),
                Node::Bytes(blob) => (1, self.bytes(blob).to_vec()),
                Node::Bool(value) => (2, i64::from(*value).to_le_bytes().to_vec()),
                Node::Int(value) => (2, value.to_le_bytes().to_vec()),
                Node::None => (3, Vec::new()),
                Node::List(_) | Node::Dict(..) | Node::Set(_) | Node::ByteArray(_) | Node::Array(_) => {
                    return Err(Error::new(Kind::Corrupt, format!("a {} as a key", self.node(*key).type_name())));
                }
                // Tuples, floats and classes may be keys; they differ by their place alone.
                _ => (4, key.0.to_le_bytes().to_vec()),
            };
            let twice = !seen.insert(key);
            if twice {
                return Err(Error::new(Kind::Corrupt, "a mapping has one key twice"));
            }
        }
        Ok(())
    }
}

fn find(module: &str, name: &str) -> Result<Class> {
    Class::find(module, name).ok_or_else(|| {
        let detail =
            format!("`{module}.{name}` is not on the list of names that mean data; nothing was imported or called");
        Error::new(Kind::Forbidden, detail)
    })
}

/// What a node takes beside itself for its element type, which is a copy of its dtype's.
fn beside(node: &Node) -> usize {
    match node {
        Node::Array(array) => array.element.weight(),
        Node::Scalar(element, _) | Node::DType(element) => element.weight(),
        _ => 0,
    }
}

fn underflow() -> Error {
    Error::new(Kind::Corrupt, "the stack has too few values")
}
