//! The states of NumPy's dtypes and arrays -> element types and checked arrays over bytes that are not copied.
//! A shape, size or type that does not fit its bytes is refused; nothing is allocated for what a state merely claims.

use std::borrow::Cow;

use super::value::{Blob, Id, Pickle};
use crate::error::{Error, Kind, Result};
use crate::layout::{DType, Field, Layout, Order, Scalar, c_order};

/// Maximum number of axes of an array, as in NumPy.
const MAX_AXES: usize = 64;

/// Deepest nesting of records within records, as in the header of a `.npy` file.
const MAX_DEPTH: usize = 16;

/// The element type of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A number, string or opaque bytes, in a byte order.
    Scalar(Scalar, Order),
    /// A structured record.
    Record(Layout),
    /// A date or time span of eight bytes: its code, such as `M8[ns]`.
    Time(String, Order),
    /// A fixed block of elements: only within records.
    Block(Box<Element>, Vec<usize>),
    /// Python objects.
    Object,
}

impl Element {
    /// The type of a NumPy code such as `f4`, `U2`, `V12` or `O8`, little-endian.
    pub(super) fn from_code(code: &str) -> Option<Element> {
        let plain = code.trim_start_matches(['<', '|', '=']);
        let (plain, order) = match code.strip_prefix('>') {
            Some(rest) => (rest, Order::Big),
            None => (plain, Order::Little),
        };
        match plain {
            "O" | "O8" | "O4" => Some(Element::Object),
            "?" => Some(Element::Scalar(Scalar::Bool, Order::Little)),
            "M8" | "m8" => Some(Element::Time(plain.to_owned(), order)),
            _ => Scalar::from_code(plain).map(|scalar| Element::Scalar(scalar, order)),
        }
    }

    /// Bytes of one element; 0 for Python objects, which have none here.
    pub fn size(&self) -> usize {
        match self {
            Element::Scalar(scalar, _) => scalar.size(),
            Element::Record(layout) => layout.size(),
            Element::Time(..) => 8,
            Element::Block(element, shape) => shape.iter().fold(element.size(), |n, dim| n.saturating_mul(*dim)),
            Element::Object => 0,
        }
    }

    /// Bytes that a copy of the type itself takes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Element::Scalar(..) | Element::Object => 0,
            Element::Time(code, _) => code.len(),
            Element::Block(element, shape) => size_of::<Element>() + element.weight() + size_of_val(shape.as_slice()),
            Element::Record(layout) => weight_of(layout),
        }
    }

    /// Levels of records within each other.
    fn depth(&self) -> usize {
        match self {
            Element::Record(layout) => depth_of(layout),
            Element::Block(element, _) => element.depth(),
            Element::Scalar(..) | Element::Time(..) | Element::Object => 0,
        }
    }

    /// The scalar, where it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Element::Scalar(scalar, _) => Some(*scalar),
            _ => None,
        }
    }

    /// NumPy's text for it: a type string, or the list of a record's fields.
    pub fn descr(&self) -> String {
        match self {
            Element::Scalar(scalar, order) => scalar.type_str(*order),
            Element::Record(layout) => layout.to_descr(),
            Element::Time(code, Order::Little) => format!("<{code}"),
            Element::Time(code, Order::Big) => format!(">{code}"),
            Element::Block(element, shape) => format!("({}, {shape:?})", element.descr()),
            Element::Object => "|O".to_owned(),
        }
    }

    /// The value of one integer or boolean element.
    pub(super) fn int(&self, bytes: &[u8]) -> Option<i64> {
        let Element::Scalar(scalar, order) = self else { return None };
        let mut wide = [0u8; 8];
        let size = scalar.size();
        wide.get_mut(..size)?.copy_from_slice(bytes.get(..size)?);
        if *order == Order::Big {
            wide[..size].reverse();
        }
        let raw = u64::from_le_bytes(wide);
        let shift = 64 - 8 * size as u32;
        match scalar {
            Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 => i64::try_from(raw).ok(),
            Scalar::U64 => i64::try_from(raw).ok(),
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Some(((raw << shift) as i64) >> shift),
            _ => None,
        }
    }

    fn with_order(self, order: Order) -> Element {
        match self {
            Element::Scalar(scalar, _) if scalar.swap_unit() > 1 => Element::Scalar(scalar, order),
            Element::Time(code, _) => Element::Time(code, order),
            other => other,
        }
    }
}

