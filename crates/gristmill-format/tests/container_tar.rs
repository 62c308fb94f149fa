//! Tars, good and bad: every header form, made by the `tar` crate, by hand and by our own writer, and lies of all kinds.
#![allow(missing_docs, clippy::unwrap_used)]

use gristmill_format::container::tar::{TarIndex, TarLimits, TarWriter, walk};
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind};
use proptest::prelude::*;

fn index(tar: &[u8]) -> TarIndex {
    walk(tar, &TarLimits::default()).unwrap()
}

/// Name and payload of every entry that lies within the file.
fn members(tar: &[u8]) -> Vec<(String, Vec<u8>)> {
    let index = index(tar);
    let whole = |e: &gristmill_format::container::tar::Entry<'_>| e.offset + e.len <= tar.len() as u64;
    index
        .iter()
        .filter(whole)
        .map(|e| (e.name.to_owned(), tar[e.offset as usize..(e.offset + e.len) as usize].to_vec()))
        .collect()
}

fn faults(tar: &[u8]) -> Vec<(Kind, u64)> {
    index(tar).faults().iter().map(|e: &Error| (e.kind(), e.place().offset.unwrap())).collect()
}

/// A header block with a right checksum; `size` is the whole field.
fn header(name: &[u8], kind: u8, size: &[u8; 12]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name);
    block[124..136].copy_from_slice(size);
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    seal(&mut block);
    block
}

