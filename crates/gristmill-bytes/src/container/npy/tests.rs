//! Headers as NumPy and the writers of packs spell them, and hostile ones.

use super::{Header, MAGIC, Spelling};
use crate::error::{Kind, Result};
use crate::layout::{DType, Layout, Order, Scalar};

const STEP: [(&str, Scalar, &[usize]); 11] = [
    ("run_id", Scalar::U32, &[]),
    ("step_index", Scalar::U32, &[]),
    ("board", Scalar::U64, &[]),
    ("board_eval", Scalar::I32, &[]),
    ("tile_65536_mask", Scalar::U16, &[]),
    ("move_dir", Scalar::U8, &[]),
    ("valuation_type", Scalar::U8, &[]),
    ("ev_legal", Scalar::U8, &[]),
    ("max_rank", Scalar::U8, &[]),
    ("seed", Scalar::U32, &[]),
    ("branch_evs", Scalar::F32, &[4]),
];

fn framed(version: u8, text: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[version, 0]);
    let len = (text.len() as u32).to_le_bytes();
    out.extend_from_slice(if version == 1 { &len[..2] } else { &len });
    out.extend_from_slice(text.as_bytes());
    out
}

fn parsed(text: &str) -> Result<Header> {
    Header::parse(&framed(1, text))
}

/// The header as it is documented, with `shape` as written and `len` bytes in all.
fn expected(descr: &str, shape: &str, len: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    text.push_str(&" ".repeat(len - 10 - text.len() - 1));
    framed(1, &(text + "\n"))
}

#[test]
fn reserved_headers_are_those_of_existing_packs() {
    let descr = "[('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), ('board_eval', '<i4'), \
                 ('tile_65536_mask', '<u2'), ('move_dir', '<u1'), ('valuation_type', '<u1'), ('ev_legal', '<u1'), \
                 ('max_rank', '<u1'), ('seed', '<u4'), ('branch_evs', '<f4', (4,)), ]";
    let dtype = DType::Record(Layout::packed(&STEP).unwrap());
    for rows in [0, 7, 2_016_000, 9_999_999_999_999_999_999] {
        let written = Header::write(&dtype, &[rows], Spelling::Reserved);
        if rows.checked_mul(46).is_none() {
            assert_eq!(written.unwrap_err().kind(), Kind::TooLarge);
            continue;
        }
        let written = written.unwrap();
        assert_eq!(written, expected(descr, &format!("({rows},)"), 384));
        assert_eq!(written[8..10], [0x76, 0x01]);
        let read = Header::parse(&written).unwrap();
        assert_eq!((read.shape(), read.data_offset(), read.data_bytes()), (&[rows][..], 384, rows * 46));
        assert_eq!(read.dtype(), &dtype);
    }
    assert_eq!(Header::write(&dtype, &[1, 2], Spelling::Reserved).unwrap_err().kind(), Kind::Unsupported);
    let known = Header::write(&dtype, &[2_016_000], Spelling::Spaced).unwrap();
    assert_eq!(known.len(), 320, "the same dtype, its length known beforehand");
}

#[test]
fn spaced_headers_are_those_of_self_play() {
    let row =
        Layout::packed(&[("run_id", Scalar::U64, &[]), ("step_idx", Scalar::U32, &[]), ("exps", Scalar::U8, &[16])]);
    let written = Header::write(&DType::Record(row.unwrap()), &[5], Spelling::Spaced).unwrap();
    let descr = "[('run_id', '<u8'), ('step_idx', '<u4'), ('exps', '|u1', (16,)), ]";
    assert_eq!(written, expected(descr, "(5, )", 192));
    let embeddings = DType::Scalar(Scalar::F32, Order::Little);
    let written = Header::write(&embeddings, &[5, 512], Spelling::Spaced).unwrap();
    assert_eq!(written, expected("'<f4'", "(5, 512, )", 128));
}

#[test]
fn numpy_headers_are_numpys() {
    let aligned = DType::Record(Layout::aligned(&STEP).unwrap());
    let descr = "[('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), ('board_eval', '<i4'), \
                 ('tile_65536_mask', '<u2'), ('move_dir', '|u1'), ('valuation_type', '|u1'), ('ev_legal', '|u1'), \
                 ('max_rank', '|u1'), ('', '|V2'), ('seed', '<u4'), ('branch_evs', '<f4', (4,))]";
    for rows in [3, 123_456_789_012] {
        let written = Header::write(&aligned, &[rows], Spelling::NumPy).unwrap();
        assert_eq!(written, expected(descr, &format!("({rows},)"), 384));
    }
    let float = DType::Scalar(Scalar::F32, Order::Big);
    for (shape, spelled) in [(&[][..], "()"), (&[3], "(3,)"), (&[2, 112, 8, 8], "(2, 112, 8, 8)")] {
        let written = Header::write(&float, shape, Spelling::NumPy).unwrap();
        assert_eq!(written, expected("'>f4'", spelled, 128));
        assert_eq!(Header::parse(&written).unwrap().shape(), shape);
    }
}

