//! Games in Portable Game Notation (`docs/format/pgn.md`): files are split in one pass, each game is read and played by itself.
//!
//! | file | does |
//! |---|---|
//! | `split` | where the games of a file lie |
//! | `text` | the tokens of a game |
//! | `comment` | evaluations and clocks in comments |
//! | `fen` | positions in words |
//! | `san` | moves in words, there and back |
//! | `game` | a game, played move by move |
//! | `records` | its positions as records |
//! | `told` | records as a game again |
//! | `write` | a game as text |
//! | `source` | a file as chunks |

pub mod comment;
pub mod fen;
pub mod game;
pub mod records;
pub mod san;
pub mod source;
pub mod split;
pub mod text;
pub mod told;
pub mod write;

pub use comment::Eval;
pub use game::{Game, Outcome, Ply, read};
pub use split::Splitter;
pub use told::told;
pub use write::write;
