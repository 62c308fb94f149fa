//! Gzip bytes, good and bad: members, padding, damage, bombs and lying sizes.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use gristmill_format::container::gzip::{Inflater, Stored, compress};
use gristmill_format::container::gzip_stream::GzipStream;
use gristmill_format::container::salvage::{inflate_prefix, salvage};
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind};
use proptest::prelude::*;

const MAX: usize = 1 << 20;

fn inflate(input: &[u8], max: usize) -> Result<(Vec<u8>, usize, usize), Error> {
    let mut out = Vec::new();
    let found = Inflater::default().inflate(input, max, &mut out);
    assert!(out.capacity() <= max, "{} bytes of room for at most {max}", out.capacity());
    if found.is_err() {
        assert!(out.is_empty());
    }
    found.map(|f| (out, f.members, f.trailing))
}

fn refusal(input: &[u8], max: usize) -> (Kind, u64) {
    let e = inflate(input, max).unwrap_err();
    (e.kind(), e.place().offset.unwrap())
}

struct Held(Vec<u8>);

impl ReadAt for Held {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.len() as u64)
    }

    /// At most 100 bytes, as a slow mount may give them.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Error> {
        let n = buf.len().min(100);
        self.0[..].read_at(offset, &mut buf[..n])
    }
}

/// Everything in `input`, inflated `piece` bytes at a time.
fn in_pieces(input: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
    let mut stream = GzipStream::new(Arc::new(Held(input.to_vec())));
    let (mut whole, mut out) = (Vec::new(), Vec::with_capacity(piece));
    loop {
        out.clear();
        let more = stream.fill(&mut out)?;
        assert_eq!(out.capacity(), piece);
        whole.extend_from_slice(&out);
        if !more {
            return Ok(whole);
        }
    }
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn members_follow_each_other_and_what_trails_is_counted() {
    let parts = [&b"first"[..], b"", b"second ", &[7; 300_000]];
    let members: Vec<u8> = parts.iter().flat_map(|p| compress(6, p).unwrap()).collect();
    for tail in [&b""[..], &[0; 512], b"garbage", b"\x1f", b"\x1fx"] {
        let input = [&members[..], tail].concat();
        assert_eq!(inflate(&input, MAX).unwrap(), (parts.concat(), 4, tail.len()));
    }
}

#[test]
fn what_is_not_gzip_is_plain() {
    let mut out = vec![9; 10];
    let found = Inflater::default().inflate(b"PK..", 4, &mut out).unwrap();
    assert_eq!((found.stored, &out[..]), (Stored::Plain, &b"PK.."[..]));
    assert_eq!(refusal(b"PK...", 4), (Kind::TooLarge, 0));
    assert_eq!(refusal(b"", MAX), (Kind::Empty, 0));
}

#[test]
fn every_cut_is_truncated_at_its_end() {
    let data = noise(700);
    let one = compress(6, &data).unwrap();
    for cut in 2..one.len() {
        assert_eq!(refusal(&one[..cut], MAX), (Kind::Truncated, cut as u64));
    }
    let two = [&one[..], &one[..]].concat();
    for cut in one.len() + 2..two.len() {
        assert_eq!(refusal(&two[..cut], MAX), (Kind::Truncated, cut as u64));
    }
}

#[test]
fn pieces_are_refused_where_the_whole_is() {
    let member = compress(6, &noise(3000)).unwrap();
    let two = [&member[..], &compress(1, b"more").unwrap()].concat();
    for cut in 0..two.len() {
        let (whole, pieces) = (inflate(&two[..cut], MAX), in_pieces(&two[..cut], 77));
        match whole {
            // A lone magic byte, or a first member that is whole.
            Ok((bytes, ..)) => assert_eq!(pieces, Ok(bytes), "cut at {cut}"),
            Err(e) => {
                let found = pieces.unwrap_err();
                assert_eq!((found.kind(), found.place()), (e.kind(), e.place()), "cut at {cut}: {e}, {found}");
            }
        }
    }
    for at in 10..member.len() {
        let mut bad = member.clone();
        bad[at] ^= 0x10;
        assert_eq!(inflate(&bad, MAX).is_err(), in_pieces(&bad, 500).is_err(), "flip at {at}");
    }
    assert_eq!(in_pieces(b"plain text", 3).unwrap(), b"plain text");
}

#[test]
fn every_flipped_trailer_bit_is_corrupt() {
    let good = compress(6, &noise(700)).unwrap();
    for byte in good.len() - 8..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[byte] ^= 1 << bit;
            let (kind, offset) = refusal(&bad, MAX);
            assert_eq!(kind, Kind::Corrupt, "byte {byte}, bit {bit}");
            assert!(offset as usize >= good.len() - 8, "{offset}");
        }
    }
}

