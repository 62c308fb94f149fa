//! Rows of KataGo: golden bytes, the eight images against plain arithmetic, and what is refused with its place.
#![allow(missing_docs, clippy::unwrap_used)]

use gristmill_format::Kind;
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::container::described::{FIXED, FORM};
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::katago::form::{GLOBALS, LEAST_EDGE, MEMBERS, MOST_EDGE, MOST_MEMBERS, PLANES, POLICY, VALUES};
use gristmill_format::katago::pack::{CODEC, PackedRows, pack};
use gristmill_format::katago::shard::{TOGETHER, together};
use gristmill_format::katago::turn::Turns;
use gristmill_format::katago::{RowEncoder, Shard, is_shard};
use gristmill_format::layout::{DType, Layout, Order, Scalar};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

/// A member of a shard: name, element, shape of a row, bytes of all rows.
type Member = (String, Scalar, Vec<usize>, Vec<u8>);

/// The members of a shard of rows whose boards fill frames of this edge: stones on two points of each.
fn members(edge: usize, rows: usize) -> Vec<Member> {
    let points = edge * edge;
    let member = |(name, scalar, usual): (&str, Scalar, &[usize])| {
        let shape = match name {
            PLANES => vec![22, points.div_ceil(8)],
            POLICY => vec![2, points + 1],
            VALUES => vec![5, edge, edge],
            _ => usual.to_vec(),
        };
        let count = shape.iter().product::<usize>();
        let mut bytes = Vec::new();
        for row in 0..rows {
            for i in 0..count {
                let number = (7 * row + 3 * i) % 50;
                match (name, scalar) {
                    (PLANES, _) => bytes.push(bits(points, i, row)),
                    (_, Scalar::F32) => bytes.extend((number as f32 - 20.5).to_le_bytes()),
                    (_, Scalar::I16) => bytes.extend((number as i16).to_le_bytes()),
                    _ => bytes.push((number as i8 - 25) as u8),
                }
            }
        }
        (name.to_owned(), scalar, shape, bytes)
    };
    MEMBERS.into_iter().map(member).collect()
}

/// A byte of the planes: the board, an own stone, another, and others as they come.
fn bits(points: usize, at: usize, row: usize) -> u8 {
    let len = points.div_ceil(8);
    let (plane, byte) = (at / len, at % len);
    let bit = |i: usize| match plane {
        0 => true,
        1 => i == row % points,
        2 => i == (row + 1) % points,
        _ => (i * (plane + 1) + row).is_multiple_of(3),
    };
    (0..8).fold(0, |all, n| all << 1 | u8::from(8 * byte + n < points && bit(8 * byte + n)))
}

fn npz(members: &[Member]) -> Vec<u8> {
    packed(members, 6)
}

/// A shard whose members are not compressed.
fn stored_plainly(edge: usize, rows: usize) -> Vec<u8> {
    packed(&members(edge, rows), 0)
}

fn packed(members: &[Member], level: u32) -> Vec<u8> {
    let mut npz = NpzWriter::new(Vec::new(), level);
    for (name, scalar, shape, bytes) in members {
        let rows = bytes.len() / (scalar.size() * shape.iter().product::<usize>()).max(1);
        let shape: Vec<u64> = std::iter::once(rows).chain(shape.iter().copied()).map(|dim| dim as u64).collect();
        let dtype = DType::Scalar(*scalar, Order::Little);
        npz.array(name, &dtype, &shape, &mut |to| Ok(to.write_all(bytes)?)).unwrap();
    }
    npz.finish().unwrap()
}

/// A shard.
pub(crate) fn shard(edge: usize, rows: usize) -> Vec<u8> {
    npz(&members(edge, rows))
}

