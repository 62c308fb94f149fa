//! What went wrong with some bytes, and where: the only error type of this crate.
//! Carries file, member, chunk, frame and offset; never prints and never holds the bytes themselves.

use std::borrow::Cow;
use std::fmt;

/// `Result` with the format crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause, for code that decides what to do next (skip, quarantine, raise, report).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The bytes end before the structure does.
    Truncated,
    /// Checksums, magic numbers or compressed data are wrong.
    Corrupt,
    /// A size is not what the layout requires (for example not a multiple of the record).
    WrongSize,
    /// The version number of a record or file is not one that is known.
    UnknownVersion,
    /// Nothing here is recognised as a format.
    UnknownFormat,
    /// Larger than the configured bound: a bomb, or a bound that needs raising.
    TooLarge,
    /// There is nothing in it: no frames, no chunks.
    Empty,
    /// A value lies outside its documented range, or is NaN where that is not allowed.
    OutOfRange,
    /// Known, but not supported here.
    Unsupported,
    /// Records that lack what an encoder needs; another one fits.
    Unfit,
    /// Readable, but the rule of this name forbids it.
    Refused(&'static str),
    /// It names something that is not data, such as a function to call; refused without a try.
    Forbidden,
    /// A requested index or name does not exist.
    Missing,
    /// The folder of the file cannot be found, so that nothing tells whether the file was deleted.
    Away,
    /// The operating system refused: not found, permission, no space, stale mount.
    Io(std::io::ErrorKind),
}

impl Kind {
    /// A short stable word for counters and JSON, such as `truncated` or `permission`.
    pub fn name(self) -> &'static str {
        use std::io::ErrorKind as Os;
        match self {
            Kind::Truncated => "truncated",
            Kind::Corrupt => "corrupt",
            Kind::WrongSize => "wrong_size",
            Kind::UnknownVersion => "unknown_version",
            Kind::UnknownFormat => "unknown_format",
            Kind::TooLarge => "too_large",
            Kind::Empty => "empty",
            Kind::OutOfRange => "out_of_range",
            Kind::Unsupported => "unsupported",
            Kind::Unfit => "unfit",
            Kind::Refused(rule) => rule,
            Kind::Forbidden => "forbidden",
            Kind::Missing => "missing",
            Kind::Away => "away",
            Kind::Io(Os::NotFound) => "not_found",
            Kind::Io(Os::PermissionDenied) => "permission",
            Kind::Io(Os::StorageFull | Os::QuotaExceeded) => "disk_full",
            Kind::Io(Os::StaleNetworkFileHandle | Os::NotConnected) => "mount_lost",
            Kind::Io(_) => "io",
        }
    }

    /// Whether the system refused to read, so that it says nothing of the bytes: they may be read later. A file that was
    /// deleted (`Io` with `NotFound`) has none left to read.
    pub fn is_of_reading(self) -> bool {
        use std::io::ErrorKind as Os;
        match self {
            Kind::Away => true,
            Kind::Io(os) => !matches!(os, Os::NotFound | Os::InvalidData | Os::UnexpectedEof | Os::Unsupported),
            _ => false,
        }
    }
}

/// Where it went wrong. Every part is optional; each layer adds what it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Path or key of the file.
    pub source: Option<String>,
    /// Name of the member inside a container.
    pub member: Option<String>,
    /// Chunk index within the source.
    pub chunk: Option<u64>,
    /// Frame index within the chunk.
    pub frame: Option<u64>,
    /// Line of a text file, and column in bytes, both from 1.
    pub line: Option<(u64, u64)>,
    /// Byte offset within the innermost named thing (member, else file); in compressed text, of the text.
    pub offset: Option<u64>,
}

/// A name as people are shown it: control characters, which would command a terminal or end a line, as their escapes.
pub fn plain(name: &str) -> Cow<'_, str> {
    if !name.chars().any(char::is_control) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        let mut part = |f: &mut fmt::Formatter<'_>, name: &str, value: Option<String>| {
            let Some(value) = value else { return Ok(()) };
            write!(f, "{gap}{name}{value}")?;
            gap = ", ";
            Ok(())
        };
        let name = |name: &Option<String>| name.as_deref().map(|name| plain(name).into_owned());
        part(f, "", name(&self.source))?;
        part(f, "member ", name(&self.member))?;
        part(f, "chunk ", self.chunk.map(|n| n.to_string()))?;
        part(f, "frame ", self.frame.map(|n| n.to_string()))?;
        part(f, "line ", self.line.map(|(line, column)| format!("{line} column {column}")))?;
        part(f, "byte ", self.offset.map(|n| n.to_string()))
    }
}

/// One refusal: its [`Kind`], what was expected or found and what to do, and its [`Place`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: Kind,
    detail: String,
    at: Place,
}