fn seal(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block[..512].iter().map(|&b| u32::from(b)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

fn octal(n: usize) -> [u8; 12] {
    format!("{n:011o}\0").into_bytes().try_into().unwrap()
}

fn member(name: &[u8], kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [header(name, kind, &octal(payload.len())), payload.to_vec()].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn ended(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), vec![0; 1024]].concat()
}

fn named(pairs: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    pairs.iter().map(|(n, p)| ((*n).to_owned(), p.to_vec())).collect()
}

#[test]
fn every_spelling_of_a_size() {
    for size in [
        *b"00000000005\0",
        *b"00000000005 ",
        *b"          5 ",
        *b"          5\0",
        *b"5\0\0\0\0\0\0\0\0\0\0\0",
        *b"5 00000000\0\0",
        *b"000000000005",
        *b"\x80\0\0\0\0\0\0\0\0\0\0\x05",
    ] {
        let mut payload = b"12345".to_vec();
        payload.resize(512, 0);
        let tar = ended(&[header(b"a", b'0', &size), payload, member(b"b", 0, b"x")]);
        assert_eq!(members(&tar), named(&[("a", b"12345"), ("b", b"x")]), "{size:?}");
        assert_eq!(faults(&tar), []);
    }
}

#[test]
fn pax_and_gnu_names_and_sizes_override_the_header_once() {
    let long = "d/".repeat(200) + "x.gz";
    let pax = format!("414 path={long}\n");
    assert_eq!(pax.len(), 414);
    let sized = header(b"s", b'0', &octal(0));
    let tar = ended(&[
        member(b"h", b'x', pax.as_bytes()),
        member(b"short", b'0', b"1"),
        member(b"plain", b'0', b"2"),
        member(b"././@LongLink", b'L', format!("{long}\0").as_bytes()),
        member(b"././@LongLink", b'K', b"target\0"),
        member(b"short", b'0', b"3"),
        member(b"h", b'x', b"9 size=3\n"),
        sized,
        [&b"abc"[..], &[0; 509]].concat(),
        member(b"last", b'7', b"4"),
    ]);
    assert_eq!(faults(&tar), []);
    assert_eq!(members(&tar), named(&[(&long, b"1"), ("plain", b"2"), (&long, b"3"), ("s", b"abc"), ("last", b"4")]));
}

#[test]
fn a_global_pax_header_stays_until_another_says_otherwise() {
    let tar = ended(&[
        member(b"g", b'g', b"10 path=g\n"),
        member(b"a", b'0', b"1"),
        member(b"h", b'x', b"10 path=x\n"),
        member(b"b", b'0', b"2"),
        member(b"g", b'g', b"8 path=\n"),
        member(b"c", b'0', b"3"),
    ]);
    assert_eq!(members(&tar), named(&[("g", b"1"), ("x", b"2"), ("c", b"3")]));
}

#[test]
fn the_posix_prefix_counts_and_the_gnu_one_is_not_a_name() {
    let mut posix = member(b"name", b'0', b"1");
    posix[345..348].copy_from_slice(b"dir");
    seal(&mut posix);
    let mut gnu = member(b"name", b'0', b"2");
    gnu[257..265].copy_from_slice(b"ustar  \0");
    gnu[345..356].copy_from_slice(b"14401244017");
    seal(&mut gnu);
    let mut ancient = member(b"old/", 0, b"");
    ancient[257..265].fill(0);
    seal(&mut ancient);
    assert_eq!(members(&ended(&[posix, gnu, ancient])), named(&[("dir/name", b"1"), ("name", b"2")]));
}

#[test]
fn what_is_not_a_file_is_stepped_over() {
    let tar = ended(&[
        header(b"dir", b'5', &octal(4096)),
        header(b"hard", b'1', &octal(5)),
        header(b"soft", b'2', &octal(0)),
        header(b"fifo", b'6', &octal(0)),
        member(b"hard-with-data", b'1', b"data"),
        member(b"volume", b'V', b""),
        member(b"unknown", b'Z', &[7; 1500]),
        member(b"a", b'0', b"1"),
    ]);
    assert_eq!(faults(&tar), []);
    assert_eq!(members(&tar), named(&[("a", b"1")]));
}

#[test]
fn sparse_files_are_refused_and_what_follows_is_found() {
    let mut old = header(b"sparse", b'S', &octal(600));
    old[482] = 1;
    seal(&mut old);
    let mut map = vec![1; 512];
    map[504] = 0;
    let tar = ended(&[
        old,
        map,
        vec![9; 1024],
        member(b"h", b'x', b"22 GNU.sparse.major=1\n"),
        member(b"new", b'0', b"12"),
        member(b"a", b'0', b"1"),
    ]);
    assert_eq!(faults(&tar), [(Kind::Unsupported, 0), (Kind::Unsupported, 3072)]);
    assert_eq!(members(&tar), named(&[("a", b"1")]));
}

#[test]
fn a_wrong_checksum_is_a_fault_and_the_rest_is_found_again() {
    let mut parts = [member(b"a", b'0', b"1"), member(b"b", b'0', b"2"), member(b"c", b'0', b"3")];
    parts[1][0] ^= 1;
    let tar = ended(&parts);
    assert_eq!(faults(&tar), [(Kind::Corrupt, 1024)]);
    assert_eq!(members(&tar), named(&[("a", b"1"), ("c", b"3")]));
    parts[0][0] ^= 1;
    let hopeless = index(&ended(&parts));
    assert_eq!((hopeless.len(), hopeless.faults().len()), (0, 1));
}

#[test]
fn a_size_that_lies_costs_one_member() {
    let far = *b"77777777777\0";
    let beyond = *b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff";
    for size in [far, beyond] {
        let lie = header(b"lie", b'0', &size);
        let tar = ended(&[member(b"a", b'0', b"1"), lie, vec![7; 512], member(b"c", b'0', b"3")]);
        assert_eq!(faults(&tar), [(Kind::Truncated, 1536)]);
        assert_eq!(members(&tar), named(&[("a", b"1"), ("c", b"3")]));
        assert_eq!(index(&tar).len(), 3);
    }
    let small = header(b"lie", b'0', &octal(1));
    let tar = ended(&[small, vec![7; 1024], member(b"c", b'0', b"3")]);
    assert_eq!(faults(&tar), [(Kind::Corrupt, 1024)]);
    assert_eq!(members(&tar), named(&[("lie", &[7]), ("c", b"3")]));
    let word = ended(&[member(b"a", b'0', b"1"), header(b"w", b'0', b"no number!!\0"), member(b"c", b'0', b"3")]);
    assert_eq!(faults(&word), [(Kind::Corrupt, 1024)]);
    assert_eq!(members(&word).len(), 2);
    assert_eq!(members(&word[1024..]), named(&[("c", b"3")]));
}

#[test]
fn headers_about_headers_are_bounded_and_their_member_is_not_guessed() {
    let limits = TarLimits { max_extended_bytes: 100, max_name_bytes: 20, max_entries: 2, max_faults: 10 };
    let tar = ended(&[
        member(b"h", b'x', &[b'1'; 101]),
        member(b"unsure", b'0', b"1"),
        member(b"a-name-of-more-than-20-bytes", b'0', b"2"),
        member(b"h", b'x', b"no pax at all"),
        member(b"unsure", b'0', b"3"),
        member(b"a", b'0', b"4"),
        member(b"b", b'0', b"5"),
        member(b"c", b'0', b"6"),
    ]);
    let index = walk(&tar[..], &limits).unwrap();
    let kinds: Vec<Kind> = index.faults().iter().map(Error::kind).collect();
    assert_eq!(kinds, [Kind::TooLarge, Kind::TooLarge, Kind::Corrupt, Kind::TooLarge]);
    assert_eq!(index.iter().map(|e| e.name).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn without_an_end_mark_it_is_truncated_and_one_zero_block_is_enough() {
    let one = member(b"a", b'0', b"1");
    assert_eq!(faults(&one), [(Kind::Truncated, 1024)]);
    assert_eq!(faults(&[&one[..], &[0; 512]].concat()), []);
    assert_eq!(faults(b""), [(Kind::Empty, 0)]);
    assert_eq!(faults(&[7; 100]), [(Kind::Truncated, 0)]);
    assert_eq!(faults(&[7; 2000]), [(Kind::Corrupt, 0)]);
}

/// A file that shrinks, or breaks, after its length was read.
struct Failing<'a>(&'a [u8], u64, Option<std::io::ErrorKind>);

impl ReadAt for Failing<'_> {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.1)
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Error> {
        self.2.map_or_else(|| self.0.read_at(offset, buf), |kind| Err(std::io::Error::from(kind).into()))
    }
}

#[test]
fn a_file_that_shrinks_is_truncated_and_one_that_breaks_is_an_error() {
    let tar = ended(&[member(b"a", b'0', b"1"), member(b"h", b'x', b"9 size=1\n"), member(b"b", b'0', b"2")]);
    for (left, entries) in [(500, 0), (1024, 1), (1540, 1), (1600, 1), (2560, 2)] {
        let shrunk = walk(&Failing(&tar[..left], 4096, None), &TarLimits::default()).unwrap();
        assert_eq!((shrunk.len(), shrunk.faults().len()), (entries, 1), "{left}");
        assert_eq!(shrunk.faults()[0].kind(), Kind::Truncated);
    }
    for kind in [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::StaleNetworkFileHandle] {
        let e = walk(&Failing(&tar, 4096, Some(kind)), &TarLimits::default()).unwrap_err();
        assert_eq!(e.kind(), Kind::Io(kind));
    }
}

#[test]
fn the_tar_crate_reads_what_we_write() {
    let long = "very-long-directory-name/".repeat(12) + "game.gz";
    let halves = "d".repeat(120) + "/" + &"n".repeat(90);
    let names = ["a", &"x".repeat(100), &halves, &long, &"y".repeat(300)];
    let mut writer = TarWriter::new(Vec::new());
    let offsets: Vec<u64> = names.iter().map(|n| writer.append(n, n.as_bytes()).unwrap()).collect();
    let tar = writer.finish().unwrap();
    let mut archive = tar::Archive::new(&tar[..]);
    for ((entry, name), offset) in archive.entries().unwrap().zip(names).zip(offsets) {
        let mut entry = entry.unwrap();
        assert_eq!((entry.path().unwrap().to_str().unwrap(), entry.raw_file_position()), (name, offset));
        let mut payload = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut payload).unwrap();
        assert_eq!(payload, name.as_bytes());
    }
    assert_eq!(members(&tar), names.map(|n| (n.to_owned(), n.as_bytes().to_vec())));
    assert_eq!(faults(&tar), []);
    assert!(TarWriter::new(Vec::new()).append("", b"").is_err());
    assert!(TarWriter::new(Vec::new()).append("a\0b", b"").is_err());
}