/// What the fuzz target begins with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (whole, mut packed) = (shard(5, 2), Vec::new());
    pack(&chunks(&whole).unwrap()[0], &mut packed).unwrap();
    let mut odd = members(5, 2);
    odd[2].2 = vec![1, 52];
    vec![
        ("cut", whole[..whole.len() / 2].to_vec()),
        ("whole", whole),
        ("packed", packed),
        ("odd", npz(&odd)),
        ("none", shard(5, 0)),
    ]
}

/// The chunks of a shard.
fn chunks(stored: &[u8]) -> gristmill_format::Result<Vec<Chunk>> {
    let (shard, plain) = Shard::read("rows.npz", stored, 64 << 20)?;
    let chunk = |i: usize| {
        let (mut bytes, mut chunk) = (Vec::new(), Chunk::default());
        read_span(plain.as_slice(), shard.locate(i).unwrap().0, u64::MAX, &mut bytes)?;
        shard.decode(i, &bytes, &Limits::default(), &mut chunk)?;
        Ok(chunk)
    };
    (0..shard.len()).map(chunk).collect()
}

/// A chunk file of two chunks, and their records.
pub(crate) fn chunk_file() -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut out, mut index, mut records) = (MAGIC.to_vec(), ChunkFileWriter::new(CODEC), Vec::new());
    for (i, rows) in [2, 1].into_iter().enumerate() {
        let (chunk, mut packed) = (chunks(&shard(5, rows)).unwrap().remove(0), Vec::new());
        pack(&chunk, &mut packed).unwrap();
        index.add(&format!("rows.npz/{i}"), rows as u32, &packed).unwrap();
        out.extend(packed);
        records.push(chunk.records().to_vec());
    }
    out.extend(index.finish());
    (out, records)
}

#[test]
fn golden_bytes() {
    let chunk = chunks(&shard(5, 2)).unwrap().remove(0);
    let layout = chunk.layout.clone().unwrap();
    let names: Vec<&str> = layout.fields().iter().map(|field| &*field.name).collect();
    assert_eq!(names, MEMBERS.map(|(name, ..)| name));
    assert_eq!((chunk.frames, layout.size()), (2, 22 * 4 + 19 * 4 + 2 * 26 * 2 + 64 * 4 + 842 + 5 * 25));
    assert_eq!(chunk.record(1)[..12], [0xff, 0xff, 0xff, 0x80, 0x40, 0, 0, 0, 0x20, 0, 0, 0]);
    assert_eq!(chunk.record(1)[88..92], (7f32 - 20.5).to_le_bytes());
    let mut packed = Vec::new();
    pack(&chunk, &mut packed).unwrap();
    let descr = layout.to_descr();
    assert_eq!(
        packed[..FIXED],
        [FORM, 0, 0, 0, 2, 0, 0, 0, descr.len() as u8, (descr.len() >> 8) as u8, 0, 0, 0, 0, 0, 0]
    );
    assert!(packed[FIXED..].starts_with(descr.as_bytes()) && packed.ends_with(chunk.records()));
    assert_eq!(CODEC, *b"katago\0\x01");
}

#[test]
fn the_page_has_every_member_and_number() {
    let page = include_str!("../../../docs/format/katago.md");
    for (name, scalar, shape) in MEMBERS {
        let row = format!("| `{name}` | {} | {shape:?} |", scalar.code());
        assert!(page.contains(&row), "{row}");
    }
    for tensor in ["planes", "policy", "values", "symmetry"] {
        assert!(page.contains(&format!("| `{tensor}` |")), "{tensor}");
    }
    for number in [
        format!("{LEAST_EDGE} to {MOST_EDGE} points"),
        format!("{TOGETHER} rows"),
        format!("{MOST_MEMBERS} members"),
        format!("form {FORM}"),
    ] {
        assert!(page.contains(&number), "{number}");
    }
}

