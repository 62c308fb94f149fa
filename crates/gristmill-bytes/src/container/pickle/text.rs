//! Numbers and texts as protocols 0 to 2 spell them -> nodes.
//! Escapes are resolved here and nowhere else; a number of many digits is refused rather than converted slowly.

use std::ops::Range;

use super::value::{Blob, Node};
use crate::error::{Error, Kind, Result};

/// Maximum number of decimal digits of an integer, as CPython has it: the conversion takes quadratic time.
const MAX_DIGITS: usize = 4300;

/// An integer in little-endian two's complement.
pub(super) fn long(input: &[u8], range: Range<usize>) -> Node {
    let mut bytes = &input[range.clone()];
    let negative = bytes.last().is_some_and(|top| top & 0x80 != 0);
    let sign = if negative { 0xff } else { 0 };
    // A writer may put more bytes of the sign than the number needs.
    while let [rest @ .., below, top] = bytes
        && rest.len() >= 7
        && *top == sign
        && (below & 0x80 != 0) == negative
    {
        bytes = &bytes[..bytes.len() - 1];
    }
    if bytes.len() > 8 {
        return Node::BigInt(Blob::Input(range));
    }
    let mut wide = [sign; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Node::Int(i64::from_le_bytes(wide))
}

/// An integer in decimal digits.
pub(super) fn decimal(digits: &[u8]) -> Result<Node> {
    let wrong = || Error::new(Kind::Corrupt, "expected a decimal integer");
    let text = std::str::from_utf8(digits).map_err(|_| wrong())?.trim();
    if let Ok(value) = text.parse() {
        return Ok(Node::Int(value));
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    if digits.len() > MAX_DIGITS {
        return Err(Error::new(
            Kind::TooLarge,
            format!("an integer of {} digits; the bound is {MAX_DIGITS}", digits.len()),
        ));
    }
    let mut magnitude: Vec<u8> = Vec::new();
    for digit in digits.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in &mut magnitude {
            carry += u16::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            magnitude.push(carry as u8);
        }
    }
    magnitude.push(0);
    if negative {
        let mut carry = true;
        for byte in &mut magnitude {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    Ok(Node::BigInt(Blob::Owned(magnitude.into())))
}

/// A text whose characters beyond Latin-1 are `\uXXXX` or `\UXXXXXXXX`, the others bytes.
pub(super) fn raw_unicode(line: &[u8]) -> Result<Box<[u8]>> {
    let mut text = String::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let width = match line[at..] {
            [b'\\', b'u', ..] => 4,
            [b'\\', b'U', ..] => 8,
            _ => {
                text.push(char::from(line[at]));
                at += 1;
                continue;
            }
        };
        let digits = line.get(at + 2..at + 2 + width).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        text.push(code.ok_or_else(|| Error::new(Kind::Unsupported, "an escape that is no character"))?);
        at += 2 + width;
    }
    Ok(text.into_bytes().into())
}

/// A string of Python 2 between quotes: text where it is ASCII, else bytes.
pub(super) fn quoted(line: &[u8]) -> Result<Node> {
    let wrong = || Error::new(Kind::Corrupt, "expected a string between quotes");
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => return Err(wrong()),
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let [escape, after @ ..] = rest else { return Err(wrong()) };
        rest = after;
        bytes.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let digits = std::iter::once(escape).chain(&rest[..more]);
                let value = digits.fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                rest = &rest[more..];
                u8::try_from(value).map_err(|_| wrong())?
            }
            b'x' => {
                let [high, low, after @ ..] = rest else { return Err(wrong()) };
                rest = after;
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
                u8::from_str_radix(digits, 16).map_err(|_| wrong())?
            }
            b'\\' | b'\'' | b'"' => *escape,
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            _ => return Err(wrong()),
        });
    }
    let ascii = bytes.is_ascii();
    let blob = Blob::Owned(bytes.into());
    Ok(if ascii { Node::Text(blob) } else { Node::Bytes(blob) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_size_keep_their_value() {
        assert_eq!(long(&[0xff], 0..1), Node::Int(-1));
        assert_eq!(long(&[], 0..0), Node::Int(0));
        let padded = [&[0u8, 0, 0, 0x80, 0, 0, 0, 0, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0xff]].concat();
        assert_eq!(long(&padded, 0..10), Node::Int(0x8000_0000), "in 10 bytes");
        assert_eq!(long(&padded, 10..20), Node::Int(i64::MIN + 5), "in 10 bytes");
        assert_eq!(long(&padded, 10..18), Node::Int(i64::MIN + 5));
        assert_eq!(long(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0], 0..10), Node::BigInt(Blob::Input(0..10)), "2^63");
        assert_eq!(long(&[9, 0, 0, 0, 0, 0, 0, 0x7f, 0xff], 0..9), Node::BigInt(Blob::Input(0..9)), "below -2^63");
        assert_eq!(decimal(b"-9223372036854775808").unwrap(), Node::Int(i64::MIN));
        let big = |bytes: &[u8]| Node::BigInt(Blob::Owned(bytes.into()));
        assert_eq!(decimal(b"18446744073709551616").unwrap(), big(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0]));
        assert_eq!(decimal(b"-18446744073709551616").unwrap(), big(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]));
        assert_eq!(decimal(&[b'7'; 5000]).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(decimal(b"1x").unwrap_err().kind(), Kind::Corrupt);
    }

    #[test]
    fn escapes_are_resolved_or_refused() {
        assert_eq!(raw_unicode(b"a\\u20ac\xe9").unwrap().as_ref(), "a€é".as_bytes());
        assert!(raw_unicode(b"\\ud800").is_err());
        assert!(raw_unicode(b"\\u12").is_err());
        assert_eq!(quoted(b"'a\\n\\x41'").unwrap(), Node::Text(Blob::Owned((*b"a\nA").into())));
        assert_eq!(quoted(b"\"\\377\\0\"").unwrap(), Node::Bytes(Blob::Owned([255, 0].into())));
        for wrong in [&b"'abc"[..], b"abc", b"'\\x4'", b"'\\q'", b"'\\777'", b"'"] {
            assert_eq!(quoted(wrong).unwrap_err().kind(), Kind::Corrupt, "{wrong:?}");
        }
    }
}
