//! Bytes at the start of a `.npy` file -> [`Header`]. A reader of one Python dictionary, and of nothing else of Python.

use super::{Header, MAGIC, MAX_AXES, MAX_HEADER, ObjectHeader, data_bytes};
use crate::error::{Error, Kind, Result};
use crate::layout::DType;
use crate::source::{ReadAt, Span, read_span};

/// Bytes that a first read takes: nearly every header fits.
const FIRST: u64 = 4096;

/// Reads as much of the file as the header takes, and parses it.
pub(super) fn read(from: &(impl ReadAt + ?Sized)) -> Result<Header> {
    let len = from.len()?;
    let mut head = Vec::new();
    read_span(from, Span { offset: 0, len: len.min(FIRST) }, FIRST, &mut head)?;
    let Frame { text, .. } = frame(&head)?;
    if text.end > head.len() {
        let whole = (MAX_HEADER + 12) as u64;
        read_span(from, Span { offset: 0, len: len.min(text.end as u64) }, whole, &mut head)?;
    }
    header(&head)
}

/// Where the text of the header lies.
struct Frame {
    text: std::ops::Range<usize>,
    version: u8,
}

fn frame(head: &[u8]) -> Result<Frame> {
    let truncated = || Error::new(Kind::Truncated, "the file ends within the header").at_byte(head.len() as u64);
    let magic = &head[..head.len().min(MAGIC.len())];
    if !MAGIC.starts_with(magic) {
        return Err(Error::new(Kind::Corrupt, "expected the magic of a .npy file (\\x93NUMPY)").at_byte(0));
    }
    let &[major, minor] = head.get(6..8).and_then(|v| v.first_chunk()).ok_or_else(truncated)?;
    let (start, len) = match (major, minor) {
        (1, 0) => {
            let field = head.get(8..10).and_then(|v| v.first_chunk()).ok_or_else(truncated)?;
            (10, u32::from(u16::from_le_bytes(*field)))
        }
        (2 | 3, 0) => {
            let field = head.get(8..12).and_then(|v| v.first_chunk()).ok_or_else(truncated)?;
            (12, u32::from_le_bytes(*field))
        }
        _ => {
            let detail = format!(".npy version {major}.{minor}; known are 1.0, 2.0 and 3.0");
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(6));
        }
    };
    let len = len as usize;
    if len > MAX_HEADER {
        let detail = format!("a header of {len} bytes, the bound is {MAX_HEADER}");
        return Err(Error::new(Kind::TooLarge, detail).at_byte(8));
    }
    Ok(Frame { text: start..start + len, version: major })
}

/// Parses a header that is wholly in `head`, of elements that have a size.
pub(super) fn header(head: &[u8]) -> Result<Header> {
    match parsed(head)? {
        Parsed::Plain(header) => Ok(header),
        Parsed::Objects(_, at) => {
            let detail = "an array of Python objects; expected numbers or records";
            Err(Error::new(Kind::Unsupported, detail).at_byte(at as u64))
        }
    }
}

/// Parses a header that is wholly in `head`.
pub(super) fn parsed(head: &[u8]) -> Result<Parsed> {
    let Frame { text, version } = frame(head)?;
    let start = text.start;
    let data_offset = text.end as u64;
    let Some(bytes) = head.get(text) else {
        let detail = format!("the header ends at byte {data_offset}, the file before it");
        return Err(Error::new(Kind::Truncated, detail).at_byte(head.len() as u64));
    };
    // Versions 1 and 2 are Latin-1: outside ASCII only names of fields can be.
    let latin: String;
    let one_byte = version != 3 && !bytes.is_ascii();
    let text = if version == 3 {
        std::str::from_utf8(bytes)
            .map_err(|e| Error::new(Kind::Corrupt, "expected UTF-8").at_byte(start as u64 + e.valid_up_to() as u64))?
    } else if one_byte {
        latin = bytes.iter().map(|&b| char::from(b)).collect();
        &latin
    } else {
        std::str::from_utf8(bytes).unwrap_or_default()
    };
    // A letter of Latin-1 takes one byte in the file, and two in the text.
    let byte = |at: usize| match one_byte {
        true => text.bytes().take(at).filter(|byte| byte & 0xC0 != 0x80).count(),
        false => at,
    };
    let place = |e: Error| {
        let at = byte(usize::try_from(e.place().offset.unwrap_or(0)).unwrap_or(usize::MAX));
        Error::new(e.kind(), e.detail()).at_byte((start + at) as u64)
    };
    let (elements, fortran_order, shape) = Dictionary { text, at: 0 }.read().map_err(place)?;
    match elements {
        Elements::Plain(dtype) => {
            let data_bytes = data_bytes(&dtype, &shape).map_err(place)?;
            Ok(Parsed::Plain(Header { dtype, fortran_order, shape, data_offset, data_bytes }))
        }
        Elements::Objects(at) => Ok(Parsed::Objects(ObjectHeader { shape, data_offset }, start + byte(at))),
    }
}