#[test]
fn shards_are_cut_into_chunks_and_may_be_empty() {
    let found = chunks(&shard(5, TOGETHER + 3)).unwrap();
    assert_eq!(found.iter().map(|chunk| chunk.frames).collect::<Vec<_>>(), [TOGETHER, 3]);
    assert!(chunks(&shard(5, 0)).unwrap().is_empty());
    assert_eq!((together(5439), together(1 << 20), together(usize::MAX)), (256, 4, 1));
    let open = Shard::open("rows.npz", &Bytes(shard(19, 2))).unwrap();
    assert_eq!((open.len(), open.form().edge(), open.form().layout().size()), (1, 19, 5439));
    let mut chunk = Chunk::default();
    open.decode(0, &[], &Limits::default(), &mut chunk).unwrap();
    assert_eq!(chunk.frames, 2);
}

struct Bytes(Vec<u8>);

impl gristmill_format::source::ReadAt for Bytes {
    fn len(&self) -> gristmill_format::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> gristmill_format::Result<usize> {
        self.0.read_at(offset, buf)
    }
}

#[test]
fn members_of_other_names_travel_along_in_one_order() {
    let mut all = members(5, 2);
    let own = |name: &str, scalar, shape: &[usize]| {
        let bytes = 2 * Scalar::size(scalar) * shape.iter().product::<usize>();
        (name.to_owned(), scalar, shape.to_vec(), (0..bytes).map(|i| i as u8 % 100).collect())
    };
    all.insert(0, own("qValueTargetsNCMove", Scalar::I16, &[3, 26]));
    all.insert(3, own("aboutNC", Scalar::F64, &[]));
    let one = chunks(&npz(&all)).unwrap().remove(0);
    all.reverse();
    let other = chunks(&npz(&all)).unwrap().remove(0);
    assert!(one.records() == other.records() && one.layout == other.layout);
    let names = one.layout.unwrap();
    assert_eq!(
        names.fields()[6..].iter().map(|field| &*field.name).collect::<Vec<_>>(),
        ["aboutNC", "qValueTargetsNCMove"]
    );
}

/// A change of the members of a shard.
type Change = fn(&mut Vec<Member>);

#[test]
fn what_does_not_fit_is_refused_by_member() {
    let changes: [(Change, Kind, Option<&str>, &str); 12] = [
        (|all| all.remove(1).1 = Scalar::F32, Kind::Missing, Some(GLOBALS), "no member `globalInputNC`"),
        (|all| all[1].1 = Scalar::I32, Kind::Unsupported, Some(GLOBALS), "elements i4, expected f4"),
        (|all| all[4].3.truncate(842), Kind::WrongSize, Some("scoreDistrN"), "1 rows, `globalTargetsNC` has 2"),
        (|all| all[2].2 = vec![52], Kind::WrongSize, Some(POLICY), "expected 2 axes"),
        (|all| all[2].2 = vec![1, 52], Kind::WrongSize, Some(POLICY), "points and the pass"),
        (|all| all[5].2 = vec![1, 5, 25], Kind::WrongSize, Some(VALUES), "[planes, edge, edge]"),
        (
            |all| all[0] = members(6, 2).remove(0),
            Kind::WrongSize,
            Some(PLANES),
            "6 x 6 points, `valueTargetsNCHW` of 5 x 5",
        ),
        (|all| all[0].2 = vec![2, 44], Kind::WrongSize, Some(PLANES), "2 planes"),
        (
            |all| all.push(("s".to_owned(), Scalar::Text(2), vec![], vec![0; 16])),
            Kind::Unsupported,
            Some("s"),
            "numbers",
        ),
        (
            |all| all.push(("xNCHWPacked".to_owned(), Scalar::I8, vec![1, 4], vec![0; 8])),
            Kind::Unsupported,
            Some("xNCHWPacked"),
            "expected u1",
        ),
        (
            |all| all.push(("wide".to_owned(), Scalar::U8, vec![(1 << 20) + 1], vec![0; 2 * ((1 << 20) + 1)])),
            Kind::TooLarge,
            None,
            "1048576",
        ),
        (
            |all| all.extend((0..40).map(|i| (format!("m{i}"), Scalar::U8, vec![], vec![0; 2]))),
            Kind::TooLarge,
            None,
            "46 members",
        ),
    ];
    for (change, kind, member, says) in changes {
        let mut all = members(5, 2);
        change(&mut all);
        let e = chunks(&npz(&all)).unwrap_err();
        let named = e.place().member.as_deref().and_then(|member| member.strip_suffix(".npy"));
        assert_eq!((e.kind(), named), (kind, member), "{e}");
        assert!(e.to_string().contains(says), "{e} lacks {says}");
    }
}

