//! A layout <-> the text NumPy calls `descr`: `[('planes', '<u8', (104,)), ('', '|V3')]`.
//! The same text stands in `.npy` headers. Parsing is bounded in depth and never evaluates anything.

use super::{DType, Field, Layout, Order, Scalar};
use crate::error::{Error, Kind, Result};

/// Deepest nesting of records within records.
const MAX_DEPTH: usize = 16;

impl DType {
    /// Parses a `descr` as it stands in a `.npy` header: a quoted scalar code such as `'<f4'`, or a list of fields.
    ///
    /// Errors: as [`Layout::parse_descr`].
    pub fn parse_descr(text: &str) -> Result<Self> {
        if text.trim_start().starts_with('[') {
            return Ok(DType::Record(Layout::parse_descr(text)?));
        }
        let mut parser = Parser { text: text.as_bytes(), at: 0 };
        let code = parser.string()?;
        parser.space();
        if parser.at != text.len() {
            return Err(parser.expected("the end"));
        }
        scalar(&code).ok_or_else(|| Error::new(Kind::Unsupported, format!("dtype `{code}`")).at_byte(0))
    }

    /// The `descr` as NumPy writes it: a quoted scalar code, or a list of fields.
    pub fn to_descr(&self) -> String {
        match self {
            DType::Scalar(scalar, order) => format!("'{}'", scalar.type_str(*order)),
            DType::Record(layout) => layout.to_descr(),
        }
    }
}

impl Layout {
    /// NumPy's `descr` of this layout; padding is written as `('', '|V<n>')`.
    pub fn to_descr(&self) -> String {
        let mut out = String::new();
        self.write_descr(&mut out);
        out
    }

    fn write_descr(&self, out: &mut String) {
        use std::fmt::Write;
        let pad = |out: &mut String, gap: usize| {
            if gap > 0 {
                let _ = write!(out, "('', '|V{gap}'), ");
            }
        };
        out.push('[');
        let mut end = 0;
        for field in self.fields() {
            pad(out, field.offset - end);
            let _ = write!(out, "({}, ", quote(&field.name));
            match &field.dtype {
                DType::Scalar(scalar, order) => {
                    let _ = write!(out, "'{}'", scalar.type_str(*order));
                }
                DType::Record(layout) => layout.write_descr(out),
            }
            if !field.shape.is_empty() {
                out.push_str(", (");
                for dim in &field.shape {
                    let _ = write!(out, "{dim}, ");
                }
                out.truncate(out.len() - if field.shape.len() > 1 { 2 } else { 1 });
                out.push(')');
            }
            out.push_str("), ");
            end = field.offset + field.bytes();
        }
        pad(out, self.size() - end);
        if out.ends_with(", ") {
            out.truncate(out.len() - 2);
        }
        out.push(']');
    }

    /// Parses a `descr`; unnamed void fields are padding.
    ///
    /// Errors: `Corrupt` with the byte of the text where it stops making sense, `Unsupported` for
    /// object and unknown types, and all that [`Layout::new`] refuses.
    pub fn parse_descr(text: &str) -> Result<Self> {
        let mut parser = Parser { text: text.as_bytes(), at: 0 };
        let layout = parser.layout(0)?;
        parser.space();
        if parser.at != text.len() {
            return Err(parser.expected("the end"));
        }
        Ok(layout)
    }
}

