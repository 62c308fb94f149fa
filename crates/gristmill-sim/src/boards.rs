//! A number -> the bytes of a file of boards, each unlike any other of its world; and such files damaged.
//! Written by docs/format/bulletformat.md; a run compares batches by these bytes.

/// Bytes of a board.
pub const BYTES: usize = 32;

/// Board `frame` of a file whose content has this number.
pub fn board(content: u64, frame: usize) -> [u8; BYTES] {
    let number = content.wrapping_mul(1031).wrapping_add(frame as u64);
    let (knight, rook) = (16 + number % 16, 32 + number / 16 % 16);
    let mut men = [(4u64, 5u8), (knight, 1), (rook, 11), (60, 13)];
    men.sort_unstable();
    let mut bytes = [0; BYTES];
    let occupied = men.iter().fold(0u64, |all, (square, _)| all | 1 << square);
    bytes[..8].copy_from_slice(&occupied.to_le_bytes());
    for (i, (_, man)) in men.iter().enumerate() {
        bytes[8 + i / 2] |= man << (4 * (i % 2));
    }
    bytes[24..26].copy_from_slice(&(number as u16).to_le_bytes());
    bytes[26] = (number % 3) as u8;
    (bytes[27], bytes[28]) = (4, 60 ^ 56);
    bytes
}

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// This board has a result that there is not.
    Board(usize),
    /// The last board is cut.
    Cut,
}

/// A file of `boards` boards.
pub fn file(content: u64, boards: usize, damage: Option<Damage>) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..boards).flat_map(|frame| board(content, frame)).collect();
    match damage {
        Some(Damage::Board(at)) if at < boards => bytes[at * BYTES + 26] = 9,
        Some(Damage::Cut) => bytes.truncate(bytes.len().saturating_sub(7)),
        _ => {}
    }
    bytes
}
