//! Bytes -> one pickle opcode with its operand, protocols 0 to 5, and how many bytes it took.
//! Never copies an operand: byte strings and texts are ranges of the input. Knows nothing of stacks or values.

use std::ops::Range;

use crate::error::{Error, Kind, Result};

/// Longest line of a text opcode (protocol 0): numbers, names, escaped strings.
const MAX_LINE: usize = 1 << 20;

/// One opcode. Ranges are byte ranges of the input.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    Proto(u8),
    Frame,
    Stop,
    Mark,
    Pop,
    PopMark,
    Dup,
    None,
    Bool(bool),
    Int(i64),
    /// Little-endian two's complement.
    Long(Range<usize>),
    /// Decimal digits with a sign, perhaps.
    Decimal(Range<usize>),
    Float(f64),
    Text(Range<usize>),
    /// Raw-unicode-escape text of protocol 0.
    EscapedText(Range<usize>),
    /// A string of Python 2, its quotes still around it and escapes in it.
    EscapedString(Range<usize>),
    /// A string of Python 2: text where it is ASCII, else bytes.
    String(Range<usize>),
    Bytes(Range<usize>),
    ByteArray(Range<usize>),
    EmptyList,
    EmptyTuple,
    EmptyDict,
    EmptySet,
    List,
    Tuple,
    TupleOf(usize),
    Dict,
    FrozenSet,
    Append,
    Appends,
    SetItem,
    SetItems,
    AddItems,
    Global(Range<usize>, Range<usize>),
    StackGlobal,
    Reduce,
    NewObj,
    NewObjEx,
    Build,
    Put(u64),
    Memoize,
    Get(u64),
}

/// Reads opcodes one after another.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Byte offset of the next opcode.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next opcode.
    ///
    /// Errors, with the byte: `Truncated` where the input ends first, `Unsupported` for persistent ids, extension codes,
    /// out-of-band buffers and instances of protocol 0, `Corrupt` for what is no opcode or no number.
    pub(crate) fn next(&mut self) -> Result<Op> {
        let start = self.at;
        self.read().map_err(|e| e.at_byte(start as u64))
    }

    fn read(&mut self) -> Result<Op> {
        Ok(match self.byte()? {
            0x80 => Op::Proto(self.byte()?),
            0x95 => {
                let len = self.u64()?;
                if len > (self.bytes.len() - self.at) as u64 {
                    return Err(truncated(format!("a frame of {len} bytes")));
                }
                Op::Frame
            }
            b'.' => Op::Stop,
            b'(' => Op::Mark,
            b'0' => Op::Pop,
            b'1' => Op::PopMark,
            b'2' => Op::Dup,
            b'N' => Op::None,
            0x88 => Op::Bool(true),
            0x89 => Op::Bool(false),
            b'I' => self.int_line()?,
            b'K' => Op::Int(i64::from(self.byte()?)),
            b'M' => Op::Int(i64::from(u16::from_le_bytes(self.array()?))),
            b'J' => Op::Int(i64::from(i32::from_le_bytes(self.array()?))),
            b'L' => {
                let line = self.line()?;
                let long = self.bytes[line.clone()].last() == Some(&b'L');
                Op::Decimal(line.start..line.end - usize::from(long))
            }
            0x8a => {
                let len = usize::from(self.byte()?);
                Op::Long(self.take(len)?)
            }
            0x8b => Op::Long(self.sized(4)?),
            b'F' => {
                let line = self.line()?;
                let text = std::str::from_utf8(&self.bytes[line]).ok().and_then(|text| text.parse().ok());
                Op::Float(text.ok_or_else(|| Error::new(Kind::Corrupt, "expected a decimal number"))?)
            }
            b'G' => Op::Float(f64::from_be_bytes(self.array()?)),
            b'V' => Op::EscapedText(self.line()?),
            b'X' => Op::Text(self.sized(4)?),
            0x8c => Op::Text(self.sized(1)?),
            0x8d => Op::Text(self.sized(8)?),
            b'S' => Op::EscapedString(self.line()?),
            b'T' => Op::String(self.sized(4)?),
            b'U' => Op::String(self.sized(1)?),
            b'B' => Op::Bytes(self.sized(4)?),
            b'C' => Op::Bytes(self.sized(1)?),
            0x8e => Op::Bytes(self.sized(8)?),
            0x96 => Op::ByteArray(self.sized(8)?),
            b']' => Op::EmptyList,
            b')' => Op::EmptyTuple,
            b'}' => Op::EmptyDict,
            0x8f => Op::EmptySet,
            b'l' => Op::List,
            b't' => Op::Tuple,
            0x85 => Op::TupleOf(1),
            0x86 => Op::TupleOf(2),
            0x87 => Op::TupleOf(3),
            b'd' => Op::Dict,
            0x91 => Op::FrozenSet,
            b'a' => Op::Append,
            b'e' => Op::Appends,
            b's' => Op::SetItem,
            b'u' => Op::SetItems,
            0x90 => Op::AddItems,
            b'c' => Op::Global(self.line()?, self.line()?),
            0x93 => Op::StackGlobal,
            b'R' => Op::Reduce,
            0x81 => Op::NewObj,
            0x92 => Op::NewObjEx,
            b'b' => Op::Build,
            b'p' => Op::Put(self.index_line()?),
            b'q' => Op::Put(u64::from(self.byte()?)),
            b'r' => Op::Put(u64::from(u32::from_le_bytes(self.array()?))),
            0x94 => Op::Memoize,
            b'g' => Op::Get(self.index_line()?),
            b'h' => Op::Get(u64::from(self.byte()?)),
            b'j' => Op::Get(u64::from(u32::from_le_bytes(self.array()?))),
            b'P' | b'Q' => return Err(unsupported("a persistent id: it stands for something outside the file")),
            0x82..=0x84 => return Err(unsupported("an extension code: it stands for a registered class")),
            0x97 | 0x98 => return Err(unsupported("an out-of-band buffer: its bytes are not in the file")),
            b'i' | b'o' => return Err(unsupported("an instance of an old-style class")),
            other => return Err(Error::new(Kind::Corrupt, format!("0x{other:02x} is no pickle opcode"))),
        })
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let found = self.bytes[self.at..].first_chunk();
        let array = *found.ok_or_else(|| truncated(format!("{N} more bytes")))?;
        self.at += N;
        Ok(array)
    }

    /// `len` bytes that follow.
    fn take(&mut self, len: usize) -> Result<Range<usize>> {
        if len > self.bytes.len() - self.at {
            return Err(truncated(format!("{len} more bytes")));
        }
        let range = self.at..self.at + len;
        self.at = range.end;
        Ok(range)
    }

    /// Bytes whose length stands before them in `width` bytes, little-endian.
    fn sized(&mut self, width: usize) -> Result<Range<usize>> {
        let mut len = [0; 8];
        let field = self.take(width)?;
        len[..width].copy_from_slice(&self.bytes[field]);
        let len = u64::from_le_bytes(len);
        self.take(usize::try_from(len).map_err(|_| truncated(format!("{len} more bytes")))?)
    }

    /// A line without its end.
    fn line(&mut self) -> Result<Range<usize>> {
        let rest = &self.bytes[self.at..];
        let within = &rest[..rest.len().min(MAX_LINE)];
        let len = within.iter().position(|&b| b == b'\n').ok_or_else(|| match within.len() {
            MAX_LINE => Error::new(Kind::TooLarge, format!("a line of more than {MAX_LINE} bytes")),
            _ => truncated("the end of a line".into()),
        })?;
        let range = self.at..self.at + len;
        self.at += len + 1;
        Ok(range)
    }

    fn int_line(&mut self) -> Result<Op> {
        let line = self.line()?;
        Ok(match &self.bytes[line.clone()] {
            b"00" => Op::Bool(false),
            b"01" => Op::Bool(true),
            _ => Op::Decimal(line),
        })
    }

    fn index_line(&mut self) -> Result<u64> {
        let line = self.line()?;
        let index = std::str::from_utf8(&self.bytes[line]).ok().and_then(|text| text.parse().ok());
        index.ok_or_else(|| Error::new(Kind::Corrupt, "expected the number of a memo entry"))
    }
}

