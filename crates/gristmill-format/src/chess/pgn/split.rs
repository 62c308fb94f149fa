//! The bytes of a PGN file, piece by piece -> where each game lies. Knows comments, tags and results, and no move.
//! Keeps no byte, so that files of any length are split in one pass; a game that is never closed ends where the next begins.

/// What the bytes before were part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// No game.
    Nothing,
    /// The tags of one; whether an empty line followed the last of them.
    Tags { closed: bool },
    /// A line of tags.
    TagLine,
    /// The moves of one.
    Moves,
    /// A comment in braces, with moves before and after it or between games.
    Braces,
    /// A comment up to the end of the line.
    Line,
}

/// What begins the tags of every game that a database writes.
const EVENT: &[u8] = b"[Event ";

/// Longest of the words that end a game: `1/2-1/2`.
const LONGEST: usize = 7;

/// Finds the games of a file.
#[derive(Debug)]
pub struct Splitter {
    inside: Inside,
    /// Bytes that were seen.
    at: u64,
    /// First byte of the game that is open.
    start: Option<u64>,
    /// Whether the next byte begins a line, and whether the line before it is empty.
    line_begins: bool,
    blank_before: bool,
    blank: bool,
    /// How much of [`EVENT`] the line inside a comment begins with; none where it begins with something else.
    event: Option<usize>,
    /// Variations that are open.
    depth: u32,
    /// The word that is being read.
    word: [u8; LONGEST],
    word_len: usize,
}

impl Default for Splitter {
    fn default() -> Self {
        Splitter {
            inside: Inside::Nothing,
            at: 0,
            start: None,
            line_begins: true,
            blank_before: true,
            blank: true,
            event: None,
            depth: 0,
            word: [0; LONGEST],
            word_len: 0,
        }
    }
}

impl Splitter {
    /// Takes the next bytes of the file; `each` gets the first byte of every game that ends in them, and the byte after it.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(u64, u64)) {
        for byte in bytes {
            self.byte(*byte, each);
            self.at += 1;
        }
    }

    /// Ends the file: the game that is open, if any, ends with it.
    pub fn finish(mut self, each: &mut dyn FnMut(u64, u64)) {
        self.end(self.at, each);
    }

    /// First byte of the game that is open.
    pub fn open_since(&self) -> Option<u64> {
        self.start
    }

    fn end(&mut self, at: u64, each: &mut dyn FnMut(u64, u64)) {
        if let Some(start) = self.start.take() {
            each(start, at);
        }
        (self.inside, self.depth, self.word_len) = (Inside::Nothing, 0, 0);
    }

    fn byte(&mut self, byte: u8, each: &mut dyn FnMut(u64, u64)) {
        let begins = std::mem::replace(&mut self.line_begins, byte == b'\n');
        if begins {
            (self.blank_before, self.blank) = (self.blank, true);
        }
        self.blank &= byte.is_ascii_whitespace();
        match self.inside {
            Inside::Braces => self.in_braces(byte, begins, each),
            Inside::Line | Inside::TagLine if byte == b'\n' => self.inside = self.outside(),
            Inside::Line | Inside::TagLine => {}
            _ if begins && byte == b'%' => self.inside = Inside::Line,
            Inside::Nothing => self.between(byte),
            Inside::Tags { closed } => self.in_tags(byte, closed, each),
            Inside::Moves => self.in_moves(byte, begins, each),
        }
    }

    /// What a comment or a line of tags is followed by.
    fn outside(&self) -> Inside {
        match (self.inside, self.start) {
            (Inside::TagLine, _) => Inside::Tags { closed: false },
            (_, None) => Inside::Nothing,
            (_, Some(_)) => Inside::Moves,
        }
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'{' => (self.inside, self.event) = (Inside::Braces, None),
            b';' => self.inside = Inside::Line,
            b'[' => (self.inside, self.start) = (Inside::TagLine, Some(self.at)),
            // The mark of UTF-8 that files may begin with.
            0xef | 0xbb | 0xbf if self.at < 3 => self.line_begins = true,
            _ if byte.is_ascii_whitespace() => {}
            _ => {
                (self.inside, self.start) = (Inside::Moves, Some(self.at));
                self.letter(byte);
            }
        }
    }

    fn in_tags(&mut self, byte: u8, closed: bool, each: &mut dyn FnMut(u64, u64)) {
        match byte {
            b'\n' => self.inside = Inside::Tags { closed: closed || self.blank },
            _ if byte.is_ascii_whitespace() => {}
            b'[' if closed => {
                self.end(self.at, each);
                self.between(byte);
            }
            b'[' => self.inside = Inside::TagLine,
            _ => {
                self.inside = Inside::Moves;
                self.in_moves(byte, false, each);
            }
        }
    }

    fn in_moves(&mut self, byte: u8, begins: bool, each: &mut dyn FnMut(u64, u64)) {
        match byte {
            b'[' if begins => {
                self.end(self.at, each);
                self.between(byte);
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' => self.letter(byte),
            b'*' if self.depth == 0 => self.end(self.at + 1, each),
            _ => {
                if self.is_result() {
                    self.end(self.at, each);
                    return self.between(byte);
                }
                self.word_len = 0;
                match byte {
                    b'{' => (self.inside, self.event) = (Inside::Braces, None),
                    b';' => self.inside = Inside::Line,
                    b'(' => self.depth += 1,
                    b')' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }

    fn in_braces(&mut self, byte: u8, begins: bool, each: &mut dyn FnMut(u64, u64)) {
        if byte == b'}' {
            self.inside = self.outside();
            return;
        }
        if begins {
            self.event = self.blank_before.then_some(0);
        }
        let Some(same) = self.event.filter(|same| EVENT[*same] == byte) else {
            self.event = None;
            return;
        };
        self.event = Some(same + 1);
        if same + 1 == EVENT.len() {
            // Nobody closed the comment: the next game begins here.
            let first = self.at - same as u64;
            self.end(first, each);
            (self.inside, self.start) = (Inside::TagLine, Some(first));
        }
    }

    fn letter(&mut self, byte: u8) {
        if let Some(place) = self.word.get_mut(self.word_len) {
            *place = byte;
        }
        self.word_len += 1;
    }

    fn is_result(&self) -> bool {
        let word = self.word.get(..self.word_len).unwrap_or_default();
        self.depth == 0 && matches!(word, b"1-0" | b"0-1" | b"1/2-1/2")
    }
}
