//! The scalar element types that NumPy and gristmill share, with their sizes and NumPy codes.
//! Knows nothing of fields or records.

/// Byte order of a stored scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Least significant byte first; also used for one-byte types, where order means nothing.
    Little,
    /// Most significant byte first: accepted on read, never written.
    Big,
}

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// One byte, 0 or 1.
    Bool,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE-754 binary16.
    F16,
    /// The upper half of a binary32, as tensors may be; NumPy has no type of its own for it, so that no field is of it.
    Bf16,
    /// IEEE-754 binary32.
    F32,
    /// IEEE-754 binary64.
    F64,
    /// Two binary32: real, imaginary.
    C64,
    /// Two binary64: real, imaginary.
    C128,
    /// A zero-padded byte string of this many bytes (NumPy `S`).
    Bytes(usize),
    /// A zero-padded UTF-32 string of this many code points (NumPy `U`).
    Text(usize),
    /// This many opaque bytes (NumPy `V`).
    Void(usize),
}

impl Scalar {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 | Scalar::C64 => 8,
            Scalar::C128 => 16,
            Scalar::Bytes(n) | Scalar::Void(n) => n,
            Scalar::Text(n) => n.saturating_mul(4),
        }
    }

    /// Bytes that are swapped as one unit when byte order changes; 1 where order means nothing.
    pub fn swap_unit(self) -> usize {
        match self {
            Scalar::C64 | Scalar::Text(_) => 4,
            Scalar::C128 => 8,
            Scalar::Bytes(_) | Scalar::Void(_) => 1,
            plain => plain.size(),
        }
    }

    /// The alignment C gives it.
    pub(crate) fn align(self) -> usize {
        self.swap_unit()
    }

    /// NumPy's code without byte order, such as `f4`, `u8` or `S12`; `V2` of bfloat16, as `ml_dtypes` writes it.
    pub fn code(self) -> String {
        let (kind, n) = match self {
            Scalar::Bool => ('b', 1),
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => ('i', self.size()),
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => ('u', self.size()),
            Scalar::F16 | Scalar::F32 | Scalar::F64 => ('f', self.size()),
            Scalar::C64 | Scalar::C128 => ('c', self.size()),
            Scalar::Bytes(n) => ('S', n),
            Scalar::Text(n) => ('U', n),
            Scalar::Bf16 => ('V', 2),
            Scalar::Void(n) => ('V', n),
        };
        format!("{kind}{n}")
    }

    /// The scalar of a NumPy code without byte order; `None` for object and unknown types.
    pub fn from_code(code: &str) -> Option<Self> {
        let mut chars = code.chars();
        let kind = chars.next()?;
        let n: usize = chars.as_str().parse().ok()?;
        Some(match (kind, n) {
            ('b', 1) => Scalar::Bool,
            ('i', 1) => Scalar::I8,
            ('i', 2) => Scalar::I16,
            ('i', 4) => Scalar::I32,
            ('i', 8) => Scalar::I64,
            ('u', 1) => Scalar::U8,
            ('u', 2) => Scalar::U16,
            ('u', 4) => Scalar::U32,
            ('u', 8) => Scalar::U64,
            ('f', 2) => Scalar::F16,
            ('f', 4) => Scalar::F32,
            ('f', 8) => Scalar::F64,
            ('c', 8) => Scalar::C64,
            ('c', 16) => Scalar::C128,
            ('S', n) => Scalar::Bytes(n),
            ('U', n) => Scalar::Text(n),
            ('V', n) => Scalar::Void(n),
            _ => return None,
        })
    }

    /// The value of one little-endian element as a number; exact up to 2^53. `None` for strings, bytes and complex numbers.
    pub fn number(self, bytes: &[u8]) -> Option<f64> {
        let int = |signed: bool| {
            let mut wide = [if signed && bytes.last()? & 0x80 != 0 { 0xff } else { 0 }; 8];
            wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(wide)
        };
        if bytes.len() != self.size() {
            return None;
        }
        match self {
            Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
                int(false).map(|wide| u64::from_le_bytes(wide) as f64)
            }
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                int(true).map(|wide| i64::from_le_bytes(wide) as f64)
            }
            Scalar::F16 => bytes.first_chunk().map(|b| half::f16::from_le_bytes(*b).to_f64()),
            Scalar::Bf16 => bytes.first_chunk().map(|b| half::bf16::from_le_bytes(*b).to_f64()),
            Scalar::F32 => bytes.first_chunk().map(|b| f64::from(f32::from_le_bytes(*b))),
            Scalar::F64 => bytes.first_chunk().map(|b| f64::from_le_bytes(*b)),
            Scalar::C64 | Scalar::C128 | Scalar::Bytes(_) | Scalar::Text(_) | Scalar::Void(_) => None,
        }
    }

    /// NumPy's full type string in little-endian order, such as `<f4` or `|u1`.
    pub fn type_str(self, order: Order) -> String {
        let mark = match (self.swap_unit(), order) {
            (1, _) => '|',
            (_, Order::Little) => '<',
            (_, Order::Big) => '>',
        };
        format!("{mark}{}", self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_numbers_of_their_type() {
        assert_eq!(Scalar::I16.number(&(-2i16).to_le_bytes()), Some(-2.0));
        assert_eq!(Scalar::U16.number(&65534u16.to_le_bytes()), Some(65534.0));
        assert_eq!(Scalar::F16.number(&[0, 0x3e]), Some(1.5));
        assert_eq!(Scalar::Bf16.number(&[0xc0, 0x3f]), Some(1.5));
        assert_eq!(Scalar::Bf16.type_str(Order::Little), "<V2");
        assert_eq!(Scalar::F64.number(&f64::INFINITY.to_le_bytes()), Some(f64::INFINITY));
        assert_eq!(Scalar::Bool.number(&[1]), Some(1.0));
        assert_eq!((Scalar::I64.number(&[0; 4]), Scalar::Text(1).number(&[0; 4])), (None, None));
    }
}
