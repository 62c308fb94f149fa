//! One compressed array of a Syzygy table: an index -> the stored value, by blocks of symbols that stand for pairs.
//! Every offset is checked before it is followed; bytes that lie are an error, never a panic or an endless loop.

use gristmill_bytes::error::{Error, Kind, Result};

/// Where the pieces of one compressed array lie in its file, and what was computed from its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Every position has this value.
    Constant(u16),
    /// Symbols in blocks.
    Blocks(Blocks),
}

/// A Huffman-coded array (docs/format/syzygy.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocks {
    block_bits: u8,
    span_bits: u8,
    shortest: u8,
    blocks: u32,
    /// Values that each block holds, less one: also of blocks that are not stored.
    counts: u32,
    /// By code length from the shortest on: least code, left-aligned in 64 bits, and its symbol.
    lengths: Vec<(u64, u16)>,
    /// By the first byte of a code: the shortest length that it may have, counted from the shortest of all.
    starts: Box<[u8; 256]>,
    /// Values that a symbol stands for, less one.
    spans: Vec<u8>,
    /// Offset of the symbols' pairs.
    symbols: usize,
    /// Offsets of the sparse index, the block counts and the blocks.
    sparse: usize,
    sizes: usize,
    data: usize,
    indices: u64,
}

/// Reads little-endian numbers off a file, with the place of what is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            let detail = format!("expected {count} bytes, the file ends at {}", self.bytes.len());
            return Err(Error::new(Kind::Truncated, detail).at_byte(self.at as u64));
        };
        self.at += count;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn corrupt(detail: &str, at: usize) -> Error {
    Error::new(Kind::Corrupt, format!("{detail}; fetch the table again")).at_byte(at as u64)
}

impl Pairs {
    /// Reads the header of an array of `positions` values; gives its flags too.
    pub(super) fn read(cursor: &mut Cursor<'_>, positions: u64, is_wdl: bool) -> Result<(Self, u8)> {
        let start = cursor.at;
        let flags = cursor.byte()?;
        if flags & 0x80 != 0 {
            let value = cursor.byte()?;
            return Ok((Pairs::Constant(if is_wdl { value.into() } else { 0 }), flags));
        }
        let head = cursor.take(9)?;
        let (block_bits, span_bits, padding) = (head[0], head[1], head[2]);
        let blocks = u32::from_le_bytes([head[3], head[4], head[5], head[6]]);
        let (longest, shortest) = (head[7], head[8]);
        if !(1..=31).contains(&span_bits) || block_bits > 31 || shortest < 1 || longest > 32 || longest < shortest {
            return Err(corrupt("sizes of blocks or lengths of codes are out of range", start));
        }
        let codes = usize::from(longest - shortest) + 1;
        let firsts = cursor.take(2 * codes)?;
        let symbols = usize::from(word(cursor.take(2)?, 0).unwrap_or(0));
        let pairs = cursor.at;
        let table = cursor.take(3 * symbols + symbols % 2)?;
        let lengths = lengths(firsts, shortest).ok_or_else(|| corrupt("codes do not form a prefix code", start))?;
        let blocks = Blocks {
            block_bits,
            span_bits,
            shortest,
            blocks,
            counts: blocks.checked_add(padding.into()).ok_or_else(|| corrupt("too many blocks", start))?,
            starts: Box::new(starts(&lengths)),
            lengths,
            spans: spans(table, symbols).ok_or_else(|| corrupt("symbols do not form trees", pairs))?,
            symbols: pairs,
            sparse: 0,
            sizes: 0,
            data: 0,
            indices: positions.div_ceil(1 << span_bits),
        };
        Ok((Pairs::Blocks(blocks), flags))
    }

    /// Takes the sparse index off `cursor`.
    pub(super) fn place_sparse(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        if let Pairs::Blocks(b) = self {
            b.sparse = cursor.at;
            let bytes = usize::try_from(6 * b.indices).map_err(|_| corrupt("the index is too large", cursor.at))?;
            cursor.take(bytes)?;
        }
        Ok(())
    }

