//! Protobuf text as a tree of named fields with byte offsets: where things are, before and after it is understood.
//! Knows no schema and no value's type; depth is bounded, so that hostile text cannot exhaust the stack of a parser.

use std::ops::Range;

use crate::config::text::Field;

/// Deeper nesting than any configuration has.
const DEEPEST: usize = 32;

/// What is wrong with a text, and at which byte.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::config) struct Fault {
    pub(in crate::config) at: usize,
    pub(in crate::config) message: String,
}

fn fault<T>(at: usize, message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { at, message: message.into() })
}

/// The fields of a text.
pub(in crate::config) fn fields(text: &str) -> Result<Vec<Field<'_>>, Fault> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, at: 0 };
    parser.fields(0, None)
}

/// Spans of tokens: names, numbers and strings whole, everything else by character. Comments are no tokens.
fn tokens(text: &str) -> Result<Vec<Range<usize>>, Fault> {
    let mut found = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        match first {
            _ if first.is_whitespace() => continue,
            '#' => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '"' | '\'' => loop {
                match chars.next() {
                    Some((_, '\\')) => drop(chars.next()),
                    Some((end, c)) if c == first => break found.push(start..end + 1),
                    Some((_, c)) if c != '\n' => {}
                    _ => return fault(start, "this string has no end on its line"),
                }
            },
            _ if is_word(first) => {
                while chars.next_if(|(_, c)| is_word(*c)).is_some() {}
                found.push(start..chars.peek().map_or(text.len(), |(end, _)| *end));
            }
            _ => found.push(start..start + first.len_utf8()),
        }
    }
    Ok(found)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

struct Parser<'a, 't> {
    text: &'a str,
    tokens: &'t [Range<usize>],
    at: usize,
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Option<&'a str> {
        Some(&self.text[self.tokens.get(self.at)?.clone()])
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.len(), |token| token.start)
    }

    fn end_of_last(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end)
    }

    /// Fields up to the closing bracket, or to the end of the text.
    fn fields(&mut self, depth: usize, close: Option<&str>) -> Result<Vec<Field<'a>>, Fault> {
        let mut found = Vec::new();
        loop {
            match self.peek() {
                None if close.is_none() => return Ok(found),
                token if token.is_some() && token == close => {
                    self.at += 1;
                    return Ok(found);
                }
                Some("," | ";") => self.at += 1,
                Some("[") => return fault(self.offset(), "extensions in square brackets have no place here"),
                Some(token) if token.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                    self.field(depth, &mut found)?
                }
                Some(token) => return fault(self.offset(), format!("expected the name of a field, found `{token}`")),
                None => {
                    return fault(self.offset(), format!("the text ends where `{}` should", close.unwrap_or_default()));
                }
            }
        }
    }

    /// A field, or one for each message of a list.
    fn field(&mut self, depth: usize, found: &mut Vec<Field<'a>>) -> Result<(), Fault> {
        let (start, name) = (self.offset(), self.peek().unwrap_or_default());
        self.at += 1;
        let colon = self.peek() == Some(":");
        self.at += usize::from(colon);
        match self.peek() {
            Some("{" | "<") => {
                let fields = self.message(depth)?;
                found.push(Field { name, span: start..self.end_of_last(), value: "", fields });
            }
            Some("[") => {
                self.at += 1;
                let values = self.offset();
                let messages = matches!(self.peek(), Some("{" | "<"));
                loop {
                    match self.peek() {
                        Some("]") => break self.at += 1,
                        Some("{" | "<") => {
                            let start = self.offset();
                            let fields = self.message(depth)?;
                            found.push(Field { name, span: start..self.end_of_last(), value: "", fields });
                        }
                        Some("[") => return fault(self.offset(), "a list in a list"),
                        Some(_) => self.at += 1,
                        None => return fault(self.offset(), "the text ends where `]` should"),
                    }
                }
                if !messages {
                    let value = self.text[values..self.end_of_last()].trim_end_matches(']');
                    found.push(Field { name, span: start..self.end_of_last(), value, fields: Vec::new() });
                }
            }
            Some(token) if colon && !matches!(token, "}" | ">" | "]" | ":") => {
                let value = self.offset();
                self.at += 1;
                // Neighbouring strings are one, and a minus may stand apart.
                let string = |token: &str| token.starts_with(['"', '\'']);
                while self
                    .peek()
                    .is_some_and(|next| string(token) && string(next) || self.text[value..self.end_of_last()] == *"-")
                {
                    self.at += 1;
                }
                let span = start..self.end_of_last();
                found.push(Field { name, value: &self.text[value..span.end], span, fields: Vec::new() });
            }
            found => {
                let found = found.map_or("the end".to_owned(), |token| format!("`{token}`"));
                return fault(self.offset(), format!("expected a value of `{name}`, found {found}"));
            }
        }
        Ok(())
    }

    fn message(&mut self, depth: usize) -> Result<Vec<Field<'a>>, Fault> {
        if depth == DEEPEST {
            return fault(self.offset(), format!("messages are nested deeper than {DEEPEST}"));
        }
        let close = if self.peek() == Some("<") { ">" } else { "}" };
        self.at += 1;
        self.fields(depth + 1, Some(close))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_know_where_they_are() {
        let text = "name: \"a\" 'b' # {\nstage { x: -1, y <z: [1, 2]>; }\nstage: [{n: 1} {n: 2}]\nw: - 3";
        let found = fields(text).unwrap();
        let names: Vec<_> = found.iter().map(|field| (field.name, &text[field.span.clone()])).collect();
        assert_eq!(
            names,
            [
                ("name", "name: \"a\" 'b'"),
                ("stage", "stage { x: -1, y <z: [1, 2]>; }"),
                ("stage", "{n: 1}"),
                ("stage", "{n: 2}"),
                ("w", "w: - 3"),
            ]
        );
        assert_eq!(found[1].fields[1].fields[0].value, "1, 2");
        assert_eq!(&text[found[1].fields[0].span.clone()], "x: -1");
        assert_eq!(fields("a: 'x\\'y'").unwrap()[0].string(), "x\\'y");
    }

    #[test]
    fn broken_texts_are_refused_at_their_place() {
        for (text, at, says) in [
            ("a {", 3, "`}`"),
            ("a }", 2, "found `}`"),
            ("a: \"x\ny\"", 3, "no end"),
            ("3: 4", 0, "name of a field"),
            ("[x.y/z] { }", 0, "extensions"),
            ("a: [[1]]", 4, "list in a list"),
            ("a: [1", 5, "`]`"),
            ("a:", 2, "the end"),
            ("a", 1, "the end"),
        ] {
            let fault = fields(text).unwrap_err();
            assert_eq!(fault.at, at, "{text}: {}", fault.message);
            assert!(fault.message.contains(says), "{text}: {}", fault.message);
        }
        assert!(fields(&"a{".repeat(100_000)).unwrap_err().message.contains("deeper"));
    }
}
