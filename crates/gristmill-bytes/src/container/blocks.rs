//! Many items of one size <-> blocks of neighbouring items, each compressed by itself: one item costs one block.
//! Bytes in, bytes out; every size is bounded before it is allocated. Part of `docs/format/demonstration-pack.md`.

use std::fmt;
use std::sync::Arc;

use zstd::bulk::{Compressor, Decompressor};

use super::shelf::{Shelf, Unpacked};
use crate::error::{Error, Kind, Result};

/// Maximum number of bytes of an item, and of a block when it is unpacked.
pub const MOST_BLOCK: usize = 64 << 20;

/// At most this many items, of at most this many bytes together, share a block that exceeds the wanted size.
const FEW: usize = 4;
const FEW_BYTES: usize = 4 << 20;

/// What the first byte of a block says of the others: as they are, compressed, compressed after turning, and turned with each
/// byte less the one before it.
const PLAIN: u8 = 0;
const PACKED: u8 = 1;
const TURNED: u8 = 2;
const STEPS: u8 = 3;

/// Where the blocks of some items lie, and how they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Bytes of an item.
    pub item: u32,
    /// How many there are.
    pub items: u32,
    /// Items of every block but the last.
    per: u32,
    /// Bytes of an element: turning puts the first byte of each before the second of each.
    unit: u32,
    /// Where the table of ends starts, which the blocks follow.
    start: u32,
    /// Bytes of both.
    len: u32,
}

impl Run {
    /// Bytes that [`Run::write`] takes.
    pub const BYTES: usize = 24;

    /// Packs `items` into blocks of about `budget` bytes, and appends the blocks to `out`. The items are back to back. An item has
    /// `item` bytes, and an element of an item has `unit` bytes. Zstandard compresses a block at `level` if the block gets smaller.
    /// Without a `level`, all blocks stay uncompressed.
    ///
    /// Errors: `TooLarge` for items beyond [`MOST_BLOCK`], and where `out` would have 4 GiB; `WrongSize` for a part of an item.
    pub fn pack(
        items: &[u8],
        (item, unit): (usize, usize),
        budget: usize,
        level: Option<i32>,
        out: &mut Vec<u8>,
    ) -> Result<Run> {
        if item > MOST_BLOCK {
            return Err(Error::new(Kind::TooLarge, format!("{item} bytes in one piece; the bound is {MOST_BLOCK}")));
        }
        if item == 0 || !items.len().is_multiple_of(item) || unit == 0 || !item.is_multiple_of(unit) {
            return Err(Error::new(Kind::WrongSize, format!("{} bytes of items of {item}", items.len())));
        }
        // Neighbouring pictures are alike: a few of them share a block, as long as that is not large.
        let per = (budget / item).clamp((FEW_BYTES / item).clamp(1, FEW), 1 << 16);
        let (start, blocks) = (out.len(), items.len().div_ceil(per * item));
        out.resize(start + 4 * blocks, 0);
        let packer = |level| Ok::<Packer, Error>(Packer { compressor: Compressor::new(level)?, turned: Vec::new() });
        let mut packer = level.map(packer).transpose()?;
        let mut end = 0usize;
        for (i, block) in items.chunks(per * item).enumerate() {
            let packed = packer.as_mut().map(|packer| packer.best(block, unit)).transpose()?.flatten();
            let (how, bytes) = packed.as_ref().map_or((PLAIN, block), |(how, bytes)| (*how, bytes));
            end += 1 + bytes.len();
            let stored = u32::try_from(end).map_err(|_| too_long())?;
            out[start + 4 * i..][..4].copy_from_slice(&stored.to_le_bytes());
            out.push(how);
            out.extend_from_slice(bytes);
        }
        let number = |n: usize| u32::try_from(n).map_err(|_| too_long());
        number(out.len())?;
        Ok(Run {
            item: number(item)?,
            items: number(items.len() / item)?,
            per: number(per)?,
            unit: number(unit)?,
            start: number(start)?,
            len: number(out.len() - start)?,
        })
    }