#[test]
fn a_flip_inside_never_passes_for_data() {
    // Bits that no decoder looks at (padding of a stored block) may flip; then the data is the same.
    let data = noise(700);
    let good = compress(6, &data).unwrap();
    let mut refused = 0;
    for byte in 10..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 0x10;
        match inflate(&bad, MAX) {
            Ok((same, ..)) => assert!(same == data, "byte {byte}"),
            Err(e) => {
                assert!(matches!(e.kind(), Kind::Corrupt | Kind::Truncated), "{e}");
                assert!(e.place().offset.unwrap() <= good.len() as u64);
                refused += 1;
            }
        }
    }
    assert!(refused >= good.len() - 11);
}

#[test]
fn a_damaged_second_member_is_named_by_its_own_byte() {
    let one = compress(6, &noise(700)).unwrap();
    let mut two = [&one[..], &one[..]].concat();
    let last = two.len() - 5;
    two[last] ^= 1;
    let (kind, offset) = refusal(&two, MAX);
    assert_eq!(kind, Kind::Corrupt);
    assert!(offset > one.len() as u64);
}

#[test]
fn a_bomb_stops_at_the_bound_whatever_size_it_claims() {
    let bomb = compress(12, &vec![0; 64 << 20]).unwrap();
    assert!(bomb.len() < 70_000);
    let n = bomb.len();
    for claimed in [64u32 << 20, 0, 1, u32::MAX] {
        let mut bomb = bomb.clone();
        bomb[n - 4..].copy_from_slice(&claimed.to_le_bytes());
        assert_eq!(refusal(&bomb, MAX), (Kind::TooLarge, 0));
    }
    let after = compress(6, b"harmless").unwrap();
    assert_eq!(refusal(&[&after[..], &bomb[..]].concat(), MAX), (Kind::TooLarge, after.len() as u64));
    let e = inflate(&bomb, MAX).unwrap_err();
    assert!(e.to_string().contains("1048576"), "{e}");
}

#[test]
fn the_bound_itself_fits_and_one_byte_less_does_not() {
    let gz = compress(6, &noise(100_000)).unwrap();
    assert_eq!(inflate(&gz, 100_000).unwrap().0.len(), 100_000);
    assert_eq!(refusal(&gz, 99_999), (Kind::TooLarge, 0));
    let empty = compress(6, b"").unwrap();
    assert_eq!(inflate(&empty, 0).unwrap(), (vec![], 1, 0));
}

#[test]
fn a_first_member_larger_than_the_last_says_still_fits() {
    let big = vec![5u8; 900_000];
    let input = [compress(9, &big).unwrap(), compress(9, b"x").unwrap()].concat();
    assert_eq!(inflate(&input, MAX).unwrap().0.len(), 900_001);
}

#[test]
fn memory_of_the_output_is_kept_between_chunks() {
    let (big, small) = (compress(6, &noise(500_000)).unwrap(), compress(6, b"abc").unwrap());
    let (mut inflater, mut out) = (Inflater::default(), Vec::new());
    inflater.inflate(&big, MAX, &mut out).unwrap();
    let memory = (out.as_ptr(), out.capacity());
    inflater.inflate(&small, MAX, &mut out).unwrap();
    inflater.inflate(&big, MAX, &mut out).unwrap();
    assert_eq!(memory, (out.as_ptr(), out.capacity()));
    assert_eq!(out, noise(500_000));
}

#[test]
fn salvage_gives_what_comes_before_the_damage() {
    let data = noise(200_000);
    let good = [compress(6, &data).unwrap(), compress(6, &data).unwrap()].concat();
    let mut out = Vec::new();
    assert_eq!(salvage(&good, MAX, &mut out), 400_000);
    assert_eq!(salvage(&good, 1000, &mut out), 1000);
    assert_eq!(out, data[..1000]);
    let cut = &good[..good.len() - 20];
    let n = salvage(cut, MAX, &mut out);
    assert!((390_000..=400_000).contains(&n), "{n}");
    assert_eq!(out[..200_000], data);
    assert_eq!(out[200_000..], data[..n - 200_000]);
    assert_eq!(salvage(b"plain", 3, &mut out), 3);
    assert_eq!(salvage(b"", 3, &mut out), 0);
}

