//! The bytes of one game -> its tokens in order: tags, words, comments, glyphs, variations. Text that is no PGN is refused
//! with its byte. Knows no chess.

use std::borrow::Cow;

use gristmill_bytes::error::{Error, Kind, Result};
use memchr::{memchr, memrchr};

/// A part of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// Name and value of a tag, the value as it is stored.
    Tag(&'a [u8], &'a [u8]),
    /// A move, a number, a result.
    Word(&'a [u8]),
    /// What a comment says.
    Comment(&'a [u8]),
    /// The number of a glyph, such as 1 for a good move.
    Nag(u8),
    /// A variation begins.
    Open,
    /// A variation ends.
    Close,
}

/// The tokens of a game.
#[derive(Debug)]
pub struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of the game in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Tokens { bytes, at: 0 }
    }

    /// The next token, and its first byte.
    ///
    /// Errors: `Corrupt` with the byte, for a tag or a comment that is not closed and for a glyph without a number.
    pub fn token(&mut self) -> Result<Option<(usize, Token<'a>)>> {
        while let Some(byte) = self.bytes.get(self.at) {
            let at = self.at;
            let token = match byte {
                b'%' if at == 0 || self.bytes[at - 1] == b'\n' => {
                    self.line();
                    continue;
                }
                _ if byte.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                b';' => Token::Comment(&self.line()[1..]),
                b'{' => Token::Comment(self.braces()?),
                b'[' => self.tag()?,
                b'$' => self.glyph()?,
                b'(' => self.single(Token::Open),
                b')' => self.single(Token::Close),
                b'*' => self.single(Token::Word(b"*")),
                _ => {
                    let rest = &self.bytes[at..];
                    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"{};()[]$*".contains(byte);
                    // A byte that ends words, and begins nothing, is a word of its own.
                    let len = rest.iter().position(ends).unwrap_or(rest.len()).max(1);
                    self.at += len;
                    Token::Word(&rest[..len])
                }
            };
            return Ok(Some((at, token)));
        }
        Ok(None)
    }

    fn single(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    /// What is left of the line.
    fn line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let len = memchr(b'\n', rest).unwrap_or(rest.len());
        self.at += len;
        rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len])
    }

    fn braces(&mut self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at + 1..];
        let len = memchr(b'}', rest).ok_or_else(|| corrupt("a comment that `}` does not close", self.at))?;
        self.at += len + 2;
        Ok(&rest[..len])
    }

    fn glyph(&mut self) -> Result<Token<'a>> {
        let rest = &self.bytes[self.at + 1..];
        let len = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let number = std::str::from_utf8(&rest[..len]).ok().and_then(|digits| digits.parse().ok());
        let glyph = number.ok_or_else(|| corrupt("`$` without a number of 0 to 255", self.at))?;
        self.at += len + 1;
        Ok(Token::Nag(glyph))
    }

    fn tag(&mut self) -> Result<Token<'a>> {
        let start = self.at;
        let line = self.line();
        let bad = || corrupt("no tag; expected [Name \"value\"]", start);
        let first = memchr(b'"', line).ok_or_else(bad)?;
        let name = line[1..first].trim_ascii();
        if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            return Err(bad());
        }
        let rest = &line[first + 1..];
        let end = match closing(rest) {
            Some(end) if follows(rest, end).is_some() => end,
            // A quotation mark that was not escaped: the last one of the line ends the value.
            _ => memrchr(b'"', rest).ok_or_else(bad)?,
        };
        let behind = follows(rest, end).ok_or_else(bad)?;
        self.at = start + first + 1 + behind;
        Ok(Token::Tag(name, &rest[..end]))
    }
}

/// The first quotation mark that is not escaped.
fn closing(value: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match value.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The byte behind the bracket that follows the quotation mark at `end`.
fn follows(rest: &[u8], end: usize) -> Option<usize> {
    let spaces = rest[end + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let at = end + 1 + spaces;
    (rest.get(at) == Some(&b']')).then_some(at + 1)
}

/// Text that is no PGN.
pub(super) fn corrupt(detail: impl Into<String>, at: usize) -> Error {
    Error::new(Kind::Corrupt, detail).at_byte(at as u64)
}

/// A stored text: UTF-8, else ISO 8859-1, which the standard of PGN says. Every sequence of bytes is one of them.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The value of a tag without the escapes of quotation marks and backslashes.
pub fn unescaped(value: &[u8]) -> String {
    let text = text(value);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('"' | '\\')) => plain.extend(chars.next()),
            _ => plain.push(c),
        }
    }
    plain
}