    /// Adds what [`Run::read`] reads.
    pub fn write(&self, out: &mut Vec<u8>) {
        for number in [self.item, self.items, self.per, self.unit, self.start, self.len] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads where a run lies within `all` bytes.
    ///
    /// Errors: `Corrupt` for a table that is invalid or passes `all`.
    pub fn read(bytes: &[u8; Run::BYTES], all: usize) -> Result<Run> {
        let word = |i: usize| bytes[4 * i..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let run = Run { item: word(0), items: word(1), per: word(2), unit: word(3), start: word(4), len: word(5) };
        let sizes = run.item > 0 && run.per > 0 && run.open_bytes() <= MOST_BLOCK as u64;
        let unit = run.unit > 0 && run.item.is_multiple_of(run.unit.max(1));
        let within = u64::from(run.start) + u64::from(run.len) <= all as u64;
        if sizes && unit && within && 4 * run.blocks() as u64 <= u64::from(run.len) {
            return Ok(run);
        }
        Err(Error::new(Kind::Corrupt, format!("invalid block table: {run:?} in {all} bytes")))
    }

    /// Bytes that its largest block unpacks to.
    pub fn open_bytes(&self) -> u64 {
        u64::from(self.item) * u64::from(self.per.min(self.items))
    }

    fn blocks(&self) -> usize {
        self.items.div_ceil(self.per.max(1)) as usize
    }

    /// Copies item `i` of a run in `bytes` to `out`. `open` keeps its block, for items beside it; it was used for these bytes alone.
    ///
    /// Errors: `Missing` for an item that does not exist; `Corrupt` with the byte for a damaged block; `WrongSize` for
    /// `out`.
    pub fn copy(&self, bytes: &[u8], i: u32, open: &mut Open, out: &mut [u8]) -> Result<()> {
        if i >= self.items {
            return Err(Error::new(Kind::Missing, format!("item {i} of {}", self.items)));
        }
        if out.len() != self.item as usize {
            return Err(Error::new(Kind::WrongSize, format!("{} bytes for an item of {}", out.len(), self.item)));
        }
        let number = i / self.per;
        let block = match &open.block {
            Some((start, there, block)) if (*start, *there) == (self.start, number) => block,
            _ => {
                let block = self.open(bytes, number, open)?;
                &open.block.insert((self.start, number, block)).2
            }
        };
        let (item, within) = (self.item as usize, (i % self.per) as usize);
        match block {
            Block::Stored(at) => {
                let stored = bytes.get(at + within * item..).and_then(|bytes| bytes.get(..item));
                let gone = || corrupt(number, "it does not lie within its bytes", *at);
                out.copy_from_slice(stored.ok_or_else(gone)?);
            }
            Block::Unpacked(plain) if !plain.turned => out.copy_from_slice(&plain.bytes[within * item..][..item]),
            Block::Unpacked(plain) => {
                let unit = self.unit as usize;
                let (elements, first) = (plain.bytes.len() / unit, within * (item / unit));
                for (byte, plane) in plain.bytes.chunks_exact(elements).enumerate() {
                    for (element, value) in out.chunks_exact_mut(unit).zip(&plane[first..]) {
                        element[byte] = *value;
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds `block`, which must be the number of a block of this run. Takes an unpacked block from the shelf if it is there; else
    /// unpacks it and puts it there. Does not copy a block that is stored uncompressed.
    ///
    /// Errors: `Corrupt`, with the byte, if the block is damaged.
    fn open(&self, bytes: &[u8], block: u32, open: &mut Open) -> Result<Block> {
        open.close();
        let number = block as usize;
        let end = |i: usize| bytes.get(self.start as usize + 4 * i..).and_then(|table| table.first_chunk::<4>());
        let end = |i: usize| end(i).map(|end| u32::from_le_bytes(*end) as usize);
        let data = self.start as usize + 4 * self.blocks();
        let from = if number == 0 { Some(0) } else { end(number - 1) };
        let last = self.start as usize + self.len as usize;
        let stored = from
            .zip(end(number))
            .filter(|(_, to)| data + to <= last)
            .and_then(|(from, to)| bytes.get(data + from..data + to));
        let Some((how, stored)) = stored.and_then(<[u8]>::split_first) else {
            return Err(corrupt(block, "it does not lie within its bytes", data));
        };
        let at = data + from.unwrap_or_default();
        let items = (self.items - block * self.per).min(self.per);
        let len = items as usize * self.item as usize;
        let checked = |found: usize| {
            if found == len { Ok(()) } else { Err(corrupt(block, &format!("{found} bytes, expected {len}"), at)) }
        };
        if *how == PLAIN {
            return checked(stored.len()).map(|()| Block::Stored(at + 1));
        }
        if ![PACKED, TURNED, STEPS].contains(how) {
            return Err(corrupt(block, &format!("it is made in way {how}, expected 0 to 3"), at));
        }
        let name = (open.chunk, self.start, block);
        if let Some(there) = open.shelf.as_ref().and_then(|shelf| shelf.find(&name)) {
            return Ok(Block::Unpacked(there));
        }
        let mut plain = std::mem::take(&mut open.spare);
        // The shelf keeps the whole memory of a block. So a small block does not reuse the memory of a large one.
        if plain.capacity() / 2 > len {
            plain = Vec::with_capacity(len);
        }
        plain.clear();
        plain.resize(len, 0);
        let decompressor = match &mut open.decompressor {
            Some(there) => there,
            none => none.insert(Decompressor::new()?),
        };
        let unpacked = decompressor.decompress_to_buffer(stored, &mut plain[..]);
        checked(unpacked.map_err(|e| corrupt(block, &format!("Zstandard: {e}"), at))?)?;
        if *how == STEPS {
            for plane in plain.chunks_exact_mut(len / self.unit as usize) {
                let mut sum = 0u8;
                for byte in plane {
                    sum = sum.wrapping_add(*byte);
                    *byte = sum;
                }
            }
        }
        let unpacked = Arc::new(Unpacked { turned: *how != PACKED, bytes: plain });
        if let Some(shelf) = &open.shelf {
            open.spare = shelf.put(name, Arc::clone(&unpacked)).unwrap_or_default();
        }
        Ok(Block::Unpacked(unpacked))
    }
}

fn corrupt(block: u32, detail: &str, at: usize) -> Error {
    Error::new(Kind::Corrupt, format!("block {block}: {detail}")).at_byte(at as u64)
}

fn too_long() -> Error {
    Error::new(Kind::TooLarge, "4 GiB of packed blocks; split the chunk")
}

/// Compresses blocks. Keeps a buffer from one block to the next.
struct Packer {
    compressor: Compressor<'static>,
    turned: Vec<u8>,
}

impl Packer {
    /// Returns the best form of `block`: how it is made, and its bytes. Returns `None` if no form is smaller than the block. A form
    /// counts as smaller if it saves more than a 32nd of the bytes.
    fn best(&mut self, block: &[u8], unit: usize) -> Result<Option<(u8, Vec<u8>)>> {
        let Packer { compressor, turned } = self;
        let mut best: Option<(u8, Vec<u8>)> = None;
        let mut consider = |how: u8, bytes: &[u8]| -> Result<()> {
            let packed = compressor.compress(bytes)?;
            let least = best.as_ref().map_or(block.len(), |(_, bytes)| bytes.len());
            if packed.len() < least - least / 32 {
                best = Some((how, packed));
            }
            Ok(())
        };
        consider(PACKED, block)?;
        if unit > 1 {
            turn(block, unit, turned);
            consider(TURNED, turned)?;
            for plane in turned.chunks_exact_mut(block.len() / unit) {
                let mut before = 0;
                for byte in plane {
                    before = std::mem::replace(byte, byte.wrapping_sub(before));
                }
            }
            consider(STEPS, turned)?;
        }
        Ok(best)
    }
}

/// The bytes of elements of `unit` bytes, place by place.
fn turn(block: &[u8], unit: usize, out: &mut Vec<u8>) {
    out.clear();
    (0..unit).for_each(|byte| out.extend(block.iter().skip(byte).step_by(unit)));
}

/// What a reader keeps from one item to the next: the last block, the shelf, and what unpacking needs.
#[derive(Default)]
pub struct Open {
    /// The last block: the start of its run, its number in the run, and the block.
    block: Option<(u32, u32, Block)>,
    /// Number of the chunk that the reader reads. Names on the shelf have it.
    chunk: u64,
    /// Unpacked blocks of all chunks, or `None` if the reader keeps only the last block.
    shelf: Option<Arc<Shelf>>,
    /// Memory of an earlier block, for the next block.
    spare: Vec<u8>,
    decompressor: Option<Decompressor<'static>>,
}

enum Block {
    /// An uncompressed block: the offset of its first byte in the bytes of the chunk.
    Stored(usize),
    Unpacked(Arc<Unpacked>),
}

impl Open {
    /// Forgets the last block. The next bytes are those of chunk `chunk`, whose unpacked blocks `shelf` keeps if it is given.
    pub fn turn_to(&mut self, chunk: u64, shelf: Option<&Arc<Shelf>>) {
        self.close();
        self.chunk = chunk;
        self.shelf = shelf.cloned();
    }

    fn close(&mut self) {
        if let Some((.., Block::Unpacked(block))) = self.block.take()
            && let Some(block) = Arc::into_inner(block)
        {
            self.spare = block.bytes;
        }
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Open({:?})", self.block.as_ref().map(|(start, block, _)| (start, block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(run: &Run, bytes: &[u8], i: u32, open: &mut Open) -> Result<Vec<u8>> {
        let mut out = vec![0; run.item as usize];
        run.copy(bytes, i, open, &mut out).map(|()| out)
    }

    proptest! {
        #[test]
        fn any_item_comes_back_by_itself_and_in_any_order(
            unit in 1usize..9, elements in 1usize..6, count in 0usize..40, steep in any::<bool>(), level in prop::option::of(1i32..9),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..20), seed in any::<u64>(),
        ) {
            let size = unit * elements;
            let byte = |i: usize| if steep { (i / size) as u8 } else { (seed.rotate_left(i as u32) ^ i as u64) as u8 };
            let items: Vec<u8> = (0..count * size).map(byte).collect();
            let mut bytes = vec![7; 3];
            let run = Run::pack(&items, (size, unit), 5 * size, level, &mut bytes).unwrap();
            let mut written = Vec::new();
            run.write(&mut written);
            prop_assert_eq!(Run::read(written.first_chunk().unwrap(), bytes.len()).unwrap(), run);
            let mut open = Open::default();
            for i in order.iter().filter(|_| count > 0).map(|i| i.index(count)) {
                prop_assert_eq!(item(&run, &bytes, i as u32, &mut open).unwrap(), &items[i * size..][..size]);
            }
            prop_assert_eq!(item(&run, &bytes, count as u32, &mut open).unwrap_err().kind(), Kind::Missing);
        }
    }

    #[test]
    fn what_grows_evenly_takes_no_room_and_a_damaged_block_is_refused() {
        let items: Vec<u8> = (0..4000u32).flat_map(|i| [i, i + 3].map(u32::to_le_bytes).concat()).collect();
        let mut bytes = Vec::new();
        let run = Run::pack(&items, (8, 8), 16 << 10, Some(7), &mut bytes).unwrap();
        assert!(bytes.len() < items.len() / 40, "{}", bytes.len());
        let mut open = Open::default();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            open.turn_to(0, None);
            // The checksum is the file's: a block must not panic, and what it gives has its length.
            if let Err(e) = item(&run, &damaged, 3999, &mut open) {
                assert!(e.kind() == Kind::Corrupt && e.place().offset.is_some(), "{e}");
            }
        }
        let mut written = Vec::new();
        run.write(&mut written);
        for (word, value) in [(0, 0u32), (0, u32::MAX), (2, 0), (3, 3), (4, 9999), (1, u32::MAX)] {
            let mut wrong = written.clone();
            wrong[4 * word..][..4].copy_from_slice(&value.to_le_bytes());
            assert_eq!(
                Run::read(wrong.first_chunk().unwrap(), bytes.len()).unwrap_err().kind(),
                Kind::Corrupt,
                "{word}"
            );
        }
        assert_eq!(Run::pack(&items[1..], (8, 8), 9, Some(7), &mut bytes).unwrap_err().kind(), Kind::WrongSize);
    }
}
