//! Numbers as they come <-> how often each number comes, in blocks of bytes. Blocks may stand in any order, so tallies can be joined.
//! In bounded memory, however many numbers there are. Bytes in, bytes out. The layout is `docs/format/tally.md`.

use std::io::{ErrorKind, Read};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Kind, Result};

/// What a block begins with; the digit is the version.
pub const MAGIC: [u8; 4] = *b"GMT1";

/// Bytes before the pairs, and of the checksum after them.
const HEADER: usize = 20;
const CHECKSUM: usize = 8;

/// Most pairs of a block.
pub const MOST_PAIRS: usize = 1 << 16;

/// Most bytes of a pair: a difference and a count.
const PAIR: usize = 20;

/// Numbers that come in before they are sorted.
const FRESH: usize = 1 << 20;

/// Different numbers that are held before they are written.
const HELD: usize = 1 << 22;

/// Numbers of one group, and how often each came.
#[derive(Debug, Default)]
pub struct Tally {
    fresh: Vec<u64>,
    /// Ascending.
    held: Vec<(u64, u64)>,
}

impl Tally {
    /// Counts a number. Returns whether the tally is full and should be written.
    pub fn add(&mut self, number: u64) -> bool {
        self.fresh.push(number);
        if self.fresh.len() >= FRESH {
            self.settle();
        }
        self.held.len() >= HELD
    }

    /// Appends all counts to `out`, as blocks of `group`, and empties the tally.
    pub fn write(&mut self, group: u32, out: &mut Vec<u8>) {
        self.settle();
        self.held.chunks(MOST_PAIRS).for_each(|pairs| block(group, pairs, out));
        self.held.clear();
    }

    /// Counts the numbers that came in.
    fn settle(&mut self) {
        self.fresh.sort_unstable();
        let mut fresh = self.fresh.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).peekable();
        let mut held = Vec::with_capacity(self.held.len() + 1024);
        for (number, count) in self.held.drain(..) {
            held.extend(std::iter::from_fn(|| fresh.next_if(|(fresh, _)| *fresh < number)));
            let more = fresh.next_if(|(fresh, _)| *fresh == number).map_or(0, |(_, more)| more);
            held.push((number, count + more));
        }
        held.extend(fresh);
        self.held = held;
        self.fresh.clear();
    }
}

/// Appends a block of ascending numbers and their counts.
fn block(group: u32, pairs: &[(u64, u64)], out: &mut Vec<u8>) {
    let start = out.len();
    let shift = pairs.iter().fold(0, |all, (number, _)| all | number).trailing_zeros() % 64;
    out.extend_from_slice(&MAGIC);
    for number in [group, pairs.len() as u32, 0, shift] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let mut before = 0;
    for (number, count) in pairs {
        put(out, (number >> shift) - before);
        put(out, *count);
        before = number >> shift;
    }
    let bytes = (out.len() - start - HEADER) as u32;
    out[start + 12..start + 16].copy_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&xxh3_64(&out[start..]).to_le_bytes());
}

/// Seven bits a byte, the lowest first; the highest bit of a byte says that more follow.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7F);
        number |= bits << (7 * place);
        if byte & 0x80 == 0 {
            return (place < 9 || bits <= 1).then_some(number);
        }
    }
    None
}

/// Reads blocks to the end. It calls `each` with group, number and count; the numbers of a block ascend, and another block may have the same
/// ones. A block is checked before any of it is given out.
///
/// Errors, with the byte: `UnknownFormat`, `Truncated`, `Corrupt`, and what `from` gives; whatever `each` returns.
pub fn read(from: &mut impl Read, each: &mut dyn FnMut(u32, u64, u64) -> Result<()>) -> Result<()> {
    let (mut at, mut block) = (0u64, Vec::new());
    loop {
        block.resize(HEADER, 0);
        let found = fill(from, &mut block)?;
        if found == 0 {
            return Ok(());
        }
        let wrong = |kind, byte: usize, detail: &str| Err(Error::new(kind, detail).at_byte(at + byte as u64));
        if !MAGIC.starts_with(&block[..found.min(MAGIC.len())]) {
            return wrong(Kind::UnknownFormat, 0, "no block of a tally of this version begins here");
        }
        let [group, pairs, bytes, shift] = [4, 8, 12, 16].map(|byte| word(&block, byte));
        let (pairs, bytes) = (pairs as usize, bytes as usize);
        let fits = (1..=MOST_PAIRS).contains(&pairs) && (2 * pairs..=PAIR * pairs).contains(&bytes) && shift < 64;
        if found == HEADER && !fits {
            return wrong(Kind::Corrupt, 8, &format!("a block of {pairs} pairs in {bytes} bytes, which cannot be"));
        }
        if found == HEADER {
            block.resize(HEADER + bytes + CHECKSUM, 0);
            let rest = fill(from, &mut block[HEADER..])?;
            if rest < bytes + CHECKSUM {
                return wrong(Kind::Truncated, HEADER + rest, "a tally ends within a block");
            }
        } else {
            return wrong(Kind::Truncated, found, "a tally ends within a block");
        }
        let (sealed, sum) = block.split_at(HEADER + bytes);
        if sum != xxh3_64(sealed).to_le_bytes() {
            return wrong(Kind::Corrupt, 0, "this block of a tally does not have its checksum");
        }
        let (mut rest, mut number) = (&sealed[HEADER..], 0u64);
        for pair in 0..pairs {
            let byte = HEADER + bytes - rest.len();
            let read = take(&mut rest).zip(take(&mut rest));
            let next = read.and_then(|(more, count)| Some((number.checked_add(more)?, more, count)));
            let next =
                next.filter(|(next, more, count)| *count > 0 && (pair == 0 || *more > 0) && *next <= u64::MAX >> shift);
            let Some((next, _, count)) = next else {
                return wrong(Kind::Corrupt, byte, "a number and a count that cannot be");
            };
            number = next;
            each(group, number << shift, count).map_err(|e| e.at_byte(at + byte as u64))?;
        }
        if !rest.is_empty() {
            return wrong(Kind::Corrupt, HEADER + bytes - rest.len(), "bytes after the last pair of a block");
        }
        at += block.len() as u64;
    }
}