#[test]
fn an_index_survives_being_taken_apart() {
    let tar = ended(&[member(b"a", b'0', b"1"), member(b"bc", b'0', b"2")]);
    let whole = index(&tar);
    let back = TarIndex::from_parts(whole.names().to_owned(), whole.slots().to_vec(), vec![]).unwrap();
    assert_eq!(back, whole);
    let swapped: Vec<_> = whole.slots().iter().rev().copied().collect();
    for (names, slots) in [("abc", swapped), ("abcd", whole.slots().to_vec()), ("a", whole.slots().to_vec())] {
        assert_eq!(TarIndex::from_parts(names.to_owned(), slots, vec![]).unwrap_err().kind(), Kind::Corrupt);
    }
}

/// Builds with the `tar` crate: GNU or ustar headers, long names by its own means, optionally pax records before.
fn foreign_tar(files: &[(String, Vec<u8>, bool)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, payload, pax) in files {
        if *pax {
            builder.append_pax_extensions([("path", name.as_bytes()), ("comment", b"c")]).unwrap();
        }
        let mut head = if payload.len() % 2 == 0 { tar::Header::new_gnu() } else { tar::Header::new_ustar() };
        head.set_size(payload.len() as u64);
        head.set_mode(0o600);
        if *pax || payload.len() % 2 == 1 {
            head.set_path(if *pax { "replaced" } else { name }).unwrap();
            head.set_cksum();
            builder.append(&head, &payload[..]).unwrap();
        } else {
            builder.append_data(&mut head, name, &payload[..]).unwrap();
        }
    }
    builder.into_inner().unwrap()
}