/// What elements are: of a fixed size, or Python objects, which follow as a pickle.
enum Elements {
    Plain(DType),
    /// Where in the text they are named.
    Objects(usize),
}

/// A header by what its elements are.
pub(super) enum Parsed {
    Plain(Header),
    /// With the byte at which they are named.
    Objects(ObjectHeader, usize),
}

/// `{'descr': …, 'fortran_order': …, 'shape': …}`, its keys in any order.
struct Dictionary<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Dictionary<'a> {
    fn read(mut self) -> Result<(Elements, bool, Vec<u64>)> {
        let (mut dtype, mut fortran, mut shape) = (None, None, None);
        self.want(b'{')?;
        while !self.accept(b'}') {
            let key_at = self.at;
            let key = self.quoted()?;
            self.want(b':')?;
            self.space();
            let twice = match key {
                "descr" => dtype.replace(self.descr()?).is_some(),
                "fortran_order" => fortran.replace(self.truth()?).is_some(),
                "shape" => shape.replace(self.shape()?).is_some(),
                _ => return Err(self.expected_at(key_at, "one of the keys descr, fortran_order, shape")),
            };
            if twice {
                return Err(self.expected_at(key_at, "each key once"));
            }
            if !self.accept(b',') {
                self.want(b'}')?;
                break;
            }
        }
        self.space();
        if self.at != self.text.len() {
            return Err(self.expected("nothing but spaces after the dictionary"));
        }
        match (dtype, fortran, shape) {
            (Some(dtype), Some(fortran), Some(shape)) => Ok((dtype, fortran, shape)),
            _ => Err(self.expected_at(0, "the keys descr, fortran_order and shape")),
        }
    }

    fn expected_at(&self, at: usize, what: &str) -> Error {
        Error::new(Kind::Corrupt, format!(".npy header: expected {what}")).at_byte(at as u64)
    }

    fn expected(&self, what: &str) -> Error {
        self.expected_at(self.at, what)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn accept(&mut self, mark: u8) -> bool {
        self.space();
        let found = self.peek() == Some(mark);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, mark: u8) -> Result<()> {
        if self.accept(mark) { Ok(()) } else { Err(self.expected(&format!("`{}`", char::from(mark)))) }
    }

    /// The inside of a quoted word, escapes and all.
    fn quoted(&mut self) -> Result<&'a str> {
        self.space();
        let start = self.at;
        self.skip_string()?;
        Ok(&self.text[start + 1..self.at - 1])
    }

    fn skip_string(&mut self) -> Result<()> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.expected("a quoted string"));
        };
        self.at += 1;
        loop {
            match self.peek() {
                Some(c) if c == quote => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => {
                    self.at = self.text.len();
                    return Err(self.expected("the end of the string"));
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    /// A scalar code or a list of fields: its extent is found here, its meaning by the layout.
    fn descr(&mut self) -> Result<Elements> {
        let start = self.at;
        if self.peek() == Some(b'[') {
            let mut open = 0usize;
            loop {
                match self.peek() {
                    Some(b'\'' | b'"') => {
                        self.skip_string()?;
                        continue;
                    }
                    Some(b'[') => open += 1,
                    Some(b']') => open -= 1,
                    Some(_) => {}
                    None => return Err(self.expected("`]`")),
                }
                self.at += 1;
                if open == 0 {
                    break;
                }
            }
        } else {
            self.skip_string()?;
        }
        if matches!(self.text[start..self.at].trim_matches(['\'', '"']), "O" | "|O") {
            return Ok(Elements::Objects(start));
        }
        DType::parse_descr(&self.text[start..self.at]).map(Elements::Plain).map_err(|e| {
            let within = e.place().offset.unwrap_or(0);
            Error::new(e.kind(), e.detail()).at_byte(start as u64 + within)
        })
    }

    fn truth(&mut self) -> Result<bool> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("`True` or `False`"))
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        let mut shape = Vec::new();
        self.want(b'(')?;
        while !self.accept(b')') {
            if shape.len() == MAX_AXES {
                return Err(self.expected(&format!("at most {MAX_AXES} axes")));
            }
            shape.push(self.number()?);
            if !self.accept(b',') {
                self.want(b')')?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<u64> {
        self.space();
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let number = self.text[start..self.at].parse().map_err(|_| self.expected("a whole number of 64 bits"))?;
        // Python 2 wrote long integers with an `L`.
        self.at += usize::from(self.peek() == Some(b'L'));
        Ok(number)
    }
}
