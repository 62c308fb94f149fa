//! A pickled array or NumPy scalar, or a `.npy` -> what stands around its bytes: another that differs in those bytes alone holds the
//! same type and shape over other bytes, and is read by comparing. Frames that follow each other are pickled alike.

use std::ops::Range;

use super::ndarray::Data;
use super::value::{Blob, Id, Node, Object, Pickle};

/// What is around the bytes of one pickled array or scalar.
///
/// The machine never looks into a byte string that only the array refers to, so what it would make of a pickle that
/// [`Pattern::fits`] follows from the pickle that the pattern was made of (compared by `pickle_patterns` and by fuzzing).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    before: Box<[u8]>,
    after: Box<[u8]>,
    len: usize,
}

impl Pattern {
    /// The pattern of a pickle whose value is an array or scalar over bytes of the input.
    ///
    /// `None` where its bytes are not those of a byte string, or where anything else refers to them.
    pub fn of(pickle: &Pickle<'_>) -> Option<Pattern> {
        let blob = match pickle.node(pickle.root()) {
            Node::Array(array) => match &array.data {
                Data::Raw(blob) => blob,
                Data::Objects(_) => return None,
            },
            Node::Scalar(_, blob) => blob,
            _ => return None,
        };
        let Blob::Input(range) = blob else { return None };
        let (before, rest) = pickle.input().split_at_checked(range.start)?;
        let (own, after) = rest.split_at_checked(range.len())?;
        let same = |node: &Node| matches!(node, Node::Bytes(b) | Node::ByteArray(b) if b == blob);
        let mut strings = pickle.ids().filter(|id| same(pickle.node(*id)));
        let (string, None) = (strings.next()?, strings.next()) else { return None };
        let alone = references(pickle, string) == 1 && own.len() == range.len();
        (alone && is_byte_string(before, range)).then(|| Pattern {
            before: before.into(),
            after: after.into(),
            len: own.len(),
        })
    }

    /// The pattern of a file whose first bytes alone say the type and shape of the array `own` that lies behind them in `whole`: a
    /// `.npy`. `None` for an array that lies elsewhere.
    pub fn around(whole: &[u8], own: &[u8]) -> Option<Pattern> {
        let start = own.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let (before, rest) = whole.split_at_checked(start)?;
        let (_, after) = rest.split_at_checked(own.len())?;
        Some(Pattern { before: before.into(), after: after.into(), len: own.len() })
    }

    /// The bytes of the array in another pickle of this pattern.
    #[inline]
    pub fn fits<'b>(&self, pickle: &'b [u8]) -> Option<&'b [u8]> {
        let (before, rest) = pickle.split_at_checked(self.before.len())?;
        let (own, after) = rest.split_at_checked(self.len)?;
        (*after == *self.after && *before == *self.before).then_some(own)
    }
}

/// Whether the bytes before `range` announce a byte string of its length, whose contents mean nothing to the machine. (The
/// strings of Python 2 are text where they are ASCII; text must be UTF-8.)
fn is_byte_string(before: &[u8], range: &Range<usize>) -> bool {
    let len = range.len() as u64;
    let announced = |opcodes: &[u8], width: usize| {
        let Some(at) = before.len().checked_sub(width + 1) else { return false };
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(&before[at + 1..]);
        opcodes.contains(&before[at]) && u64::from_le_bytes(wide) == len
    };
    announced(b"C", 1) || announced(b"B", 4) || announced(&[0x8e, 0x96], 8)
}

/// How often the values of a pickle refer to one of them.
fn references(pickle: &Pickle<'_>, id: Id) -> usize {
    let among = |ids: &[Id]| ids.iter().filter(|other| **other == id).count();
    let of = |node: &Node| match node {
        Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) | Node::Deque(items) => {
            among(items)
        }
        Node::Dict(_, pairs) => pairs.iter().map(|(key, value)| among(&[*key, *value])).sum(),
        Node::Array(array) => match &array.data {
            Data::Objects(items) => among(items),
            Data::Raw(_) => 0,
        },
        Node::Object(Object { args, state, .. }) => among(args) + state.map_or(0, |state| among(&[state])),
        _ => 0,
    };
    pickle.ids().map(|id| of(pickle.node(id))).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{PickleLimits, parse};
    use super::*;

    fn pattern(bytes: &[u8]) -> Option<Pattern> {
        Pattern::of(&parse(bytes, &PickleLimits::default()).unwrap())
    }

    /// A scalar of two bytes, as NumPy pickles it.
    fn scalar(spelled: &[u8]) -> Vec<u8> {
        let dtype =
            b"cnumpy\ndtype\n(X\x02\0\0\0u2\x89\x88tR(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb";
        [b"\x80\x03cnumpy.core.multiarray\nscalar\n(", &dtype[..], spelled, b"tR."].concat()
    }

    #[test]
    fn other_bytes_fit_and_everything_else_does_not() {
        let (one, two) = (scalar(b"C\x02ab"), scalar(b"C\x02\xff\0"));
        let found = pattern(&one).unwrap();
        assert_eq!((found.fits(&one), found.fits(&two)), (Some(&b"ab"[..]), Some(&b"\xff\0"[..])));
        assert_eq!(found, pattern(&two).unwrap());
        let own = one.windows(2).position(|pair| pair == b"ab").unwrap();
        for at in (0..one.len()).filter(|at| !(own..own + 2).contains(at)) {
            let mut other = one.clone();
            other[at] ^= 1;
            assert_eq!(found.fits(&other), None, "byte {at}");
        }
        assert_eq!((found.fits(&one[1..]), found.fits(&one[..one.len() - 1]), found.fits(b"")), (None, None, None));
        assert_eq!(found.fits(&[&one[..], b"."].concat()), None);
    }

    #[test]
    fn bytes_that_mean_something_give_no_pattern() {
        // A string of Python 2 is text where it is ASCII, and text must be UTF-8.
        assert!(pattern(&scalar(b"U\x02ab")).is_none());
        assert!(pattern(&scalar(b"X\x02\0\0\0ab")).is_none());
        // Bytes that a second value holds.
        let shared = [b"\x80\x03C\x02abq\x000", &scalar(b"h\0")[2..]].concat();
        assert!(pattern(&shared).is_some());
        let twice = [b"\x80\x03C\x02abq\x00\x85q\x010", &scalar(b"h\0")[2..]].concat();
        assert!(pattern(&twice).is_none());
        for other in [&b"K\x07."[..], b"C\x02ab.", b"]."] {
            assert!(pattern(other).is_none());
        }
    }
}
