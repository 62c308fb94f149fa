//! What a comment says in the commands of PGN: evaluations and clocks. Anything else in it is for people.

use super::text::text;

/// What an engine said of a position, for White.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Eval {
    /// Hundredths of a pawn.
    Centipawns(i32),
    /// Mate in this number of moves: by White where positive, by Black where negative.
    Mate(i32),
}

impl Eval {
    /// The expected result for White, from -1 to 1, by the curve that Lichess publishes for centipawns.
    pub fn expected(self) -> f32 {
        match self {
            Eval::Centipawns(pawns) => {
                let win = 1.0 / (1.0 + libm::exp(-0.003_682_08 * f64::from(pawns)));
                (2.0 * win - 1.0) as f32
            }
            Eval::Mate(moves) => {
                if moves > 0 {
                    1.0
                } else {
                    -1.0
                }
            }
        }
    }
}

/// The evaluation of a comment; none where it has none that can be read.
pub fn eval(comment: &[u8]) -> Option<Eval> {
    let value = command(comment, b"%eval")?;
    // A depth may follow behind a comma.
    let value = value.split(',').next()?.trim();
    if let Some(moves) = value.strip_prefix('#') {
        return moves.parse().ok().map(Eval::Mate);
    }
    let pawns: f64 = value.parse().ok().filter(|pawns: &f64| pawns.abs() < 1e6)?;
    Some(Eval::Centipawns(libm::round(pawns * 100.0) as i32))
}

/// Milliseconds that a clock shows; none where a comment has none that can be read.
pub fn clock(comment: &[u8]) -> Option<u32> {
    let value = command(comment, b"%clk")?;
    let mut seconds = 0.0;
    for part in value.trim().splitn(3, ':') {
        let part: f64 = part.parse().ok().filter(|part| (0.0..1e6).contains(part))?;
        seconds = seconds * 60.0 + part;
    }
    let millis = libm::round(seconds * 1000.0);
    (millis <= f64::from(u32::MAX)).then_some(millis as u32)
}

/// What follows the name of a command, up to its bracket.
fn command<'a>(comment: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let mut rest = comment;
    while let Some(at) = memchr::memmem::find(rest, b"[%") {
        rest = &rest[at + 1..];
        let Some(value) = rest.strip_prefix(name).filter(|value| value.first() == Some(&b' ')) else { continue };
        let end = memchr::memchr(b']', value)?;
        return std::str::from_utf8(&value[..end]).ok();
    }
    None
}

/// What a comment says beside its commands.
pub fn words(comment: &[u8]) -> String {
    let mut plain = String::new();
    let mut rest = &*text(comment);
    while let Some(at) = rest.find("[%") {
        plain.push_str(&rest[..at]);
        rest = rest[at..].find(']').map_or("", |end| &rest[at + end + 1..]);
    }
    plain.push_str(rest);
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_other_words_stay() {
        let said = b" good [%eval 1.25,18] or [%clk 1:02:03.5] not ";
        assert_eq!((eval(said), clock(said)), (Some(Eval::Centipawns(125)), Some(3_723_500)));
        assert_eq!(words(said), "good  or  not");
        assert_eq!(eval(b"[%eval #-3]"), Some(Eval::Mate(-3)));
        assert_eq!(clock(b"[%clk 0:00:10]"), Some(10_000));
        for bad in
            [&b"[%eval x]"[..], b"[%eval 1", b"[%evaluation 1]", b"eval 1", b"[%eval nan]", b"[%clk -1]", b"[%clk 1e9]"]
        {
            assert_eq!((eval(bad), clock(bad)), (None, None), "{}", bad.escape_ascii());
        }
        assert!(Eval::Centipawns(0).expected() == 0.0 && Eval::Centipawns(300).expected() > 0.4);
        assert_eq!(Eval::Mate(-1).expected(), -1.0);
    }
}
