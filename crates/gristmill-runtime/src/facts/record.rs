//! Facts <-> the bytes of one record of the side index (`docs/format/side-index.md`).
//! Each record stands alone and carries its checksum; every length is checked against the bytes there are.

use std::num::NonZeroU32;

use gristmill_format::container::tar::{Slot, TarIndex};
use gristmill_format::demo::shard::ShardIndex;
use gristmill_format::demo::trajectory::End;
use gristmill_format::head::{Head, PARTS};
use gristmill_format::source::Span;
use xxhash_rust::xxh3::xxh3_64;

use crate::store::FileStat;

/// The first four bytes of every record.
pub const MAGIC: [u8; 4] = *b"GMF1";

/// Version of the newest payloads. Each kind has that of which it came; facts of another version are not used.
pub const VERSION: u32 = 2;

/// Largest payload in bytes; facts that need more are not kept.
pub const MAX_PAYLOAD: usize = 64 << 20;

/// Bytes before the payload: magic, length, checksum.
pub(super) const HEAD: usize = 16;

/// The kind of [`Fact::Tar`].
pub(super) const TAR: u8 = 1;
const FRAMES: u8 = 2;
const WEIGHTS: u8 = 3;
/// The kind of [`Fact::Shard`].
pub(super) const SHARD: u8 = 4;
const HEADS: u8 = 5;

/// The version that brought a kind: who knows none but older ones passes it over.
fn version(kind: u8) -> u32 {
    if kind == HEADS { VERSION } else { 1 }
}

/// Bytes of one chunk's sums: its index, those of [`Head`].
const HEAD_BYTES: usize = 16 + 4 * (PARTS - 1);

/// Flags of a shard: what follows from the place of its frames, and what does not.
const SHUFFLED: u8 = 1;
const HAS_META: u8 = 2;
/// Nothing comes after the end mark; records of readers that did not look there lack it.
const ENDS: u8 = 4;

/// What one record says about a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fact {
    /// The members of a tar.
    Tar(TarIndex),
    /// Chunks and how many frames each has.
    Frames(Vec<(u32, u32)>),
    /// A weigher's id; chunks and what each weighs by it.
    Weights(u64, Vec<(u32, f32)>),
    /// Where the frames of a shard lie and its trajectories end.
    Shard(ShardIndex),
    /// Chunks and what each is held against when its head alone is inflated.
    Heads(Vec<(u32, Head)>),
}

impl Fact {
    fn kind(&self) -> u8 {
        match self {
            Fact::Tar(_) => TAR,
            Fact::Frames(_) => FRAMES,
            Fact::Weights(..) => WEIGHTS,
            Fact::Shard(_) => SHARD,
            Fact::Heads(_) => HEADS,
        }
    }
}

/// The file a record is about: as it was when the fact was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct About<'a> {
    pub(super) name: &'a str,
    pub(super) size: u64,
    pub(super) mtime_ns: i64,
    pub(super) inode: u64,
}

impl<'a> About<'a> {
    pub(super) fn of(file: &'a FileStat) -> Self {
        About { name: &file.name, size: file.size, mtime_ns: file.mtime_ns, inode: file.inode }
    }
}

/// Appends a record to `out`; false, and nothing appended, when it is too large to keep.
pub(super) fn write(about: About<'_>, fact: &Fact, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; HEAD - 4]);
    out.extend_from_slice(&version(fact.kind()).to_le_bytes());
    let fits = text(about.name, out);
    out.extend_from_slice(&about.size.to_le_bytes());
    out.extend_from_slice(&about.mtime_ns.to_le_bytes());
    out.extend_from_slice(&about.inode.to_le_bytes());
    out.push(fact.kind());
    let fits = fits
        && match fact {
            Fact::Tar(index) => {
                let fits = count(index.len(), out);
                for slot in index.slots() {
                    out.extend_from_slice(&slot.offset.to_le_bytes());
                    out.extend_from_slice(&slot.len.to_le_bytes());
                    out.extend_from_slice(&slot.name_end.to_le_bytes());
                }
                fits && text(index.names(), out)
            }
            Fact::Frames(frames) => {
                let fits = count(frames.len(), out);
                for (chunk, frames) in frames {
                    out.extend_from_slice(&chunk.to_le_bytes());
                    out.extend_from_slice(&frames.to_le_bytes());
                }
                fits
            }
            Fact::Weights(weigher, weights) => {
                let fits = count(weights.len(), out);
                out.extend_from_slice(&weigher.to_le_bytes());
                for (chunk, weight) in weights {
                    out.extend_from_slice(&chunk.to_le_bytes());
                    out.extend_from_slice(&weight.to_le_bytes());
                }
                fits
            }
            Fact::Shard(index) => shard(index, out),
            Fact::Heads(heads) => {
                let fits = count(heads.len(), out);
                for (chunk, Head { stored, len, sums }) in heads {
                    out.extend_from_slice(&chunk.to_le_bytes());
                    out.extend_from_slice(&stored.to_le_bytes());
                    out.extend_from_slice(&len.get().to_le_bytes());
                    sums.iter().for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()));
                }
                fits
            }
        };
    let payload = out.len() - start - HEAD;
    let (true, true, Ok(len)) = (fits, payload <= MAX_PAYLOAD, u32::try_from(payload)) else {
        out.truncate(start);
        return false;
    };
    let sum = xxh3_64(&out[start + HEAD..]);
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    out[start + 8..start + 16].copy_from_slice(&sum.to_le_bytes());
    true
}