impl Error {
    /// A new error with no place yet; `detail` says what was expected, what was found, what to do.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, detail: detail.into(), at: Place::default() }))
    }

    /// The cause.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What was expected and found, without the place.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Where.
    pub fn place(&self) -> &Place {
        &self.0.at
    }

    /// The same error with more to say of what was found and what to do.
    #[must_use]
    pub fn and(mut self, more: &str) -> Self {
        self.0.detail.push_str(more);
        self
    }

    /// Names the file, unless an inner layer already did.
    #[must_use]
    pub fn in_source(mut self, source: impl Into<String>) -> Self {
        self.0.at.source.get_or_insert_with(|| source.into());
        self
    }

    /// The same error, with another name for the file.
    #[must_use]
    pub fn moved_to(mut self, source: impl Into<String>) -> Self {
        self.0.at.source = Some(source.into());
        self
    }

    /// Names the member of a container, unless an inner layer already did.
    #[must_use]
    pub fn in_member(mut self, member: impl Into<String>) -> Self {
        self.0.at.member.get_or_insert_with(|| member.into());
        self
    }

    /// Names the chunk, unless an inner layer already did.
    #[must_use]
    pub fn in_chunk(mut self, chunk: usize) -> Self {
        self.0.at.chunk.get_or_insert(chunk as u64);
        self
    }

    /// Names the frame, unless an inner layer already did.
    #[must_use]
    pub fn in_frame(mut self, frame: usize) -> Self {
        self.0.at.frame.get_or_insert(frame as u64);
        self
    }

    /// Names the line and column of a text, both from 1, unless an inner layer already did.
    #[must_use]
    pub fn at_line(mut self, line: u64, column: u64) -> Self {
        self.0.at.line.get_or_insert((line, column));
        self
    }

    /// The place in a text whose parsed part begins after `lines` lines and `bytes` bytes. The byte
    /// is that of the column where none was named.
    #[must_use]
    pub fn after_lines(mut self, lines: u64, bytes: u64) -> Self {
        let column = self.0.at.line.map(|(_, column)| column - 1);
        self.0.at.offset = self.0.at.offset.or(column).map(|offset| offset + bytes);
        self.0.at.line = self.0.at.line.map(|(line, column)| (line + lines, column));
        self
    }

    /// Names the byte offset, unless an inner layer already did.
    #[must_use]
    pub fn at_byte(mut self, offset: u64) -> Self {
        self.0.at.offset.get_or_insert(offset);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.at != Place::default() {
            write!(f, "{}: ", self.0.at)?;
        }
        write!(f, "{}: {}", self.0.kind.name(), self.0.detail)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        let kind = match e.kind() {
            std::io::ErrorKind::UnexpectedEof => Kind::Truncated,
            other => Kind::Io(other),
        };
        Error::new(kind, e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_layers_name_the_place_first() {
        let e = Error::new(Kind::Truncated, "expected 8356 bytes, found 12")
            .at_byte(12)
            .in_member("d/training.1.gz")
            .in_member("outer")
            .in_source("a.tar");
        assert_eq!(e.to_string(), "a.tar, member d/training.1.gz, byte 12: truncated: expected 8356 bytes, found 12");
    }

    #[test]
    fn names_command_no_terminal_and_end_no_line() {
        let e = Error::new(Kind::Empty, "nothing").in_member("a\u{1b}[2J\nb.gz").in_source("x\u{9b}\u{7f}é\t.tar");
        assert_eq!(e.to_string(), "x\\u{9b}\\u{7f}é\\t.tar, member a\\u{1b}[2J\\nb.gz: empty: nothing");
        assert_eq!(e.place().member.as_deref(), Some("a\u{1b}[2J\nb.gz"), "programs get the name itself");
    }

    #[test]
    fn a_part_of_a_text_counts_on_from_where_it_begins() {
        let e = Error::new(Kind::Corrupt, "not a step").at_line(1, 5).after_lines(6, 700);
        assert_eq!(
            e.clone().in_source("a.jsonl.gz").to_string(),
            "a.jsonl.gz, line 7 column 5, byte 704: corrupt: not a step"
        );
        assert_eq!(e.after_lines(10, 1000).place().offset, Some(1704));
    }

    #[test]
    fn only_a_refusal_to_read_may_pass() {
        for os in [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::StaleNetworkFileHandle] {
            assert!(Error::from(std::io::Error::from(os)).kind().is_of_reading(), "{os:?}");
        }
        // EIO, EAGAIN, ENFILE, EMFILE.
        assert!(
            [5, 11, 23, 24]
                .map(std::io::Error::from_raw_os_error)
                .into_iter()
                .all(|e| Error::from(e).kind().is_of_reading())
        );
        assert!(Kind::Away.is_of_reading());
        let deleted = Kind::Io(std::io::ErrorKind::NotFound);
        assert!(![deleted, Kind::Truncated, Kind::Corrupt, Kind::Missing].into_iter().any(Kind::is_of_reading));
    }

    #[test]
    fn operating_system_refusals_have_names_of_their_own() {
        for (os, name) in [
            (std::io::ErrorKind::NotFound, "not_found"),
            (std::io::ErrorKind::PermissionDenied, "permission"),
            (std::io::ErrorKind::StorageFull, "disk_full"),
            (std::io::ErrorKind::StaleNetworkFileHandle, "mount_lost"),
        ] {
            assert_eq!(Error::from(std::io::Error::from(os)).kind().name(), name);
        }
    }
}
