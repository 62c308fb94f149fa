//! The text of one game -> its tags and its moves, each legal where it is played, and the result. A game that is none is refused
//! with byte and move. Comments, glyphs and clocks stay beside their moves; variations are passed over.

use cozy_chess::{Board, Color, Move};
use gristmill_bytes::error::{Error, Kind, Result};

use super::comment::{self, Eval};
use super::text::{Token, Tokens, corrupt, text, unescaped};
use super::{fen, san};

/// What games are refused by whose result is unknown, or not what their tags or their last board say.
pub const RESULT: &str = "result";
/// What games are refused by that have a word where a legal move should be.
pub const MOVES: &str = "moves";

/// Maximum number of moves of a game, of its tags, and of variations in variations: more are no game, and would take memory.
const MOST: (usize, usize, usize) = (20_000, 1000, 1000);

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// One side has won.
    Won(Color),
    /// Nobody has.
    Drawn,
}

impl Outcome {
    /// The outcome of a word; none for other words, `*` among them.
    pub fn of(word: &[u8]) -> Option<Self> {
        match word {
            b"1-0" => Some(Outcome::Won(Color::White)),
            b"0-1" => Some(Outcome::Won(Color::Black)),
            b"1/2-1/2" => Some(Outcome::Drawn),
            _ => None,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Won(Color::White) => "1-0",
            Outcome::Won(Color::Black) => "0-1",
            Outcome::Drawn => "1/2-1/2",
        }
    }
}

/// A position and the move that was played there.
#[derive(Debug, Clone)]
pub struct Ply {
    /// The position.
    pub board: Board,
    /// The move; castling is the king taking its rook.
    pub played: Move,
    /// What an engine said of the position after the move.
    pub eval: Option<Eval>,
    /// Milliseconds on the clock of the side that moved, after the move.
    pub clock: Option<u32>,
    /// The first glyph of the move, such as 4 for a blunder.
    pub nag: Option<u8>,
    /// What comments say of it beside that.
    pub comment: String,
}

/// A game.
#[derive(Debug, Clone)]
pub struct Game {
    /// Names and values of tags, in order.
    pub tags: Vec<(String, String)>,
    /// Positions and moves.
    pub plies: Vec<Ply>,
    /// The position after the last move.
    pub last: Board,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the result is that of the last position: mate or stalemate.
    pub on_board: bool,
}

impl Game {
    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        find(&self.tags, name)
    }
}

fn find<'a>(tags: &'a [(String, String)], name: &str) -> Option<&'a str> {
    tags.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
}

/// Reads a game. Each error has the byte within the game.
///
/// Errors: `Empty` for no moves; `Truncated` where it ends without a result; `Refused` as [`MOVES`] or [`RESULT`]; `Unsupported`
/// for variants; `OutOfRange` for a first position that cannot be; `TooLarge`; `Corrupt` for what is no PGN.
pub fn read(bytes: &[u8]) -> Result<Game> {
    let mut reading = Reading::default();
    let mut tokens = Tokens::new(bytes);
    while let Some((at, token)) = tokens.token()? {
        if reading.outcome.is_some() && !matches!(token, Token::Comment(_)) {
            return Err(corrupt("something follows the result of the game", at));
        }
        reading.token(at, token)?;
    }
    reading.finish(bytes.len())
}

#[derive(Default)]
struct Reading {
    tags: Vec<(String, String)>,
    board: Option<Board>,
    plies: Vec<Ply>,
    /// First bytes of the variations that are open.
    open: Vec<usize>,
    /// The result and its byte.
    outcome: Option<(Outcome, usize)>,
}

impl Reading {
    fn token(&mut self, at: usize, token: Token<'_>) -> Result<()> {
        match token {
            Token::Tag(name, value) if self.board.is_none() => {
                within(self.tags.len(), MOST.1, "tags", at)?;
                self.tags.push((text(name).into_owned(), unescaped(value)));
            }
            Token::Tag(..) => return Err(corrupt("a tag among moves", at)),
            Token::Open if self.plies.is_empty() => return Err(corrupt("a variation before the first move", at)),
            Token::Open => {
                within(self.open.len(), MOST.2, "variations in variations", at)?;
                self.open.push(at);
            }
            Token::Close => {
                self.open.pop().ok_or_else(|| corrupt("`)` where no variation is open", at))?;
            }
            Token::Comment(_) | Token::Nag(_) | Token::Word(_) if !self.open.is_empty() => {}
            Token::Comment(comment) => self.comment(comment),
            Token::Nag(nag) => self.glyph(Some(nag)),
            Token::Word(word) => self.word(at, word)?,
        }
        Ok(())
    }

    fn comment(&mut self, said: &[u8]) {
        let Some(ply) = self.plies.last_mut() else { return };
        ply.eval = comment::eval(said).or(ply.eval);
        ply.clock = comment::clock(said).or(ply.clock);
        let words = comment::words(said);
        if !ply.comment.is_empty() && !words.is_empty() {
            ply.comment.push(' ');
        }
        ply.comment.push_str(&words);
    }

    fn glyph(&mut self, nag: Option<u8>) {
        if let Some(ply) = self.plies.last_mut() {
            ply.nag = ply.nag.or(nag);
        }
    }