fn shard(index: &ShardIndex, out: &mut Vec<u8>) -> bool {
    let fits = count(index.frames.len(), out);
    let span = |span: &Span, out: &mut Vec<u8>| {
        out.extend_from_slice(&span.offset.to_le_bytes());
        out.extend_from_slice(&span.len.to_le_bytes());
    };
    index.frames.iter().for_each(|frame| span(frame, out));
    out.push((u8::from(index.shuffled) * SHUFFLED) | (u8::from(index.meta.is_some()) * HAS_META) | ENDS);
    span(&index.meta.unwrap_or_default(), out);
    let fits = fits && count(index.ends.len(), out);
    for (end, how) in &index.ends {
        // No end is beyond the frames, whose number fits.
        out.extend_from_slice(&u32::try_from(*end).unwrap_or(u32::MAX).to_le_bytes());
        out.push(u8::from(*how == End::Truncated));
    }
    fits
}

fn count(n: usize, out: &mut Vec<u8>) -> bool {
    let n = u32::try_from(n);
    out.extend_from_slice(&n.unwrap_or(0).to_le_bytes());
    n.is_ok()
}

fn text(text: &str, out: &mut Vec<u8>) -> bool {
    let fits = count(text.len(), out);
    out.extend_from_slice(text.as_bytes());
    fits
}

/// The payload of the record that starts at the first byte of `bytes`, if a whole and undamaged one does.
pub(crate) fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = Rest(bytes);
    if rest.take::<4>()? != MAGIC {
        return None;
    }
    let len = u32::from_le_bytes(rest.take()?) as usize;
    let sum = u64::from_le_bytes(rest.take()?);
    let payload = rest.0.get(..len).filter(|_| len <= MAX_PAYLOAD)?;
    (xxh3_64(payload) == sum).then_some(payload)
}

/// The file that a payload is about, and the kind of its fact; `None` for another version.
pub(super) fn about(payload: &[u8]) -> Option<(About<'_>, u8)> {
    Rest(payload).about()
}

