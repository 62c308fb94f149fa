//! Logs of 2048 games to measure with, and the peer that is measured against: zlib and serde_json, row by row.
#![allow(unreachable_pub, reason = "shared between benches")]

use std::fmt::Write;
use std::io::Read;

use gristmill_format::g2048::heuristic::board_eval;
use gristmill_format::g2048::moves::{Slid, empty_cells, slide};
use gristmill_format::g2048::{Board, Move};
use serde::Deserialize;

/// The lines of a game in the producer's form: greedy play from a late position, thinned when it is stuck.
pub fn game(seed: u64, rows: usize) -> String {
    let mut random = Random(seed);
    let late = Board::new([15, 13, 11, 0, 14, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut board = spawn(late, &mut random);
    let mut text = String::new();
    for step in 0..rows {
        let mut after = after_all(&board);
        while after.iter().all(Option::is_none) {
            board = spawn(late, &mut random);
            after = after_all(&board);
        }
        let value = |slid: &Option<Slid>| slid.as_ref().map(|slid| board_eval(&slid.board).unwrap());
        let best = (0..4).max_by_key(|&i| value(&after[i])).unwrap();
        let table = random.below(100) < 40;
        let chance = random.below(16_000) as f64 / 16_000.0;
        let ev = |i: usize| match (value(&after[i]), table) {
            (None, false) => "null".to_owned(),
            (None, true) => "0.000000".to_owned(),
            (Some(value), false) => format!("{:.6}", f64::from(value) / 1000.0),
            (Some(value), true) => format!("{:.6}", (chance * 0.9 + f64::from(value.rem_euclid(1000)) * 1e-4).min(1.0)),
        };
        let (name, value) = if table { ("tuple11", format!("{chance:.6}")) } else { ("search", ev(best)) };
        let ranks = format!("{:?}", board.ranks()).replace(' ', "");
        let (up, down, left, right) = (ev(0), ev(1), ev(2), ev(3));
        let mv = Move::ALL[best].name();
        writeln!(
            text,
            "{{\"seed\":{},\"step_index\":{step},\"max_rank\":{},\"move\":\"{mv}\",\"valuation_type\":\"{name}\",\
             \"valuation\":{value},\"board\":{ranks},\
             \"branch_evs\":{{\"up\":{up},\"left\":{left},\"right\":{right},\"down\":{down}}}}}",
            272_350_805 + seed,
            board.max_rank()
        )
        .unwrap();
        board = spawn(after[best].unwrap().board, &mut random);
    }
    text
}

fn after_all(board: &Board) -> [Option<Slid>; 4] {
    Move::ALL.map(|mv| slide(board, mv).unwrap())
}

fn spawn(board: Board, random: &mut Random) -> Board {
    let empty: Vec<usize> = empty_cells(&board).collect();
    let rank = if random.below(10) == 0 { 2 } else { 1 };
    board.with(empty[random.below(empty.len())], rank)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// What one would write first: a stream, a struct, a row.
#[derive(Default)]
pub struct Peer {
    text: String,
    /// The packed rows of the latest game.
    pub out: Vec<u8>,
}

#[derive(Deserialize)]
struct Line<'a> {
    seed: u64,
    step_index: u32,
    max_rank: u8,
    #[serde(rename = "move")]
    mv: &'a str,
    #[serde(borrow)]
    valuation_type: Option<&'a str>,
    board: [u8; 16],
    branch_evs: Evs,
}

#[derive(Deserialize)]
struct Evs {
    up: Option<f64>,
    left: Option<f64>,
    right: Option<f64>,
    down: Option<f64>,
}

impl Peer {
    /// Makes packed rows of a stored log, and says how many.
    pub fn rows(&mut self, game: &[u8]) -> usize {
        self.text.clear();
        self.out.clear();
        flate2::read::MultiGzDecoder::new(game).read_to_string(&mut self.text).unwrap();
        let mut n = 0;
        for line in self.text.lines() {
            let line: Line<'_> = serde_json::from_str(line).unwrap();
            let board = Board::new(line.board).unwrap();
            let packed = board.pack();
            self.out.extend(0u32.to_le_bytes());
            self.out.extend(line.step_index.to_le_bytes());
            self.out.extend(packed.board.to_le_bytes());
            self.out.extend(board_eval(&board).unwrap().to_le_bytes());
            self.out.extend(packed.mask.to_le_bytes());
            let kind = if line.valuation_type == Some("search") { 0 } else { 1 };
            let evs = [line.branch_evs.up, line.branch_evs.down, line.branch_evs.left, line.branch_evs.right];
            let legal = evs.iter().enumerate().fold(0u8, |bits, (i, ev)| bits | u8::from(ev.is_some()) << i);
            self.out.extend([Move::from_name(line.mv).unwrap().index() as u8, kind, legal, line.max_rank]);
            self.out.extend((line.seed as u32).to_le_bytes());
            evs.iter().for_each(|ev| self.out.extend((ev.unwrap_or(0.0) as f32).to_le_bytes()));
            n += 1;
        }
        n
    }
}