/// What an array holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Elements back to back.
    Raw(Blob),
    /// Python objects in C order.
    Objects(Vec<Id>),
}

/// An array whose data has the size that shape and element say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Element type.
    pub element: Element,
    /// Shape; `[]` for a single element.
    pub shape: Vec<usize>,
    /// Whether the first axis varies fastest (Fortran order).
    pub fortran: bool,
    /// The elements.
    pub data: Data,
}

impl Array {
    /// Checks an array's parts against each other; `stored` is how many bytes (or objects) there are.
    ///
    /// Errors: `WrongSize` where they do not fit, `Unsupported` for more axes than NumPy has.
    pub fn new(element: Element, shape: Vec<usize>, fortran: bool, data: Data, stored: usize) -> Result<Array> {
        if shape.len() > MAX_AXES {
            return Err(Error::new(
                Kind::Unsupported,
                format!("an array of {} axes; NumPy has {MAX_AXES}", shape.len()),
            ));
        }
        let unit = if element == Element::Object { 1 } else { element.size() };
        let count = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim));
        if count.and_then(|count| count.checked_mul(unit)) != Some(stored) {
            let what = if element == Element::Object { "objects" } else { "bytes" };
            let descr = element.descr();
            return Err(Error::new(
                Kind::WrongSize,
                format!("an array of shape {shape:?} and type {descr} over {stored} {what}"),
            ));
        }
        Ok(Array { element, shape, fortran, data })
    }

    /// How many elements there are.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements in C order: borrowed unless the array is in Fortran order. `None` for Python objects.
    pub fn c_order<'b>(&'b self, pickle: &'b Pickle<'_>) -> Option<Cow<'b, [u8]>> {
        let Data::Raw(blob) = &self.data else { return None };
        let bytes = pickle.bytes(blob);
        if !self.fortran || self.shape.len() < 2 {
            return Some(Cow::Borrowed(bytes));
        }
        Some(Cow::Owned(c_order(bytes, self.element.size(), &self.shape)))
    }
}

/// The parts of a dtype's state, already plain.
#[derive(Debug)]
pub(super) struct DTypeState<'a> {
    pub(super) order: &'a str,
    pub(super) block: Option<(Element, Vec<usize>)>,
    /// Name, type, byte offset.
    pub(super) fields: Vec<(String, Element, usize)>,
    pub(super) size: i64,
    /// The unit of a date, such as `ns`, and how many of them.
    pub(super) unit: Option<(String, i64)>,
}

impl DTypeState<'_> {
    /// The dtype `base` with this state.
    ///
    /// Errors: `Unsupported` for overlapping fields, objects within records and units that are none; `WrongSize` where
    /// the size is not the one of its parts.
    pub(super) fn apply(self, base: Element) -> Result<Element> {
        let order = match self.order {
            "<" | "|" | "=" => Order::Little,
            ">" => Order::Big,
            other => return Err(Error::new(Kind::Corrupt, format!("`{other}` is no byte order"))),
        };
        if let Some((element, shape)) = self.block {
            let held = shape.iter().try_fold(element.size(), |n, dim| n.checked_mul(*dim));
            let fits = held.is_some_and(|held| i32::try_from(held).is_ok()) && shape.len() <= MAX_AXES;
            if !fits || matches!(element, Element::Block(..)) {
                let detail = format!("blocks of shape {shape:?} of {}, which NumPy does not have", element.descr());
                return Err(Error::new(Kind::Unsupported, detail));
            }
            return Ok(Element::Block(Box::new(element), shape));
        }
        if !self.fields.is_empty() {
            if self.fields.iter().any(|(_, element, _)| element.depth() >= MAX_DEPTH) {
                let detail = format!("records nested deeper than {MAX_DEPTH}");
                return Err(Error::new(Kind::Unsupported, detail));
            }
            let size = usize::try_from(self.size).unwrap_or(0);
            let fields = self.fields.into_iter().map(field).collect::<Result<Vec<_>>>()?;
            return Ok(Element::Record(Layout::new(fields, size)?));
        }
        if let Element::Time(code, _) = base {
            let (unit, step) = self.unit.unwrap_or_default();
            let known = ["", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic"];
            if !known.contains(&unit.as_str()) {
                return Err(Error::new(Kind::Unsupported, format!("`{unit}` is no unit of time")));
            }
            let code = match (unit.as_str(), step) {
                ("" | "generic", _) => code,
                (unit, 0 | 1) => format!("{code}[{unit}]"),
                (unit, step) => format!("{code}[{step}{unit}]"),
            };
            return Ok(Element::Time(code, order));
        }
        Ok(base.with_order(order))
    }
}

