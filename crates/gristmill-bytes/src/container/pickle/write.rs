//! Plain values -> a pickle of protocol 3, which every Python 3 reads; NumPy under the names that both its versions know.
//! Writes data alone: numbers, texts, containers, arrays; whatever else a pickle held is refused.

use super::ndarray::{Array, Data, Element};
use super::value::{Id, Mapping, Node, Pickle};
use crate::error::{Error, Kind, Result};
use crate::layout::{Order, Scalar};

/// How deep values may lie in each other: a reader that follows them must not run out of stack.
const MAX_DEPTH: usize = 256;

/// A pickle that is being written.
#[derive(Debug)]
pub struct PickleWriter {
    out: Vec<u8>,
    max: usize,
    depth: usize,
}

impl PickleWriter {
    /// An empty one, which may take `max` bytes.
    pub fn new(max: usize) -> Self {
        PickleWriter { out: vec![0x80, 3], max, depth: 0 }
    }

    /// The bytes, once the one value is written.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(b'.');
        self.out
    }

    /// `None`.
    pub fn none(&mut self) {
        self.out.push(b'N');
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) {
        self.out.push(if value { 0x88 } else { 0x89 });
    }

    /// A whole number.
    pub fn int(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.out.extend([b'K', byte]);
        } else if let Ok(word) = i32::try_from(value) {
            self.out.push(b'J');
            self.out.extend(word.to_le_bytes());
        } else {
            self.out.extend([0x8a, 8]);
            self.out.extend(value.to_le_bytes());
        }
    }

    /// A number.
    pub fn float(&mut self, value: f64) {
        self.out.push(b'G');
        #[allow(clippy::big_endian_bytes, reason = "as pickles have them")]
        self.out.extend(value.to_be_bytes());
    }

    /// A text.
    ///
    /// Errors: `TooLarge` from 4 GiB on.
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.sized(b'X', text.as_bytes())
    }

    /// Bytes.
    ///
    /// Errors: `TooLarge` from 4 GiB on.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.sized(b'B', bytes)
    }

    /// Bytes that can be changed.
    ///
    /// Errors: `TooLarge` from 4 GiB on.
    pub fn byte_array(&mut self, bytes: &[u8]) -> Result<()> {
        self.global("builtins", "bytearray");
        self.mark();
        self.bytes(bytes)?;
        self.tuple();
        self.reduce();
        Ok(())
    }

    /// A whole number of any size: two's complement, least byte first.
    ///
    /// Errors: `TooLarge` from 4 GiB on.
    pub fn big_int(&mut self, bytes: &[u8]) -> Result<()> {
        self.sized(0x8b, bytes)
    }

    /// A complex number.
    pub fn complex(&mut self, re: f64, im: f64) {
        self.global("builtins", "complex");
        self.mark();
        self.float(re);
        self.float(im);
        self.tuple();
        self.reduce();
    }

    /// The class or function `name` of `module`: what reads the pickle must know it.
    pub fn global(&mut self, module: &str, name: &str) {
        self.out.push(b'c');
        self.out.extend(format!("{module}\n{name}\n").bytes());
    }

    /// Begins the items of a tuple, list or mapping.
    pub fn mark(&mut self) {
        self.out.push(b'(');
    }

    /// Ends a tuple of all values since the mark.
    pub fn tuple(&mut self) {
        self.out.push(b't');
    }

    /// An empty mapping; its keys and values follow a mark and go in by [`PickleWriter::set_items`].
    pub fn dict(&mut self) {
        self.out.push(b'}');
    }

    /// Puts the keys and values since the mark into the mapping before it.
    pub fn set_items(&mut self) {
        self.out.push(b'u');
    }

    /// Begins a list; its items follow.
    pub fn begin_list(&mut self) {
        self.out.extend(b"](");
    }

    /// Ends the list.
    pub fn end_list(&mut self) {
        self.out.push(b'e');
    }

    /// Begins an array of `len` Python objects, which follow.
    ///
    /// Errors: `TooLarge` as for texts.
    pub fn begin_objects(&mut self, len: usize) -> Result<()> {
        self.array_head(&[len]);
        self.dtype_of("O8", '|', (-1, -1), 63)?;
        self.bool(false);
        self.begin_list();
        Ok(())
    }

    /// Ends the array.
    pub fn end_objects(&mut self) {
        self.end_list();
        self.array_end();
    }

    /// A value that another writer has finished.
    pub fn finished(&mut self, pickle: &[u8]) {
        self.out.extend_from_slice(pickle.get(2..pickle.len().saturating_sub(1)).unwrap_or_default());
    }

    /// Takes out what is written so far, to be sent on before the rest.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Calls the global before the tuple.
    pub fn reduce(&mut self) {
        self.out.push(b'R');
    }

    /// A dtype.
    pub fn dtype(&mut self, scalar: Scalar, order: Order) -> Result<()> {
        self.dtype_of(&scalar.code(), order_mark(scalar, order), scalar_sizes(scalar), 0)
    }

    /// A NumPy scalar over its little-endian bytes.
    pub fn numpy_scalar(&mut self, scalar: Scalar, bytes: &[u8]) -> Result<()> {
        self.global("numpy.core.multiarray", "scalar");
        self.mark();
        self.dtype(scalar, Order::Little)?;
        self.bytes(bytes)?;
        self.tuple();
        self.reduce();
        Ok(())
    }

    /// An array over its little-endian bytes in C order.
    pub fn array(&mut self, scalar: Scalar, shape: &[usize], bytes: &[u8]) -> Result<()> {
        self.array_head(shape);
        self.dtype(scalar, Order::Little)?;
        self.bool(false);
        self.bytes(bytes)?;
        self.array_end();
        Ok(())
    }

    /// A value of another pickle, by itself. Values that are shared are written each time.
    ///
    /// Errors: `Unsupported` for classes, instances, arrays of records or dates, and for values that hold themselves;
    /// `TooLarge` beyond the bound.
    pub fn value(&mut self, pickle: &Pickle<'_>, id: Id) -> Result<()> {
        if self.depth == MAX_DEPTH {
            let detail = format!("values deeper than {MAX_DEPTH} in each other, or one that holds itself");
            return Err(Error::new(Kind::Unsupported, detail));
        }
        if self.out.len() > self.max {
            return Err(Error::new(Kind::TooLarge, format!("a value of more than {} bytes", self.max)));
        }
        self.depth += 1;
        let written = self.node(pickle, id);
        self.depth -= 1;
        written?;
        if self.out.len() > self.max {
            return Err(Error::new(Kind::TooLarge, format!("a value of more than {} bytes", self.max)));
        }
        Ok(())
    }

    fn node(&mut self, pickle: &Pickle<'_>, id: Id) -> Result<()> {
        match pickle.node(id) {
            Node::None => self.none(),
            Node::Bool(value) => self.bool(*value),
            Node::Int(value) => self.int(*value),
            Node::BigInt(blob) => self.big_int(pickle.bytes(blob))?,
            Node::Float(value) => self.float(*value),
            Node::Complex(re, im) => self.complex(*re, *im),
            Node::Text(_) => self.text(pickle.text(id).unwrap_or_default())?,
            Node::Bytes(blob) => self.bytes(pickle.bytes(blob))?,
            Node::ByteArray(blob) => self.byte_array(pickle.bytes(blob))?,
            Node::List(items) => self.list(pickle, items)?,
            Node::Tuple(items) => {
                self.mark();
                items.iter().try_for_each(|item| self.value(pickle, *item))?;
                self.tuple();
            }
            Node::Set(items) => self.collection("builtins", "set", pickle, items)?,
            Node::FrozenSet(items) => self.collection("builtins", "frozenset", pickle, items)?,
            Node::Deque(items) => self.collection("collections", "deque", pickle, items)?,
            Node::Dict(mapping, pairs) => {
                match mapping {
                    Mapping::Dict => self.dict(),
                    Mapping::Ordered => self.empty("OrderedDict"),
                    Mapping::Default => self.empty("defaultdict"),
                }
                self.mark();
                for (key, value) in pairs {
                    self.value(pickle, *key)?;
                    self.value(pickle, *value)?;
                }
                self.set_items();
            }
            Node::Array(array) => self.stored_array(pickle, array)?,
            Node::Scalar(Element::Scalar(scalar, order), blob) => {
                self.global("numpy.core.multiarray", "scalar");
                self.mark();
                self.dtype(*scalar, *order)?;
                self.bytes(pickle.bytes(blob))?;
                self.tuple();
                self.reduce();
            }
            Node::DType(Element::Scalar(scalar, order)) => self.dtype(*scalar, *order)?,
            other => {
                let detail = format!("a {} cannot be written again", other.type_name());
                return Err(Error::new(Kind::Unsupported, detail));
            }
        }
        Ok(())
    }

    fn list(&mut self, pickle: &Pickle<'_>, items: &[Id]) -> Result<()> {
        self.begin_list();
        items.iter().try_for_each(|item| self.value(pickle, *item))?;
        self.end_list();
        Ok(())
    }

    fn collection(&mut self, module: &str, name: &str, pickle: &Pickle<'_>, items: &[Id]) -> Result<()> {
        self.global(module, name);
        self.mark();
        self.list(pickle, items)?;
        self.tuple();
        self.reduce();
        Ok(())
    }

    /// An empty mapping of `collections`, called `name`, in the place of [`PickleWriter::dict`].
    pub fn empty(&mut self, name: &str) {
        self.global("collections", name);
        self.out.extend(b")R");
    }

    fn stored_array(&mut self, pickle: &Pickle<'_>, array: &Array) -> Result<()> {
        self.array_head(&array.shape);
        match (&array.element, &array.data) {
            (Element::Scalar(scalar, order), Data::Raw(blob)) => {
                self.dtype(*scalar, *order)?;
                self.bool(array.fortran);
                self.bytes(pickle.bytes(blob))?;
            }
            (_, Data::Objects(items)) => {
                self.dtype_of("O8", '|', (-1, -1), 63)?;
                self.bool(false);
                self.list(pickle, items)?;
            }
            (other, _) => {
                let detail = format!("an array of {} cannot be written again", other.descr());
                return Err(Error::new(Kind::Unsupported, detail));
            }
        }
        self.array_end();
        Ok(())
    }

    fn array_head(&mut self, shape: &[usize]) {
        self.global("numpy.core.multiarray", "_reconstruct");
        self.mark();
        self.global("numpy", "ndarray");
        self.out.extend(b"(K\0tC\x01btR(K\x01(");
        shape.iter().for_each(|dim| self.int(i64::try_from(*dim).unwrap_or(i64::MAX)));
        self.tuple();
    }

    fn array_end(&mut self) {
        self.out.extend(b"tb");
    }

    fn dtype_of(&mut self, code: &str, order: char, (size, align): (i64, i64), flags: u8) -> Result<()> {
        self.global("numpy", "dtype");
        self.mark();
        self.text(code)?;
        self.out.extend(b"\x89\x88tR(K\x03");
        self.text(order.encode_utf8(&mut [0; 4]))?;
        self.out.extend(b"NNN");
        self.int(size);
        self.int(align);
        self.int(i64::from(flags));
        self.out.extend(b"tb");
        Ok(())
    }

    fn sized(&mut self, op: u8, bytes: &[u8]) -> Result<()> {
        let len = u32::try_from(bytes.len()).map_err(|_| Error::new(Kind::TooLarge, "a value of 4 GiB or more"))?;
        self.out.push(op);
        self.out.extend(len.to_le_bytes());
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

fn order_mark(scalar: Scalar, order: Order) -> char {
    match (scalar.swap_unit(), order) {
        (1, _) => '|',
        (_, Order::Little) => '<',
        (_, Order::Big) => '>',
    }
}

/// Size and alignment as NumPy states them: only where the type has no fixed size.
fn scalar_sizes(scalar: Scalar) -> (i64, i64) {
    match scalar {
        Scalar::Bytes(n) | Scalar::Void(n) => (i64::try_from(n).unwrap_or(i64::MAX), 1),
        Scalar::Text(_) => (i64::try_from(scalar.size()).unwrap_or(i64::MAX), 4),
        _ => (-1, -1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PickleLimits, parse};
    use super::*;

    #[test]
    fn what_is_written_again_reads_the_same() {
        let numbers = b"(I5\nF2.5\nL123456789012345678901234567890L\nI-70000\nVtext\n(dVa\n(lsNI01\nt.";
        let array = b"\x80\x03]cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tC\x01btR(K\x01(K\x02tcnumpy\ndtype\n\
                      (X\x02\0\0\0i2\x89\x88tR(K\x03X\x01\0\0\0>NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89C\x04\0\x01\0\x02tba.";
        for bytes in [&numbers[..], array] {
            let pickle = parse(bytes, &PickleLimits::default()).unwrap();
            let mut writer = PickleWriter::new(1 << 20);
            writer.value(&pickle, pickle.root()).unwrap();
            let written = writer.finish();
            let again = parse(&written, &PickleLimits::default()).unwrap();
            let mut twice = PickleWriter::new(1 << 20);
            twice.value(&again, again.root()).unwrap();
            assert_eq!(twice.finish(), written);
            assert_eq!(again.items(again.root()).map(<[Id]>::len), pickle.items(pickle.root()).map(<[Id]>::len));
        }
    }

    #[test]
    fn whole_numbers_of_every_width_and_sign_come_back() {
        let edges = [0, 1, 8, 16, 31, 32, 62].map(|bits| 1i64 << bits);
        let around = edges.iter().flat_map(|edge| [edge - 1, *edge, edge + 1, 1 - edge, -edge, -edge - 1]);
        for value in around.chain([i64::MIN, i64::MAX]) {
            let mut writer = PickleWriter::new(1 << 10);
            writer.int(value);
            let written = writer.finish();
            let pickle = parse(&written, &PickleLimits::default()).unwrap();
            assert_eq!(pickle.int(pickle.root()), Some(value), "{written:?}");
        }
        // Python's own bytes for them.
        for (value, bytes) in [(-1, &b"J\xff\xff\xff\xff"[..]), (-129, b"J\x7f\xff\xff\xff"), (255, b"K\xff")] {
            let mut writer = PickleWriter::new(1 << 10);
            writer.int(value);
            assert_eq!(writer.finish(), [b"\x80\x03", bytes, b"."].concat(), "{value}");
        }
    }

    #[test]
    fn values_that_hold_themselves_or_grow_without_end_are_refused() {
        let refusal = |bytes: &[u8]| {
            let pickle = parse(bytes, &PickleLimits::default()).unwrap();
            PickleWriter::new(1 << 16).value(&pickle, pickle.root()).unwrap_err().kind()
        };
        assert_eq!(refusal(b"]q\0h\0a."), Kind::Unsupported);
        assert_eq!(refusal(b"cgym.spaces.box\nBox\n."), Kind::Unsupported);
        // Forty lists, each holding the one before it twice.
        let mut laughs = b"]q\0".to_vec();
        for n in 0..40 {
            laughs.extend([b'0', b']', b'q', n + 1, b'(', b'h', n, b'h', n, b'e']);
        }
        laughs.push(b'.');
        assert_eq!(refusal(&laughs), Kind::TooLarge);
    }
}
