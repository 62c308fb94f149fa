//! The published vectors: 63 boards with their packed form and both heuristic values.

use std::path::PathBuf;

use gristmill_format::g2048::Board;
use gristmill_format::g2048::heuristic::{board_eval, board_eval_interactive};
use serde_json::Value;

/// A file of the vectors as JSON; `None`, with a word, where it is not at hand.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn vectors(name: &str) -> Option<Value> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("vectors/macroxue").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
        Err(_) => {
            eprintln!("skipped: no vectors at {}; set GRISTMILL_SHARED", path.display());
            None
        }
    }
}

#[test]
fn all_boards_pack_and_score_as_the_vectors_say() {
    let Some(file) = vectors("board_eval_vectors.json") else { return };
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 63);
    for vector in vectors {
        let cells = vector["exps"].as_array().unwrap();
        let ranks: Vec<u8> = cells.iter().map(|rank| u8::try_from(rank.as_u64().unwrap()).unwrap()).collect();
        let board = Board::new(ranks.try_into().unwrap()).unwrap();
        let packed = board.pack();
        let label = &vector["label"];
        assert_eq!(format!("0x{:016x}", packed.board), vector["board"].as_str().unwrap(), "{label}");
        assert_eq!(Value::from(packed.mask), vector["tile_65536_mask"], "{label}");
        assert_eq!(Value::from(board_eval(&board).unwrap()), vector["eval"], "{label}");
        assert_eq!(Value::from(board_eval_interactive(&board).unwrap()), vector["eval_interactive"], "{label}");
        if board.max_rank() <= 16 {
            assert_eq!(Board::unpack(packed), board, "{label}");
        }
    }
}