    /// Takes the counts of the blocks off `cursor`.
    pub(super) fn place_sizes(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        if let Pairs::Blocks(b) = self {
            b.sizes = cursor.at;
            cursor.take(2 * b.counts as usize)?;
        }
        Ok(())
    }

    /// Takes the blocks off `cursor`.
    pub(super) fn place_data(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        cursor.align(64);
        if let Pairs::Blocks(b) = self {
            b.data = cursor.at;
            let bytes = u64::from(b.blocks) << b.block_bits;
            cursor.take(usize::try_from(bytes).map_err(|_| corrupt("the blocks are too large", b.data))?)?;
        }
        Ok(())
    }

    /// The value at `index`, in twelve bits. Errors: `Corrupt` where the array contradicts itself.
    pub(super) fn value(&self, bytes: &[u8], index: u64) -> Result<u16> {
        match self {
            Pairs::Constant(value) => Ok(*value),
            Pairs::Blocks(blocks) => {
                blocks.value(bytes, index).ok_or_else(|| corrupt("a value leads outside of its table", blocks.data))
            }
        }
    }
}

/// Least code and first symbol of each length; the least code of the longest length is 0.
fn lengths(firsts: &[u8], shortest: u8) -> Option<Vec<(u64, u16)>> {
    let count = firsts.len() / 2;
    let mut lengths = vec![(0u64, 0u16); count];
    let mut least = 0u64;
    for i in (0..count).rev() {
        let first = word(firsts, 2 * i)?;
        if i + 1 < count {
            least = (least + u64::from(first)).checked_sub(u64::from(lengths[i + 1].1))? / 2;
        }
        lengths[i] = (least, first);
    }
    for (i, (least, _)) in lengths.iter_mut().enumerate() {
        let bits = u32::from(shortest) + i as u32;
        if bits < 64 && *least >> bits != 0 {
            return None;
        }
        *least <<= 64 - bits;
    }
    Some(lengths)
}

/// For each first byte, the first length whose least code is not above all codes that begin so.
fn starts(lengths: &[(u64, u16)]) -> [u8; 256] {
    std::array::from_fn(|byte| {
        let greatest = (byte as u64) << 56 | u64::MAX >> 8;
        lengths.iter().position(|(least, _)| greatest >= *least).unwrap_or(0) as u8
    })
}

/// The two symbols that a symbol stands for; the second is `LEAF` where the first is a value.
fn halves(table: &[u8], symbol: usize) -> Option<[u16; 2]> {
    let [a, b, c] = *table.get(3 * symbol..)?.first_chunk()?;
    Some([u16::from(b & 15) << 8 | u16::from(a), u16::from(c) << 4 | u16::from(b >> 4)])
}

const LEAF: u16 = 0xfff;

/// How many values each symbol stands for, less one; `None` when a symbol contains itself or stands for more than 256.
fn spans(table: &[u8], symbols: usize) -> Option<Vec<u8>> {
    let mut spans: Vec<Option<u8>> = vec![None; symbols];
    let mut open = Vec::new();
    for root in 0..symbols {
        open.push((root, false));
        while let Some((symbol, entered)) = open.pop() {
            if spans.get(symbol)?.is_some() {
                continue;
            }
            let [left, right] = halves(table, symbol)?;
            if right == LEAF {
                spans[symbol] = Some(0);
                continue;
            }
            let (left, right) = (usize::from(left), usize::from(right));
            match (*spans.get(left)?, *spans.get(right)?) {
                (Some(a), Some(b)) => spans[symbol] = Some(a.checked_add(b)?.checked_add(1)?),
                // Both halves were visited and one still has no span: it contains this symbol.
                _ if entered => return None,
                _ => open.extend([(symbol, true), (left, false), (right, false)]),
            }
            if open.len() > 4 * symbols + 4 {
                return None;
            }
        }
    }
    spans.into_iter().collect()
}