#[test]
fn long_and_foreign_names_take_later_versions() {
    let wide: Vec<(String, Scalar, &[usize])> =
        (0..5000).map(|i| (format!("column_{i}"), Scalar::F32, &[][..])).collect();
    let fields: Vec<(&str, Scalar, &[usize])> = wide.iter().map(|(n, s, d)| (n.as_str(), *s, *d)).collect();
    for (fields, version) in [(fields, 2), (vec![("größe", Scalar::F32, &[][..])], 3)] {
        let dtype = DType::Record(Layout::packed(&fields).unwrap());
        let written = Header::write(&dtype, &[2], Spelling::NumPy).unwrap();
        assert_eq!((written[6], written.len() % 64), (version, 0));
        let file = [written.clone(), vec![0; dtype.size() * 2]].concat();
        let read = Header::read(&file[..]).unwrap();
        assert_eq!((read.dtype(), read.data_offset()), (&dtype, written.len() as u64));
        assert_eq!(Header::read(&file[..file.len() - 1]).unwrap_err().kind(), Kind::Truncated);
    }
}

#[test]
fn other_spellings_are_read() {
    for text in [
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3L, 2L)}",
        "{\"shape\":(3,2),\"fortran_order\":True,\"descr\":\"<f4\"}  \n",
        "{ 'fortran_order' : True , 'descr' : 'f4' , 'shape' : ( 3 , 2 , ) , }\n",
    ] {
        let header = parsed(text).unwrap();
        assert_eq!((header.shape(), header.fortran_order(), header.data_bytes()), (&[3, 2][..], true, 24), "{text}");
        assert_eq!(header.dtype(), &DType::Scalar(Scalar::F32, Order::Little));
    }
    assert_eq!(parsed("{'descr': '<f4', 'fortran_order': False, 'shape': ()}").unwrap().data_bytes(), 4);
}

#[test]
fn damage_is_refused_with_its_byte() {
    let whole = framed(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n");
    for cut in 0..whole.len() {
        let e = Header::parse(&whole[..cut]).unwrap_err();
        assert_eq!((e.kind(), e.place().offset), (Kind::Truncated, Some(cut as u64)), "cut at {cut}");
        assert_eq!(Header::read(&whole[..cut]).unwrap_err().kind(), Kind::Truncated);
    }
    for (text, kind, at) in [
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", Kind::Unsupported, 20),
        ("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (2,)}", Kind::Unsupported, 31),
        ("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", Kind::Corrupt, 44),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", Kind::Corrupt, 61),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", Kind::Corrupt, 66),
        ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False}", Kind::Corrupt, 27),
        ("{'descr': '<f4', 'fortran_order': False}", Kind::Corrupt, 10),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} or 1", Kind::Corrupt, 66),
        ("{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': (2,)}", Kind::Corrupt, 73),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 2)}", Kind::TooLarge, 10),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}", Kind::Corrupt, 81),
    ] {
        let e = parsed(text).unwrap_err();
        assert_eq!((e.kind(), e.place().offset), (kind, Some(at)), "{text}: {e}");
    }
    let hollow = parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 2, 0)}").unwrap();
    assert_eq!(hollow.data_bytes(), 0);
    let mut later = whole.clone();
    later[6] = 4;
    assert_eq!(Header::parse(&later).unwrap_err().kind(), Kind::UnknownVersion);
    let bomb = [&MAGIC[..], &[2, 0, 255, 255, 255, 255]].concat();
    assert_eq!(Header::parse(&bomb).unwrap_err().kind(), Kind::TooLarge);
    assert_eq!(Header::parse(b"PK\x03\x04").unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn errors_after_letters_of_latin_1_have_their_byte() {
    for (text, at) in [
        ("{'descr': [('gr\u{fc}\u{fc}n', '<f4')], 'shape': 7}", 39),
        ("{'descr': [('gr\u{fc}\u{fc}n', '<f9')], 'shape': (7,)}", 26),
        ("{'descr': [('gr\u{fc}\u{fc}n', '<f4'", 26),
    ] {
        let latin: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
        let mut file = framed(1, &"x".repeat(latin.len()));
        file[10..].copy_from_slice(&latin);
        let e = Header::parse(&file).unwrap_err();
        assert_eq!(e.place().offset, Some(10 + at), "{e}");
    }
}