#[test]
fn rows_that_cannot_be_are_refused_with_row_and_member() {
    let stored = |member: usize, at: usize, byte: u8| {
        let mut all = members(5, TOGETHER + 5);
        let row = all[member].3.len() / (TOGETHER + 5);
        all[member].3[(TOGETHER + 2) * row + at] = byte;
        npz(&all)
    };
    let mut beside = members(5, TOGETHER + 5);
    beside[0].3[88 * (TOGETHER + 2) + 1] = 0;
    let mut infinite = members(5, TOGETHER + 5);
    infinite[3].3[(TOGETHER + 2) * 256 + 20..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    for (stored, member, says) in [
        (stored(0, 3, 0xc0), PLANES, "plane 0 has bits after point 24"),
        (stored(0, 5, 0x40), PLANES, "stones of both sides (planes 1, 2) stand at row 1, column 4"),
        (npz(&beside), PLANES, "a stone beside the board (plane 0) stands at row 1, column 3"),
        (stored(2, 53, 0x80), POLICY, "visits of move 0 of policy 1"),
        (npz(&infinite), "globalTargetsNC", "number 5 is infinite or no number"),
    ] {
        let e = chunks(&stored).unwrap_err();
        let place = e.place();
        assert_eq!((e.kind(), place.chunk, place.frame), (Kind::OutOfRange, Some(1), Some(2)), "{e}");
        assert_eq!(place.member.as_deref(), Some(&*format!("{member}.npy")));
        assert!(e.to_string().contains(&format!("row {} of the file", TOGETHER + 2)), "{e}");
        assert!(e.to_string().contains(says), "{e} lacks {says}");
    }
}

#[test]
fn bounds_hold_before_anything_is_taken() {
    let stored = shard(5, 3);
    let size = chunks(&stored).unwrap()[0].records().len();
    assert!(Shard::read("a.npz", &stored, size).is_ok());
    assert_eq!(Shard::read("a.npz", &stored, size - 1).unwrap_err().kind(), Kind::TooLarge);
    // Each member says that it has 3 billion rows, where there are 300.
    let mut claims = Vec::new();
    for part in stored_plainly(5, 300).split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(part);
        match text.split_once("'shape': (300,") {
            Some(_) => {
                let at = part.windows(6).position(|window| window == b" (300,").unwrap() + 5;
                let end = part.len() - 1;
                claims.extend([&part[..at], b"0000000", &part[at..end - 7], b"\n"].concat());
            }
            None => claims.extend_from_slice(part),
        }
    }
    assert_eq!(claims.len(), stored_plainly(5, 300).len());
    let e = Shard::heads("a.npz", &claims, 1 << 40).unwrap_err();
    assert!(e.kind() == Kind::TooLarge && e.detail().contains("3000000000 rows of 1491 bytes"), "{e}");
    assert_eq!(Shard::read("a.npz", &claims, 1 << 50).unwrap_err().kind(), Kind::Corrupt);
    assert!(is_shard(&stored[..]).unwrap() && is_shard(&stored[..200]).unwrap() && !is_shard(&stored[..20]).unwrap());
}

/// A row in an image, by the tensors of these names.
fn image(layout: &Layout, record: &[u8], names: &[&str], bits: u64) -> Vec<Vec<u8>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let encoder = RowEncoder::new(layout, &names).unwrap();
    let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xee; spec.row_bytes()]).collect();
    let row = Row { record, provenance: Provenance::default(), bits: bits.into(), sparse: None };
    encoder.encode(&[row], &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
    out
}