impl Blocks {
    fn value(&self, bytes: &[u8], index: u64) -> Option<u16> {
        let span = 1i64 << self.span_bits;
        let entry = self.sparse + usize::try_from(6 * (index >> self.span_bits)).ok()?;
        if index >> self.span_bits >= self.indices {
            return None;
        }
        let mut block = double(bytes, entry)?;
        let within = i64::try_from(index).ok()? & (span - 1);
        let mut left = within - span / 2 + i64::from(word(bytes, entry + 4)?);
        let count = |block: u32| -> Option<i64> {
            (block < self.counts).then_some(())?;
            Some(i64::from(word(bytes, self.sizes + 2 * block as usize)?) + 1)
        };
        while left < 0 {
            block = block.checked_sub(1)?;
            left += count(block)?;
        }
        while left >= count(block)? {
            left -= count(block)?;
            block += 1;
        }
        if block >= self.blocks {
            return None;
        }
        let symbol = self.symbol(bytes, block, &mut left)?;
        self.descend(bytes, symbol, left)
    }

    /// The symbol of `block` that holds the value `left` places on; `left` becomes the place within the symbol.
    fn symbol(&self, bytes: &[u8], block: u32, left: &mut i64) -> Option<u16> {
        let start = self.data + ((block as usize) << self.block_bits);
        let end = start + (1usize << self.block_bits);
        let data = bytes.get(start..end)?;
        let mut code = u64::from_be_bytes(*data.first_chunk()?);
        let (mut next, mut empty) = (8, 0);
        loop {
            let mut i = usize::from(self.starts[(code >> 56) as usize]);
            // The least code of the last length is 0.
            let (least, first) = loop {
                match *self.lengths.get(i)? {
                    (least, first) if code >= least => break (least, first),
                    _ => i += 1,
                }
            };
            let bits = u32::from(self.shortest) + i as u32;
            let symbol = u64::from(first) + ((code - least) >> (64 - bits));
            let span = i64::from(*self.spans.get(usize::try_from(symbol).ok()?)?) + 1;
            if *left < span {
                return u16::try_from(symbol).ok();
            }
            *left -= span;
            code <<= bits;
            empty += bits;
            if empty >= 32 {
                empty -= 32;
                let more = match data.get(next..next + 4) {
                    Some(more) => u32::from_be_bytes(*more.first_chunk()?),
                    None if next < data.len() + 32 => 0,
                    None => return None,
                };
                code |= u64::from(more) << empty;
                next += 4;
            }
        }
    }