#[test]
fn a_prefix_needs_no_more_than_itself() {
    let data = noise(200_000);
    let gz = compress(6, &data).unwrap();
    let mut out = Vec::new();
    inflate_prefix(&gz, 8356, &mut out).unwrap();
    assert_eq!(out, data[..8356]);
    inflate_prefix(&gz[..gz.len() / 2], 8356, &mut out).unwrap();
    assert_eq!(out, data[..8356]);
    inflate_prefix(&gz, MAX, &mut out).unwrap();
    assert_eq!(out.len(), data.len());
    assert_eq!(inflate_prefix(&gz[..20], 8356, &mut out).unwrap_err().kind(), Kind::Truncated);
}

#[test]
fn a_head_is_what_the_whole_begins_with_at_every_level_and_length() {
    let mixed: Vec<u8> =
        (0..300_000u32).map(|i| if i % 7000 < 3000 { 0 } else { (i / 3).wrapping_mul(i) as u8 }).collect();
    let mut out = Vec::new();
    for data in [noise(300_000), mixed, vec![5; 300_000]] {
        for level in 0..=12 {
            let gz = compress(level, &data).unwrap();
            let stored = level == 0 || gz.len() > data.len();
            for want in [1, 7, 258, 4095, 65_535, 65_536, 70_000, 131_072, 222_222, 299_000] {
                out.fill(0xee);
                let found = Inflater::default().inflate_head(&gz, want, &mut out).unwrap();
                assert!(found || stored, "level {level}, {want} bytes: stored blocks alone may be refused");
                assert!(!found || out[..want] == data[..want], "level {level}, {want} bytes");
            }
        }
    }
}

#[test]
fn a_head_is_refused_where_the_whole_is_as_near() {
    let gz = compress(6, &noise(10_000)).unwrap();
    let mut out = Vec::new();
    let mut head = |input: &[u8], want| Inflater::default().inflate_head(input, want, &mut out).unwrap();
    assert!(head(&gz, 5000));
    assert!(!head(&gz, 9900) && !head(&gz, 10_000) && !head(&gz, 1 << 20));
    assert!(!head(b"plain", 2) && !head(b"", 1) && !head(&gz[..20], 100));
    let two = [gz.clone(), compress(6, &noise(50_000)).unwrap()].concat();
    assert!(!head(&two, 20_000), "it ends with the first member");
    let mut flipped = gz;
    flipped[40] ^= 1;
    head(&flipped, 5000);
}

#[test]
fn other_levels_than_0_to_12_are_refused() {
    assert_eq!(compress(13, b"").unwrap_err().kind(), Kind::OutOfRange);
}

proptest! {
    #[test]
    fn whatever_is_compressed_comes_back(
        parts in prop::collection::vec((0u8..=12, prop::collection::vec(0u8..4, 0..3000)), 1..5),
        padding in 0usize..40,
        piece in 1usize..300,
    ) {
        let mut input = Vec::new();
        for (level, part) in &parts {
            let member = compress(*level, part).unwrap();
            prop_assert_eq!(&member, &compress(*level, part).unwrap());
            input.extend(member);
        }
        input.extend(vec![0; padding]);
        let whole: Vec<u8> = parts.iter().flat_map(|(_, part)| part.clone()).collect();
        prop_assert_eq!(inflate(&input, MAX).unwrap(), (whole.clone(), parts.len(), padding));
        let mut out = Vec::new();
        prop_assert_eq!(salvage(&input, MAX, &mut out), whole.len());
        prop_assert_eq!(&out, &whole);
        prop_assert_eq!(in_pieces(&input, piece).unwrap(), whole);
    }

    #[test]
    fn noise_behind_a_header_never_panics(mut noise in prop::collection::vec(any::<u8>(), 0..400), max in 0usize..5000) {
        noise.splice(0..0, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        if let Err(e) = inflate(&noise, max) {
            prop_assert!(e.place().offset.is_some());
        }
        let mut out = Vec::new();
        prop_assert!(salvage(&noise, max, &mut out) <= max);
        let _ = inflate_prefix(&noise, max, &mut out);
        let _ = Inflater::default().inflate_head(&noise, max, &mut out);
    }
}