/// Takes a payload apart; `None` for another version or a payload that contradicts itself.
pub(super) fn read(payload: &[u8]) -> Option<(About<'_>, Fact)> {
    let mut rest = Rest(payload);
    let (about, kind) = rest.about()?;
    let n = u32::from_le_bytes(rest.take()?) as usize;
    let fact = match kind {
        TAR => {
            let slots = rest.each::<20>(n)?.map(|slot| {
                let mut slot = Rest(slot);
                Some(Slot {
                    offset: u64::from_le_bytes(slot.take()?),
                    len: u64::from_le_bytes(slot.take()?),
                    name_end: u32::from_le_bytes(slot.take()?),
                })
            });
            let slots = slots.collect::<Option<Vec<_>>>()?;
            Fact::Tar(TarIndex::from_parts(rest.text()?.to_owned(), slots, Vec::new()).ok()?)
        }
        FRAMES => {
            let pairs = rest.each::<8>(n)?.map(|pair| {
                let mut pair = Rest(pair);
                Some((u32::from_le_bytes(pair.take()?), u32::from_le_bytes(pair.take()?)))
            });
            Fact::Frames(pairs.collect::<Option<_>>()?)
        }
        WEIGHTS => {
            let weigher = u64::from_le_bytes(rest.take()?);
            let pairs = rest.each::<8>(n)?.map(|pair| {
                let mut pair = Rest(pair);
                let (chunk, weight) = (u32::from_le_bytes(pair.take()?), f32::from_le_bytes(pair.take()?));
                (weight.is_finite() && weight >= 0.0).then_some((chunk, weight))
            });
            Fact::Weights(weigher, pairs.collect::<Option<_>>()?)
        }
        SHARD => Fact::Shard(rest.shard(n)?),
        HEADS => {
            let heads = rest.each::<HEAD_BYTES>(n)?.map(|head| {
                let mut head = Rest(head);
                let chunk = u32::from_le_bytes(head.take()?);
                let stored = u64::from_le_bytes(head.take()?);
                let len = NonZeroU32::new(u32::from_le_bytes(head.take()?))?;
                let mut sums = [0; PARTS - 1];
                for sum in &mut sums {
                    *sum = u32::from_le_bytes(head.take()?);
                }
                Some((chunk, Head { stored, len, sums }))
            });
            Fact::Heads(heads.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    rest.0.is_empty().then_some((about, fact))
}

/// What of a payload is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn about(&mut self) -> Option<(About<'a>, u8)> {
        let of_version = u32::from_le_bytes(self.take()?);
        let name = self.text()?;
        let size = u64::from_le_bytes(self.take()?);
        let mtime_ns = i64::from_le_bytes(self.take()?);
        let inode = u64::from_le_bytes(self.take()?);
        let [kind] = self.take()?;
        (of_version == version(kind)).then_some((About { name, size, mtime_ns, inode }, kind))
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn span(&mut self) -> Option<Span> {
        Some(Span { offset: u64::from_le_bytes(self.take()?), len: u64::from_le_bytes(self.take()?) })
    }

    /// The index of a shard of `n` frames: its trajectories are not empty, and together have all of them.
    fn shard(&mut self, n: usize) -> Option<ShardIndex> {
        let frames = self.each::<16>(n)?.map(|place| Rest(place).span()).collect::<Option<Vec<_>>>()?;
        let [flags] = self.take()?;
        if flags & ENDS == 0 {
            return None;
        }
        let meta = self.span().map(|span| (flags & HAS_META != 0).then_some(span))?;
        let count = u32::from_le_bytes(self.take()?) as usize;
        let (mut ends, mut last) = (Vec::new(), 0);
        for end in self.each::<5>(count)? {
            let mut end = Rest(end);
            let (frame, [how]) = (u32::from_le_bytes(end.take()?) as usize, end.take()?);
            if frame <= last || how > 1 {
                return None;
            }
            last = frame;
            ends.push((frame, if how == 1 { End::Truncated } else { End::Terminated }));
        }
        (last == n).then_some(ShardIndex { frames, ends, meta, shuffled: flags & SHUFFLED != 0, behind: None })
    }

    /// The next `n` pieces of `N` bytes, all of which must be there.
    fn each<const N: usize>(&mut self, n: usize) -> Option<impl Iterator<Item = &'a [u8]> + use<'a, N>> {
        let (pieces, rest) = self.0.split_at_checked(n.checked_mul(N)?)?;
        self.0 = rest;
        Some(pieces.chunks_exact(N))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ABOUT: About<'_> = About { name: "a/b.tar", size: 21_504, mtime_ns: -5, inode: 77 };

    fn index() -> TarIndex {
        let slots = vec![Slot { offset: 512, len: 30, name_end: 3 }, Slot { offset: 1536, len: 0, name_end: 5 }];
        TarIndex::from_parts("one22".into(), slots, Vec::new()).unwrap()
    }

    #[test]
    fn records_come_back_as_they_were() {
        let weights = Fact::Weights(77, vec![(3, 0.5), (0, 0.0)]);
        let shard = ShardIndex {
            frames: vec![Span { offset: 9216, len: 4100 }, Span { offset: 2048, len: 7000 }],
            ends: vec![(1, End::Terminated), (2, End::Truncated)],
            meta: Some(Span { offset: 512, len: 1000 }),
            shuffled: true,
            behind: None,
        };
        let bare = ShardIndex { meta: None, shuffled: false, ..shard.clone() };
        for fact in [
            Fact::Tar(index()),
            Fact::Frames(vec![(0, 26), (7, 133)]),
            Fact::Frames(Vec::new()),
            weights,
            Fact::Shard(shard),
            Fact::Shard(bare),
            Fact::Shard(ShardIndex::default()),
            Fact::Heads(vec![(9, Head::of(b"gz", b"some records").unwrap()), (2, Head::of(b"", b"1").unwrap())]),
        ] {
            let mut bytes = b"others".to_vec();
            assert!(write(ABOUT, &fact, &mut bytes));
            assert_eq!(read(payload(&bytes[6..]).unwrap()).unwrap(), (ABOUT, fact));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let mut bytes = Vec::new();
        write(ABOUT, &Fact::Frames(vec![(1, 26)]), &mut bytes);
        let sum = xxh3_64(&bytes[16..]).to_le_bytes();
        let mut expected = b"GMF1\x34\0\0\0".to_vec();
        expected.extend_from_slice(&sum);
        expected.extend_from_slice(b"\x01\0\0\0\x07\0\0\0a/b.tar\0\x54\0\0\0\0\0\0");
        expected.extend_from_slice(b"\xfb\xff\xff\xff\xff\xff\xff\xff\x4d\0\0\0\0\0\0\0");
        expected.extend_from_slice(b"\x02\x01\0\0\0\x01\0\0\0\x1a\0\0\0");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_weight_that_cannot_be_is_not_read() {
        for weight in [-1.0, f32::NAN, f32::INFINITY] {
            let mut bytes = Vec::new();
            write(ABOUT, &Fact::Weights(1, vec![(0, weight)]), &mut bytes);
            assert_eq!(read(payload(&bytes).unwrap()), None);
        }
    }

    #[test]
    fn trajectories_that_do_not_add_up_are_not_read() {
        let of = |ends: &[usize]| {
            let ends = ends.iter().map(|end| (*end, End::Terminated)).collect();
            let frames = vec![Span::default(); 3];
            let mut bytes = Vec::new();
            assert!(write(ABOUT, &Fact::Shard(ShardIndex { frames, ends, ..ShardIndex::default() }), &mut bytes));
            read(payload(&bytes).unwrap()).is_some()
        };
        assert!(of(&[1, 3]));
        for ends in [&[1, 2][..], &[1, 1, 3], &[4], &[]] {
            assert!(!of(ends), "{ends:?}");
        }
    }

    #[test]
    fn a_shard_of_before_its_ends_were_noted_is_not_read() {
        let of = |shuffled| {
            let mut bytes = Vec::new();
            assert!(write(ABOUT, &Fact::Shard(ShardIndex { shuffled, ..ShardIndex::default() }), &mut bytes));
            bytes.split_off(HEAD)
        };
        let (mut plain, shuffled) = (of(false), of(true));
        let flags = plain.iter().zip(&shuffled).position(|(a, b)| a != b).unwrap();
        assert!(read(&plain).is_some());
        plain[flags] &= !ENDS;
        assert_eq!(read(&plain), None);
    }

    #[test]
    fn another_version_is_not_read() {
        let heads = Fact::Heads(vec![(1, Head::of(b"gz", b"records").unwrap())]);
        for (fact, version) in [(Fact::Frames(vec![(1, 26)]), 1), (heads, 2)] {
            for other in [1, 2, 3].into_iter().filter(|other| *other != version) {
                let mut bytes = Vec::new();
                write(ABOUT, &fact, &mut bytes);
                assert_eq!(bytes[16], version);
                bytes[16] = other;
                assert_eq!(payload(&bytes), None, "the checksum is over the version too");
                assert_eq!(read(&bytes[16..]), None);
            }
        }
    }

    #[test]
    fn the_head_of_the_format_page_is_one() {
        let page = include_str!("../../../../docs/format/side-index.md");
        let hex: String = page.split("```\n").nth(1).unwrap().split_whitespace().collect();
        let mut bytes = Vec::new();
        let head = Head::of(b"stored bytes", &(0..100).collect::<Vec<u8>>()).unwrap();
        write(ABOUT, &Fact::Heads(vec![(7, head)]), &mut bytes);
        let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, written, "docs/format/side-index.md");
        assert_eq!(read(payload(&bytes).unwrap()).unwrap().1, Fact::Heads(vec![(7, head)]));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_no_length_is_believed(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(payload(&bytes), None);
            let _ = read(&bytes);
        }

        #[test]
        fn a_flipped_bit_is_noticed(at in 0usize..68, bit in 0u8..8) {
            let mut bytes = Vec::new();
            write(ABOUT, &Fact::Frames(vec![(1, 26)]), &mut bytes);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(payload(&bytes), None);
        }
    }
}
