//! The bytes of one `.rtbw` or `.rtbz` file -> a table that answers what it stores about a position.
//! What it stores is not yet the value of the position: captures are left to the prober.

use cozy_chess::{Board, Color, Piece, Square};
use gristmill_bytes::error::{Error, Kind, Result};

use super::index::{Groups, Shape};
use super::material::{MAX_MEN, Material};
use super::pairs::{Cursor, Pairs, corrupt, word};
use super::squares::lead;
use super::wdl::Wdl;

/// What a table stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableKind {
    /// Win, draw or loss: `.rtbw`.
    Wdl,
    /// Plies to the next capture or pawn move: `.rtbz`.
    Dtz,
}

impl TableKind {
    /// Both.
    pub const ALL: [TableKind; 2] = [TableKind::Wdl, TableKind::Dtz];

    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            TableKind::Wdl => "rtbw",
            TableKind::Dtz => "rtbz",
        }
    }

    fn magic(self) -> [u8; 4] {
        match self {
            TableKind::Wdl => [0x71, 0xe8, 0x23, 0x5d],
            TableKind::Dtz => [0xd7, 0x66, 0x0c, 0xa5],
        }
    }
}

/// Flags of a DTZ array.
mod flag {
    /// The side whose values are stored is the second of the name.
    pub(super) const SECOND_SIDE: u8 = 1;
    /// Values are places in a map.
    pub(super) const MAPPED: u8 = 2;
    /// Wins count single plies, not pairs.
    pub(super) const WIN_PLIES: u8 = 4;
    /// Losses count single plies.
    pub(super) const LOSS_PLIES: u8 = 8;
    /// The map has two bytes an entry.
    pub(super) const WIDE: u8 = 16;
}

/// One array of a table: of one side to move, and with pawns for one file of the leading one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    groups: Groups,
    pairs: Pairs,
    flags: u8,
    /// Offset and entries of the maps of won, lost, cursed and blessed positions.
    maps: [(usize, usize); 4],
}

/// One table over the bytes of its file.
#[derive(Debug, Clone)]
pub struct Table<B> {
    bytes: B,
    kind: TableKind,
    material: Material,
    /// By file of the leading pawn (if there are pawns), then by side.
    parts: Vec<Part>,
    sides: usize,
}

impl<B: AsRef<[u8]>> Table<B> {
    /// Reads the head of a table of `material`, as its file is named, and checks that all that the head promises is
    /// there.
    ///
    /// Errors, with byte: `UnknownFormat` for other files; `Truncated`; `WrongSize` for a size that no table has;
    /// `Corrupt` where the head contradicts itself or the name.
    pub fn read(kind: TableKind, material: Material, bytes: B) -> Result<Self> {
        let shape = Shape::of(material);
        let mut cursor = Cursor { bytes: bytes.as_ref(), at: 0 };
        let len = cursor.bytes.len();
        if !cursor.bytes.starts_with(&kind.magic()) {
            let text = format!("not a Syzygy table: expected the first bytes {:02x?}", kind.magic());
            return Err(Error::new(Kind::UnknownFormat, text).at_byte(0));
        }
        if len % 64 != 16 {
            let text = format!("{len} bytes; a table has a multiple of 64 and 16 more. Fetch it again");
            return Err(Error::new(Kind::WrongSize, text).at_byte(len as u64));
        }
        cursor.at = 4;
        let head = cursor.byte()?;
        let (two_sided, has_pawns) = (head & 1 != 0, head & 2 != 0);
        if has_pawns != (shape.pawns[0] > 0) || kind == TableKind::Wdl && two_sided == material.is_symmetric() {
            return Err(corrupt(&format!("the head is not that of {material}"), 4));
        }
        let sides = if two_sided && kind == TableKind::Wdl { 2 } else { 1 };
        let mut parts = read_parts(&mut cursor, &shape, kind, sides)?;
        if kind == TableKind::Dtz {
            parts.iter_mut().try_for_each(|part| read_maps(&mut cursor, part))?;
            cursor.align(2);
        }
        parts.iter_mut().try_for_each(|part| part.pairs.place_sparse(&mut cursor))?;
        parts.iter_mut().try_for_each(|part| part.pairs.place_sizes(&mut cursor))?;
        parts.iter_mut().try_for_each(|part| part.pairs.place_data(&mut cursor))?;
        Ok(Table { bytes, kind, material, parts, sides })
    }

    /// The men it is about, as its file is named.
    pub fn material(&self) -> Material {
        self.material
    }

    /// What it stores.
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// What a `.rtbw` stores about `board`: its value, or anything not above where a capture reaches it.
    /// `swapped` when Black has the men of the first side of the name.
    pub(super) fn stored_wdl(&self, board: &Board, swapped: bool) -> Result<Wdl> {
        let side = self.side(board, swapped);
        let (part, index) = self.locate(board, swapped, side)?;
        let value = part.pairs.value(self.bytes.as_ref(), index)?;
        Wdl::stored(value).ok_or_else(|| corrupt(&format!("value {value}; expected 0 to 4"), 0))
    }