/// Reads until `into` is full or there is no more; how many bytes that were.
fn fill(from: &mut impl Read, into: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match from.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(filled)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Counts = BTreeMap<(u32, u64), u64>;

    fn counted(bytes: &[u8]) -> Result<Counts> {
        let mut counts = Counts::new();
        read(&mut &bytes[..], &mut |group, number, count| {
            *counts.entry((group, number)).or_default() += count;
            Ok(())
        })?;
        Ok(counts)
    }

    fn written(group: u32, numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let (mut tally, mut out) = (Tally::default(), Vec::new());
        numbers.into_iter().for_each(|number| assert!(!tally.add(number)));
        tally.write(group, &mut out);
        out
    }

    #[test]
    fn parts_in_any_order_are_the_tally_of_all() {
        let numbers: Vec<u64> = (0..200_000u64).map(|i| (i * i % 70_001) << 29).chain([0, 1, u64::MAX]).collect();
        let mut expected = Counts::new();
        numbers.iter().for_each(|number| *expected.entry((2, *number)).or_default() += 1);
        let whole = written(2, numbers.iter().copied());
        assert_eq!(counted(&whole).unwrap(), expected);
        for parts in [2, 3, 7] {
            let mut bytes: Vec<_> =
                numbers.chunks(numbers.len() / parts).map(|part| written(2, part.to_vec())).collect();
            bytes.reverse();
            assert_eq!(counted(&bytes.concat()).unwrap(), expected, "{parts} parts");
        }
        assert_eq!(counted(&[]).unwrap(), Counts::new());
        assert_eq!(written(1, []), Vec::<u8>::new());
    }

    #[test]
    fn numbers_that_end_with_zeros_take_few_bytes() {
        let whole = written(0, (1..60_000u64).map(|i| (-(i as f64)).abs().to_bits()));
        assert!(whole.len() < 240_000, "{}", whole.len());
    }

    #[test]
    fn a_tally_that_holds_many_is_written_and_begins_again() {
        let (mut tally, mut out, mut times) = (Tally::default(), Vec::new(), 0);
        for number in 0..(HELD + FRESH) as u64 {
            if tally.add(number) {
                tally.write(0, &mut out);
                times += 1;
            }
        }
        assert!(times == 1 && tally.held.len() <= FRESH, "{times}");
        tally.write(0, &mut out);
        let mut next = 0;
        read(&mut &out[..], &mut |_, number, count| {
            assert_eq!((number, count), (next, 1));
            next += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(next, (HELD + FRESH) as u64);
    }

    #[test]
    fn every_damaged_byte_is_found_with_its_place() {
        let bytes = [written(0, [5, 5, 9 << 40]), written(1, [7, 300, 300])].concat();
        let first = written(0, [5, 5, 9 << 40]).len();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let e = counted(&damaged).unwrap_err();
            assert!(e.place().offset.is_some_and(|byte| byte <= bytes.len() as u64), "{at}: {e}");
            if at > 0 && at != first {
                let cut = counted(&bytes[..at]).unwrap_err();
                assert!(cut.kind() == Kind::Truncated && cut.place().offset == Some(at as u64), "{at}: {cut}");
            }
        }
    }

    #[test]
    fn what_has_its_checksum_and_cannot_be_is_refused() {
        let sealed = |at: usize, byte: u8| {
            let mut bytes = written(0, [5, 6]);
            bytes.truncate(bytes.len() - CHECKSUM);
            bytes[at] = byte;
            bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
            counted(&bytes)
        };
        assert!(sealed(4, 9).is_ok());
        for (at, byte) in [(8, 0), (10, 2), (12, 99), (16, 64), (HEADER + 1, 0), (HEADER + 2, 0), (HEADER + 3, 0x80)] {
            let e = sealed(at, byte).unwrap_err();
            assert!(matches!(e.kind(), Kind::Corrupt | Kind::Truncated) && e.place().offset.is_some(), "{at}: {e}");
        }
    }

    /// What a tally is on disk is a promise: a change here is a change of format.
    #[test]
    fn the_bytes_are_the_published_ones() {
        let text: String = written(1, [512, 512, 1536]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, GOLDEN);
        assert!(PAGE.replace('\n', "").contains(GOLDEN), "the page has other bytes");
    }

    const PAGE: &str = include_str!("../../../../docs/format/tally.md");

    const GOLDEN: &str = "474d543101000000020000000400000009000000010202019d54800dfa0c25b9";
}