proptest! {
    #[test]
    fn entry_by_entry_as_the_tar_crate_wrote_it(
        files in prop::collection::vec(
            ("[a-z]{1,30}(/[a-zé]{1,30}){0,2}", prop::collection::vec(any::<u8>(), 0..1500), any::<bool>()),
            0..12,
        ),
    ) {
        let files: Vec<_> = files
            .into_iter()
            .map(|(name, payload, pax)| {
                let deep = payload.len() % 2 == 0 && payload.len() % 3 == 0;
                (if deep { format!("{}{name}", "deep/".repeat(40)) } else { name }, payload, pax)
            })
            .collect();
        let tar = foreign_tar(&files);
        let expected: Vec<_> = files.into_iter().map(|(name, payload, _)| (name, payload)).collect();
        prop_assert_eq!(members(&tar), expected);
        prop_assert_eq!(faults(&tar), vec![]);
    }

    #[test]
    fn damage_anywhere_never_panics_and_offsets_grow(
        at in prop::collection::vec((0usize..6144, any::<u8>()), 1..6),
        cut in 0usize..6145,
    ) {
        let mut tar = ended(&[
            member(b"h", b'x', b"12 size=100\n"),
            member(b"a", b'0', &[1; 100]),
            member(b"n", b'L', b"some/name\0"),
            member(b"b", b'0', &[2; 600]),
            member(b"d", b'5', b""),
        ]);
        prop_assert_eq!(tar.len(), 6144);
        for (i, value) in at {
            tar[i] = value;
            let head = i / 512 * 512;
            if value % 2 == 0 {
                seal(&mut tar[head..head + 512]);
            }
        }
        let index = index(&tar[..cut]);
        prop_assert!(index.slots().is_sorted_by(|a, b| a.offset < b.offset));
        prop_assert!(index.faults().iter().all(|e| e.place().offset.is_some()));
        prop_assert!(cut == tar.len() || !index.faults().is_empty() || tar[..cut].chunks_exact(512).any(|b| b == [0; 512]));
    }
}