    /// What a `.rtbz` stores about `board`, whose value is `wdl`, in plies; `None` when it stores the other side's.
    pub(super) fn stored_dtz(&self, board: &Board, swapped: bool, wdl: Wdl) -> Result<Option<i32>> {
        let side = self.side(board, swapped);
        let (part, index) = self.locate(board, swapped, 0)?;
        if !self.material.is_symmetric() && usize::from(part.flags & flag::SECOND_SIDE) != side {
            return Ok(None);
        }
        let bytes = self.bytes.as_ref();
        let mut value = part.pairs.value(bytes, index)?;
        if part.flags & flag::MAPPED != 0 {
            let (start, entries) = part.maps[map_of(wdl)];
            let place = usize::from(value);
            let found = match part.flags & flag::WIDE {
                0 => bytes.get(start + place).map(|b| u16::from(*b)),
                _ => word(bytes, start + 2 * place),
            };
            let found = found.filter(|_| place < entries);
            value = found.ok_or_else(|| corrupt(&format!("place {place} of a map of {entries}"), start))?;
        }
        let counts_plies = match wdl {
            Wdl::Win => part.flags & flag::WIN_PLIES != 0,
            Wdl::Loss => part.flags & flag::LOSS_PLIES != 0,
            _ => false,
        };
        Ok(Some(i32::from(value) * if counts_plies { 1 } else { 2 }))
    }

    /// The side to move, 0 for the first of the name; always 0 where both have the same men.
    fn side(&self, board: &Board, swapped: bool) -> usize {
        usize::from(!self.material.is_symmetric() && (board.side_to_move() == Color::Black) != swapped)
    }

    /// The array that a position is in, and its place there.
    fn locate(&self, board: &Board, swapped: bool, side: usize) -> Result<(&Part, u64)> {
        // Where both sides have the same men, the tables store White to move only.
        let swapped = if self.material.is_symmetric() { board.side_to_move() == Color::Black } else { swapped };
        let sides = self.sides;
        let has_pawns = self.parts.len() > sides;
        let mirror = if swapped && has_pawns { 56 } else { 0 };
        let mut file = 0;
        if has_pawns {
            let man = self.parts[0].groups.men()[0];
            let pawns = men_of(board, man, swapped);
            let edge = |s: Square| lead(s as u8 ^ mirror);
            let leading = pawns.into_iter().min_by_key(|s| edge(*s));
            file = leading.map_or(0, |s| usize::from(edge(s) / 6));
        }
        let part = &self.parts[file * sides + side % sides];
        let mut squares = [0; MAX_MEN];
        let mut next = 0;
        let men = part.groups.men();
        while next < men.len() {
            let here = men_of(board, men[next], swapped);
            if here.is_empty() {
                return Err(Error::new(Kind::OutOfRange, format!("the board has not the men of {}", self.material)));
            }
            for square in here {
                let place = squares.get_mut(next).ok_or_else(|| corrupt("more men than the table has", 0))?;
                *place = square as u8 ^ mirror;
                next += 1;
            }
        }
        if has_pawns {
            let leading = part.groups.leading_pawns();
            let first = (0..leading).min_by_key(|i| lead(squares[*i])).unwrap_or(0);
            squares.swap(0, first);
        }
        let index = part.groups.index(&mut squares);
        let index = index.ok_or_else(|| Error::new(Kind::OutOfRange, "no legal position has its men so"))?;
        Ok((part, index))
    }
}

fn read_parts(cursor: &mut Cursor<'_>, shape: &Shape, kind: TableKind, sides: usize) -> Result<Vec<Part>> {
    let men = shape.material.men();
    let mut groups = Vec::with_capacity(8);
    for file in 0..shape.files() {
        let at = cursor.at;
        let first = cursor.byte()?;
        let second = if shape.pawns[1] > 0 { cursor.byte()? } else { 0xff };
        let stored = cursor.take(men)?;
        for side in 0..sides {
            let half = |byte: u8| byte >> (4 * side) & 15;
            let names: Vec<u8> = stored.iter().map(|byte| half(*byte)).collect();
            let found = Groups::new(shape, &names, [half(first), half(second)], file);
            groups.push(found.ok_or_else(|| corrupt(&format!("the men are not those of {}", shape.material), at))?);
        }
    }
    cursor.align(2);
    let mut parts = Vec::with_capacity(groups.len());
    for groups in groups {
        let (pairs, flags) = Pairs::read(cursor, groups.positions(), kind == TableKind::Wdl)?;
        parts.push(Part { groups, pairs, flags, maps: [(0, 0); 4] });
    }
    Ok(parts)
}

/// Takes the four maps of one array off `cursor`, if it has them.
fn read_maps(cursor: &mut Cursor<'_>, part: &mut Part) -> Result<()> {
    if part.flags & flag::MAPPED == 0 {
        return Ok(());
    }
    let wide = part.flags & flag::WIDE != 0;
    if wide {
        cursor.align(2);
    }
    for map in &mut part.maps {
        let entries = match wide {
            false => usize::from(cursor.byte()?),
            true => usize::from(word(cursor.take(2)?, 0).unwrap_or(0)),
        };
        *map = (cursor.at, entries);
        cursor.take(entries * if wide { 2 } else { 1 })?;
    }
    Ok(())
}

/// Which of the four maps holds the values of such positions.
fn map_of(wdl: Wdl) -> usize {
    match wdl {
        Wdl::Win | Wdl::Draw => 0,
        Wdl::Loss => 1,
        Wdl::CursedWin => 2,
        Wdl::BlessedLoss => 3,
    }
}

fn men_of(board: &Board, man: u8, swapped: bool) -> cozy_chess::BitBoard {
    let color = if (man & 8 != 0) != swapped { Color::Black } else { Color::White };
    board.colored_pieces(color, Piece::index(usize::from(man & 7) - 1))
}