    fn word(&mut self, at: usize, word: &[u8]) -> Result<()> {
        if let Some(outcome) = Outcome::of(word) {
            self.outcome = Some((outcome, at));
            return Ok(());
        }
        if word == b"*" {
            let detail = "the game has no result (`*`), and so no value of its positions; leave it out";
            return Err(Error::new(Kind::Refused(RESULT), detail).at_byte(at as u64));
        }
        let skipped = number(word);
        let word = &word[skipped..];
        if word.is_empty() || is_mark(word) {
            self.glyph(suffix(word));
            return Ok(());
        }
        if word == b"e.p." {
            return Ok(());
        }
        if self.board.is_none() {
            self.board = Some(first(&self.tags).map_err(|e| e.at_byte(at as u64))?);
        }
        let Some(board) = &mut self.board else { return Ok(()) };
        within(self.plies.len(), MOST.0, "moves", at)?;
        let played = san::read(board, word).map_err(|fault| {
            let number = board.fullmove_number();
            let dots = if board.side_to_move() == Color::White { "." } else { "..." };
            let shown = &word[..word.len().min(20)];
            let detail = format!("move {number}{dots} `{}`: {}", shown.escape_ascii(), fault.reason());
            Error::new(Kind::Refused(MOVES), detail).at_byte((at + skipped) as u64).in_frame(self.plies.len())
        })?;
        let before = board.clone();
        board.play_unchecked(played);
        let end = word.iter().rposition(|byte| !b"!?".contains(byte)).map_or(0, |last| last + 1);
        let nag = suffix(&word[end..]);
        self.plies.push(Ply { board: before, played, eval: None, clock: None, nag, comment: String::new() });
        Ok(())
    }

    fn finish(self, end: usize) -> Result<Game> {
        if let Some(at) = self.open.first() {
            return Err(corrupt("a variation that `)` does not close", *at));
        }
        let Some((outcome, at)) = self.outcome else {
            let what = if self.plies.is_empty() { "before its first move" } else { "without a result" };
            let detail = format!("the game ends {what}; expected 1-0, 0-1 or 1/2-1/2 behind its moves");
            return Err(Error::new(Kind::Truncated, detail).at_byte(end as u64));
        };
        let Some(last) = self.board else {
            return Err(Error::new(Kind::Empty, "the game has no moves").at_byte(at as u64));
        };
        let refuse = |detail: String| Err(Error::new(Kind::Refused(RESULT), detail).at_byte(at as u64));
        let said = find(&self.tags, "Result").and_then(|said| Outcome::of(said.trim().as_bytes()));
        if let Some(said) = said.filter(|said| *said != outcome) {
            return refuse(format!("the tag Result says {}, the moves end in {}", said.word(), outcome.word()));
        }
        let over = !last.generate_moves(|_| true);
        let reached = if last.checkers().is_empty() { Outcome::Drawn } else { Outcome::Won(!last.side_to_move()) };
        if over && reached != outcome {
            return refuse(format!("the last board is {}, the game says {}", reached.word(), outcome.word()));
        }
        Ok(Game { tags: self.tags, plies: self.plies, last, outcome, on_board: over })
    }
}

/// Errors: `TooLarge` where there are `most` already.
fn within(count: usize, most: usize, what: &str, at: usize) -> Result<()> {
    match count < most {
        true => Ok(()),
        false => Err(Error::new(Kind::TooLarge, format!("more than {most} {what} in one game")).at_byte(at as u64)),
    }
}

/// The position that a game begins with.
///
/// Errors: `Unsupported` for variants of chess; `OutOfRange` for a position that cannot be.
fn first(tags: &[(String, String)]) -> Result<Board> {
    const CHESS: [&str; 8] =
        ["standard", "normal", "chess", "from position", "chess960", "chess 960", "fischerandom", "fischerrandom"];
    if let Some(variant) = find(tags, "Variant").filter(|variant| !CHESS.contains(&&*variant.to_ascii_lowercase())) {
        let detail = format!("the variant `{}`; chess and Chess960 are read", variant.escape_debug());
        return Err(Error::new(Kind::Unsupported, detail));
    }
    let Some(fen) = find(tags, "FEN") else { return Ok(Board::default()) };
    fen::read(fen).map_err(|reason| {
        let shown: String = fen.chars().take(100).collect();
        Error::new(Kind::OutOfRange, format!("FEN `{}`: {reason}", shown.escape_debug()))
    })
}

/// Bytes of the move number that a word begins with, its dots among them.
fn number(word: &[u8]) -> usize {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let dots = word[digits..].iter().take_while(|byte| **byte == b'.').count();
    if dots > 0 || digits == word.len() && word != b"0000" { digits + dots } else { 0 }
}

/// Whether a word judges a move or a position in signs: `!?`, `+-`, `=`.
fn is_mark(word: &[u8]) -> bool {
    word != b"--" && word.iter().all(|byte| b"!?+-=/~#".contains(byte))
}

/// The glyph of signs behind a move.
fn suffix(signs: &[u8]) -> Option<u8> {
    Some(match signs {
        b"!" => 1,
        b"?" => 2,
        b"!!" => 3,
        b"??" => 4,
        b"!?" => 5,
        b"?!" => 6,
        _ => return None,
    })
}
