//! The third prober: pyrrhic-rs, with the attacks of our chess library.
//! One set of tables per process, whatever the caller does.

use std::path::Path;

use cozy_chess::{BitBoard, Board, Color, Piece, Rank, Square};
use pyrrhic_rs::{EngineAdapter, TableBases, WdlProbeResult};

#[derive(Clone)]
struct Attacks;

fn square(square: u64) -> Square {
    Square::index(square as usize)
}

impl EngineAdapter for Attacks {
    fn pawn_attacks(color: pyrrhic_rs::Color, from: u64) -> u64 {
        let color = if color == pyrrhic_rs::Color::White { Color::White } else { Color::Black };
        cozy_chess::get_pawn_attacks(square(from), color).0
    }

    fn knight_attacks(from: u64) -> u64 {
        cozy_chess::get_knight_moves(square(from)).0
    }

    fn bishop_attacks(from: u64, occupied: u64) -> u64 {
        cozy_chess::get_bishop_moves(square(from), BitBoard(occupied)).0
    }

    fn rook_attacks(from: u64, occupied: u64) -> u64 {
        cozy_chess::get_rook_moves(square(from), BitBoard(occupied)).0
    }

    fn queen_attacks(from: u64, occupied: u64) -> u64 {
        Self::bishop_attacks(from, occupied) | Self::rook_attacks(from, occupied)
    }

    fn king_attacks(from: u64) -> u64 {
        cozy_chess::get_king_moves(square(from)).0
    }
}

pub struct Pyrrhic(TableBases<Attacks>);

impl Pyrrhic {
    pub fn open(folder: &Path) -> Self {
        Pyrrhic(TableBases::new(folder.to_str().expect("a path in UTF-8")).expect("a folder of tables"))
    }

    /// -2 for a loss to 2 for a win.
    pub fn wdl(&self, board: &Board) -> i32 {
        let of = |piece| board.pieces(piece).0;
        let us = board.side_to_move();
        let passed = board.en_passant().map_or(0, |file| Square::new(file, Rank::Sixth.relative_to(us)) as u32);
        let value = self.0.probe_wdl(
            board.colors(Color::White).0,
            board.colors(Color::Black).0,
            of(Piece::King),
            of(Piece::Queen),
            of(Piece::Rook),
            of(Piece::Bishop),
            of(Piece::Knight),
            of(Piece::Pawn),
            passed,
            us == Color::White,
        );
        match value.expect("a position of the tables") {
            WdlProbeResult::Loss => -2,
            WdlProbeResult::BlessedLoss => -1,
            WdlProbeResult::Draw => 0,
            WdlProbeResult::CursedWin => 1,
            WdlProbeResult::Win => 2,
        }
    }
}