fn weight_of(layout: &Layout) -> usize {
    let field = |field: &Field| {
        let within = if let DType::Record(layout) = &field.dtype { weight_of(layout) } else { 0 };
        size_of::<Field>() + field.name.len() + size_of_val(field.shape.as_slice()) + within
    };
    layout.fields().iter().map(field).sum()
}

fn depth_of(layout: &Layout) -> usize {
    let within = layout.fields().iter().map(|field| match &field.dtype {
        DType::Record(layout) => depth_of(layout),
        DType::Scalar(..) => 0,
    });
    1 + within.max().unwrap_or(0)
}

fn field((name, element, offset): (String, Element, usize)) -> Result<Field> {
    let (element, shape) = match element {
        Element::Block(element, shape) => (*element, shape),
        other => (other, Vec::new()),
    };
    let dtype = match element {
        Element::Scalar(scalar, order) => DType::Scalar(scalar, order),
        Element::Record(layout) => DType::Record(layout),
        other => {
            let detail = format!("field `{name}` of type {}: not supported within records", other.descr());
            return Err(Error::new(Kind::Unsupported, detail));
        }
    };
    Ok(Field { name, dtype, shape, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_and_order_are_read() {
        let element = |code| Element::from_code(code).unwrap();
        assert_eq!(element("i2").int(&[0xfe, 0xff]), Some(-2));
        assert_eq!(element(">i4").int(&[0, 0, 1, 0]), Some(256));
        assert_eq!(element("u8").int(&[255; 8]), None);
        assert_eq!(element("b1").int(&[1]), Some(1));
        assert_eq!(element("f4").int(&[0; 4]), None);
        assert_eq!(element("i8").int(&[0; 4]), None);
    }

    #[test]
    fn shapes_must_fit_their_bytes() {
        let raw = |shape: &[usize], stored| {
            let element = Element::from_code("i4").unwrap();
            Array::new(element, shape.to_vec(), false, Data::Raw(Blob::Input(0..stored)), stored)
        };
        assert!(raw(&[2, 3], 24).is_ok());
        assert!(raw(&[], 4).is_ok());
        for (shape, stored) in [(&[2, 3][..], 20), (&[usize::MAX, 8], 0), (&[1 << 63, 2], 0), (&[1; 65], 4)] {
            assert!(raw(shape, stored).is_err(), "{shape:?}");
        }
        let nothing = Element::from_code("S0").unwrap();
        let empty =
            |shape: &[usize]| Array::new(nothing.clone(), shape.to_vec(), true, Data::Raw(Blob::Input(0..0)), 0);
        assert!(empty(&[1 << 62, 1]).is_ok());
        assert!(empty(&[1 << 63, 2]).is_err());
    }

    #[test]
    fn fortran_order_is_turned() {
        let input: Vec<u8> = (0..6).collect();
        let pickle = Pickle { input: &input, nodes: Vec::new(), root: Id(0) };
        let element = Element::from_code("u1").unwrap();
        let array = Array::new(element, vec![2, 3], true, Data::Raw(Blob::Input(0..6)), 6).unwrap();
        assert_eq!(array.c_order(&pickle).unwrap().as_ref(), [0, 2, 4, 1, 3, 5]);
    }
}