/// Writes a Python string literal that `ast.literal_eval` and [`Parser`] read back.
fn quote(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn expected(&self, what: &str) -> Error {
        Error::new(Kind::Corrupt, format!("dtype description: expected {what}")).at_byte(self.at as u64)
    }

    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn accept(&mut self, mark: u8) -> bool {
        self.space();
        let found = self.text.get(self.at) == Some(&mark);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, mark: u8, what: &str) -> Result<()> {
        if self.accept(mark) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn layout(&mut self, depth: usize) -> Result<Layout> {
        if depth > MAX_DEPTH {
            return Err(self.expected("records nested less deeply"));
        }
        self.want(b'[', "`[`")?;
        let mut fields = Vec::new();
        let mut offset = 0usize;
        while !self.accept(b']') {
            self.want(b'(', "`(` before a field")?;
            let name = self.string()?;
            self.want(b',', "`,` after the field name")?;
            self.space();
            let dtype = if self.text.get(self.at) == Some(&b'[') {
                DType::Record(self.layout(depth + 1)?)
            } else {
                let code = self.string()?;
                scalar(&code).ok_or_else(|| {
                    Error::new(Kind::Unsupported, format!("dtype `{code}` of field `{name}`")).at_byte(self.at as u64)
                })?
            };
            let shape = if self.accept(b',') { self.shape()? } else { Vec::new() };
            self.want(b')', "`)` after a field")?;
            let padding = name.is_empty();
            let field = Field { name, dtype, shape, offset };
            offset = field
                .shape
                .iter()
                .try_fold(field.dtype.size(), |n, &dim| n.checked_mul(dim))
                .and_then(|n| n.checked_add(offset))
                .ok_or_else(|| self.expected("a record that fits in memory"))?;
            if !padding {
                fields.push(field);
            }
            if !self.accept(b',') {
                self.want(b']', "`,` or `]`")?;
                break;
            }
        }
        Layout::new(fields, offset)
    }

    fn shape(&mut self) -> Result<Vec<usize>> {
        if !self.accept(b'(') {
            return Ok(vec![self.number()?]);
        }
        let mut shape = Vec::new();
        while !self.accept(b')') {
            if shape.len() == 32 {
                return Err(self.expected("at most 32 axes"));
            }
            shape.push(self.number()?);
            if !self.accept(b',') {
                self.want(b')', "`,` or `)`")?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<usize> {
        self.space();
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        digits.parse().map_err(|_| self.expected("a whole number"))
    }

    fn string(&mut self) -> Result<String> {
        self.space();
        let quote = match self.text.get(self.at) {
            Some(&c @ (b'\'' | b'"')) => c,
            _ => return Err(self.expected("a quoted string")),
        };
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.text.get(self.at) {
                Some(&c) if c == quote => break,
                Some(b'\\') => {
                    self.at += 1;
                    bytes.push(*self.text.get(self.at).ok_or_else(|| self.expected("an escaped character"))?);
                }
                Some(&c) => bytes.push(c),
                None => return Err(self.expected("the end of the string")),
            }
            self.at += 1;
        }
        self.at += 1;
        String::from_utf8(bytes).map_err(|_| self.expected("UTF-8"))
    }
}

fn scalar(code: &str) -> Option<DType> {
    let (order, rest) = match code.as_bytes().first()? {
        b'<' | b'|' | b'=' => (Order::Little, &code[1..]),
        b'>' => (Order::Big, &code[1..]),
        _ => (Order::Little, code),
    };
    let scalar = Scalar::from_code(rest)?;
    let order = if scalar.swap_unit() == 1 { Order::Little } else { order };
    Some(DType::Scalar(scalar, order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_numpy_writes_come_back_the_same() {
        for text in [
            "[('a', '<u4'), ('b', '>f8', (2, 3)), ('', '|V3'), ('c', '|u1')]",
            "[('board', [('x', '<i2'), ('', '|V2'), ('y', '<f4', (104,))], (8,)), ('', '|V4')]",
            "[('s', '|S12'), ('u', '<U3'), ('v', '|V16'), ('h', '<f2'), ('z', '<c16'), ('t', '|b1')]",
            r"[('it\'s', '<u2')]",
        ] {
            assert_eq!(Layout::parse_descr(text).unwrap().to_descr(), text);
        }
    }

    #[test]
    fn hostile_texts_are_refused() {
        let deep = "[('a', ".repeat(40);
        for text in [
            "",
            "[",
            "[('a', '|O')]",
            "[('a', '<u4', (18446744073709551615, 8))]",
            "[('a', '<u4')",
            "[(a, '<u4')]",
            "[('a', '<u4')] x",
            "[('a', '<U99999999999999999999')]",
            &deep,
        ] {
            assert!(Layout::parse_descr(text).is_err(), "{text}");
        }
    }
}