fn truncated(what: String) -> Error {
    Error::new(Kind::Truncated, format!("the pickle ends inside an opcode; expected {what}"))
}

fn unsupported(what: &str) -> Error {
    Error::new(Kind::Unsupported, format!("{what}; only plain data can be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(bytes: &[u8]) -> Result<Vec<Op>> {
        let mut reader = Reader::new(bytes);
        let mut ops = Vec::new();
        while reader.at() < bytes.len() {
            ops.push(reader.next()?);
        }
        Ok(ops)
    }

    #[test]
    fn operands_are_ranges_of_the_input() {
        let found = ops(b"\x80\x04\x8c\x02abB\x03\0\0\0xyzK\x07J\xff\xff\xff\xffI01\nL-12L\nF1.5\n.").unwrap();
        let expected = [
            Op::Proto(4),
            Op::Text(4..6),
            Op::Bytes(11..14),
            Op::Int(7),
            Op::Int(-1),
            Op::Bool(true),
            Op::Decimal(26..29),
            Op::Float(1.5),
            Op::Stop,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_cut_inside_an_operand_is_truncation_at_its_opcode() {
        for whole in [
            &b"X\x04\0\0\0abcd"[..],
            b"\x8e\x02\0\0\0\0\0\0\0ab",
            b"cnumpy\ndtype\n",
            b"G01234567",
            b"\x95\x01\0\0\0\0\0\0\0N",
        ] {
            for cut in 1..whole.len() {
                let e = Reader::new(&whole[..cut]).next().unwrap_err();
                assert_eq!((e.kind(), e.place().offset), (Kind::Truncated, Some(0)), "{whole:?} at {cut}");
            }
        }
        let e = Reader::new(b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff").next().unwrap_err();
        assert_eq!(e.kind(), Kind::Truncated);
    }

    #[test]
    fn references_to_things_outside_the_file_are_refused() {
        for bytes in [&b"P1\n"[..], b"Q", b"\x82\x01", b"\x97", b"i", b"o"] {
            assert_eq!(ops(bytes).unwrap_err().kind(), Kind::Unsupported);
        }
        assert_eq!(ops(b"\xff").unwrap_err().kind(), Kind::Corrupt);
    }
}