#[test]
fn images_move_points_and_leave_the_pass_and_the_whole() {
    let stored = shard(5, 1);
    let chunk = chunks(&stored).unwrap().remove(0);
    let layout = chunk.layout.clone().unwrap();
    let names = ["planes:u8", POLICY, VALUES, GLOBALS, "policy", "values", PLANES, "symmetry"];
    let plain = image(&layout, chunk.record(0), &names[..7], 5);
    assert_eq!(plain, image(&layout, chunk.record(0), &names, 8)[..7].to_vec());
    for s in 0..8u8 {
        let turned = image(&layout, chunk.record(0), &names, 0xabc0 | u64::from(s));
        for y in 0..5 {
            for x in 0..5 {
                // Where the point (y, x) of the row is found in the image: each step by itself.
                let (mut to_y, mut to_x) = (y, x);
                if s & 1 == 1 {
                    to_y = 4 - to_y;
                }
                if s & 2 == 2 {
                    to_x = 4 - to_x;
                }
                if s & 4 == 4 {
                    (to_y, to_x) = (to_x, to_y);
                }
                let (from, to) = (5 * y + x, 5 * to_y + to_x);
                for plane in 0..22 {
                    assert_eq!(plain[0][25 * plane + from], turned[0][25 * plane + to], "image {s}");
                    let bit = turned[6][4 * plane + to / 8] >> (7 - to % 8) & 1;
                    assert_eq!(bit, turned[0][25 * plane + to]);
                }
                for policy in 0..2 {
                    assert_eq!(plain[1][2 * (26 * policy + from)..][..2], turned[1][2 * (26 * policy + to)..][..2]);
                    assert_eq!(plain[4][4 * (26 * policy + from)..][..4], turned[4][4 * (26 * policy + to)..][..4]);
                }
                for plane in 0..5 {
                    assert_eq!(plain[2][25 * plane + from], turned[2][25 * plane + to]);
                    let value = f32::from(plain[2][25 * plane + from] as i8).to_le_bytes();
                    assert_eq!(turned[5][4 * (25 * plane + to)..][..4], value);
                }
            }
        }
        for policy in 0..2 {
            assert_eq!(plain[1][2 * (26 * policy + 25)..][..2], turned[1][2 * (26 * policy + 25)..][..2], "the pass");
            let shares =
                turned[4][4 * 26 * policy..][..4 * 26].as_chunks().0.iter().map(|cell| f32::from_le_bytes(*cell));
            assert!((shares.sum::<f32>() - 1.0).abs() < 1e-5);
        }
        assert_eq!((&plain[3], &turned[7]), (&turned[3], &vec![s]));
    }
    let turns = Turns::new(5);
    let all: std::collections::BTreeSet<&[u16]> = (0..8).map(|s| turns.from(s)).collect();
    assert_eq!(all.len(), 8, "eight different images");
}