    /// The value `left` places into `symbol`.
    fn descend(&self, bytes: &[u8], mut symbol: u16, mut left: i64) -> Option<u16> {
        let table = bytes.get(self.symbols..)?;
        while *self.spans.get(usize::from(symbol))? > 0 {
            let [first, second] = halves(table, symbol.into())?;
            let span = i64::from(*self.spans.get(usize::from(first))?) + 1;
            if left < span {
                symbol = first;
            } else {
                left -= span;
                symbol = second;
            }
        }
        Some(halves(table, symbol.into())?[0])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCK_BITS: u8 = 4;
    const SPAN_BITS: u8 = 5;

    /// An array of values below 8, in codes of five bits: eight values, and symbols that stand for two equal ones,
    /// for two of those, and so on.
    fn write(values: &[u16]) -> Vec<u8> {
        let mut symbols: Vec<[u16; 2]> = (0..8).map(|value| [value, LEAF]).collect();
        symbols.extend((0..8).map(|i| [i, i]));
        symbols.extend((8..16).map(|i| [i, i]));
        let mut blocks: Vec<(Vec<u16>, usize)> = vec![(Vec::new(), 0)];
        let mut at = 0;
        while at < values.len() {
            let run = values[at..].iter().take_while(|v| **v == values[at]).count();
            let (symbol, span) = [(16, 4), (8, 2), (0, 1)].into_iter().find(|(_, span)| *span <= run).unwrap();
            // 16 bytes hold 25 codes.
            if blocks.last().unwrap().0.len() == 25 {
                blocks.push((Vec::new(), 0));
            }
            let (codes, count) = blocks.last_mut().unwrap();
            codes.push(symbol + values[at]);
            *count += span;
            at += span;
        }
        let mut bytes = vec![0, BLOCK_BITS, SPAN_BITS, 0];
        bytes.extend(u32::try_from(blocks.len()).unwrap().to_le_bytes());
        bytes.extend([5, 5, 0, 0]);
        bytes.extend(u16::try_from(symbols.len()).unwrap().to_le_bytes());
        for [left, right] in symbols {
            bytes.extend([left as u8, (left >> 8) as u8 | (right << 4) as u8, (right >> 4) as u8]);
        }
        for middle in (0..values.len()).step_by(1 << SPAN_BITS).map(|start| start + (1 << (SPAN_BITS - 1))) {
            let (mut block, mut left) = (0u32, middle);
            while block as usize + 1 < blocks.len() && left >= blocks[block as usize].1 {
                left -= blocks[block as usize].1;
                block += 1;
            }
            bytes.extend(block.to_le_bytes());
            bytes.extend(u16::try_from(left).unwrap().to_le_bytes());
        }
        for (_, count) in &blocks {
            bytes.extend(u16::try_from(count - 1).unwrap().to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        for (codes, _) in blocks {
            let bits = codes.iter().fold(0u128, |bits, code| bits << 5 | u128::from(*code));
            bytes.extend((bits << (128 - 5 * codes.len())).to_be_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8], positions: u64) -> Result<Pairs> {
        let mut cursor = Cursor { bytes, at: 0 };
        let (mut pairs, _) = Pairs::read(&mut cursor, positions, true)?;
        pairs.place_sparse(&mut cursor)?;
        pairs.place_sizes(&mut cursor)?;
        pairs.place_data(&mut cursor)?;
        Ok(pairs)
    }

    #[test]
    fn symbols_that_contain_themselves_are_refused() {
        let table = |symbols: &[[u16; 2]]| -> Vec<u8> {
            let three = |[l, r]: &[u16; 2]| [*l as u8, (l >> 8) as u8 | (r << 4) as u8, (r >> 4) as u8];
            symbols.iter().flat_map(three).collect()
        };
        assert_eq!(spans(&table(&[[3, LEAF], [0, 0], [1, 1]]), 3), Some(vec![0, 1, 3]));
        for bad in [&[[0, 0]][..], &[[1, 1], [0, 0]], &[[5, LEAF], [0, 9]], &[[0, LEAF], [2, 0], [1, 0]]] {
            assert_eq!(spans(&table(bad), bad.len()), None, "{bad:?}");
        }
        let doubling: Vec<[u16; 2]> = (0..10).map(|i| if i == 0 { [0, LEAF] } else { [i - 1, i - 1] }).collect();
        assert_eq!(spans(&table(&doubling), 10), None, "more than 256 values");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(runs in prop::collection::vec((0u16..8, 1usize..30), 1..60)) {
            let values: Vec<u16> = runs.into_iter().flat_map(|(value, n)| vec![value; n]).collect();
            let bytes = write(&values);
            let pairs = read(&bytes, values.len() as u64).unwrap();
            for (i, value) in values.iter().enumerate() {
                prop_assert_eq!(pairs.value(&bytes, i as u64).unwrap(), *value);
            }
            prop_assert!(pairs.value(&bytes, values.len().next_multiple_of(32) as u64).is_err());
        }

        #[test]
        fn no_damage_makes_it_panic(
            damage in prop::collection::vec((0usize..700, any::<u8>()), 1..12), cut in 0usize..700, index in any::<u64>(),
        ) {
            let values: Vec<u16> = (0..400u32).map(|i| (i * i / 7 % 8) as u16).collect();
            let mut bytes = write(&values);
            for (at, value) in damage {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            if cut >= 100 {
                bytes.truncate(cut);
            }
            if let Ok(pairs) = read(&bytes, 400) {
                for i in (0..400).chain([index]) {
                    let _ = pairs.value(&bytes, i);
                }
            }
        }
    }
}