#[test]
fn tensors_are_named_or_refused_by_name() {
    let layout = chunks(&shard(5, 1)).unwrap().remove(0).layout.unwrap();
    let refused = |names: &[&str], rows: bool| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = if rows { RowEncoder::new(&layout, &names) } else { RowEncoder::declared(&names) };
        made.unwrap_err()
    };
    for (names, rows, kind, says) in [
        (
            &["plains"][..],
            true,
            Kind::Missing,
            "there are planes, policy, values, symmetry, image_draws, binaryInputNCHWPacked",
        ),
        (&["planes", "planes:u8"], true, Kind::Corrupt, "`planes` is named twice"),
        (&["planes[22,9,9]"], true, Kind::Unfit, "`planes` is f4 [22, 5, 5] here"),
        (&["planes:i8"], true, Kind::Unsupported, "names no tensor"),
        (&["symmetry:u8"], true, Kind::Unsupported, "names no tensor"),
        (&["policy[2,"], false, Kind::Unsupported, "names no tensor"),
        (&["qValueTargetsNCMove"], false, Kind::Unsupported, "declare its type"),
        (&["planes[22,9,8]"], false, Kind::Unsupported, "[planes, edge, edge]"),
        (&["planes[22,9,9]", "policy"], false, Kind::Unfit, "`policy` is of 19 x 19 points, another tensor of 9 x 9"),
        (&["policy[2,82]", "policyTargetsNCMove"], false, Kind::Unfit, "is declared with rows"),
        (&["globalTargetsNC[9999999]"], false, Kind::TooLarge, "1048576"),
        (&["symmetry"], false, Kind::Empty, "alone"),
        (&["image_draws"], false, Kind::Empty, "alone"),
        (&["image_draws:i32"], true, Kind::Unsupported, "names no tensor"),
        (&["policy", "symmetry", "image_draws"], true, Kind::Unsupported, "name one of them"),
    ] {
        let e = refused(names, rows);
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.detail().contains(says), "{e} lacks {says}");
    }
    let nine = RowEncoder::declared(&["planes[22,5,5]".to_owned(), "symmetry".to_owned()]).unwrap();
    assert!(nine.fits(&layout).is_ok() && nine.draws());
    let usual = RowEncoder::declared(&[]).unwrap();
    assert!(!usual.draws() && usual.outputs().len() == 6);
    let e = usual.fits(&layout).unwrap_err();
    assert!(e.kind() == Kind::Unfit && e.detail().contains("name the tensors"), "{e}");
    assert!(usual.fits(&Layout::parse_descr("[('a', '<i2')]").unwrap()).unwrap_err().detail().contains("no member"));
}

#[test]
fn tensors_are_made_of_members_with_their_own_elements_alone() {
    let fields: [(&str, Scalar, &[usize]); 3] =
        [(PLANES, Scalar::U16, &[22, 46]), (POLICY, Scalar::F32, &[2, 362]), (VALUES, Scalar::F32, &[5, 19, 19])];
    let layout = Layout::packed(&fields).unwrap();
    for (name, says) in [
        ("planes", "`planes` is made of `binaryInputNCHWPacked` of u1, here it is of u2"),
        ("policy", "`policy` is made of `policyTargetsNCMove` of i2, here it is of f4"),
        ("values", "`values` is made of `valueTargetsNCHW` of i1, here it is of f4"),
    ] {
        let e = RowEncoder::new(&layout, &[name.to_owned()]).unwrap_err();
        assert_eq!((e.kind(), e.detail()), (Kind::Unfit, says));
    }
    let own = RowEncoder::new(&layout, &[POLICY.to_owned()]).unwrap();
    assert_eq!((own.outputs()[0].dtype, &*own.outputs()[0].row_shape), (Scalar::F32, &[2, 362][..]));
}

#[test]
fn packed_rows_are_refused_with_their_byte() {
    let (mut packed, chunk) = (Vec::new(), chunks(&shard(5, 2)).unwrap().remove(0));
    pack(&chunk, &mut packed).unwrap();
    for cut in 0..packed.len() {
        let found = PackedRows::new(&packed[..cut]).and_then(|packed| packed.form().map(drop));
        assert!(found.is_err(), "cut at {cut}");
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = packed.clone();
        bytes[at] = byte;
        let e =
            PackedRows::new(&bytes).and_then(|packed| packed.form().and_then(|form| packed.check(&form))).unwrap_err();
        (e.kind(), e.place().offset)
    };
    assert_eq!(with(0, 2), (Kind::UnknownVersion, Some(0)));
    assert_eq!(with(10, 1), (Kind::TooLarge, Some(8)));
    assert_eq!(with(4, 0), (Kind::Corrupt, Some(4)));
    assert_eq!(with(FIXED, b'x').1, Some(FIXED as u64));
}
