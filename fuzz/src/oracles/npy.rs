//! The `npy` target beside the `npyz` crate: a header that both read means the same fields, shape, order and first byte of data.
//! Not compared: headers of version 1 and 2 with other letters than ASCII, which the crate takes for UTF-8.

use gristmill_format::container::npy::Header;
use gristmill_format::layout::{DType, Layout, Order};
use npyz::{DType as Theirs, NpyHeader, TypeChar};

/// The same header, twice.
pub fn npy(data: &[u8]) {
    // Only what our reader takes reaches the crate, which believes a length of 4 GiB.
    let Ok(ours) = Header::parse(data) else { return };
    let head = &data[..usize::try_from(ours.data_offset()).expect("a header in memory")];
    if !head[6..].is_ascii() && data[6] != 3 {
        return;
    }
    let mut rest = data;
    let Ok(theirs) = NpyHeader::from_reader(&mut rest) else { return };
    assert_eq!(data.len() - rest.len(), head.len(), "the data starts elsewhere");
    assert_eq!(theirs.shape(), ours.shape());
    assert_eq!(theirs.order() == npyz::Order::Fortran, ours.fortran_order());
    same(ours.dtype(), &[], &theirs.dtype());
}

/// `ours`, in a field of `shape`, is what the crate calls an array of arrays.
fn same(ours: &DType, shape: &[usize], theirs: &Theirs) {
    if let Some((first, inner)) = shape.split_first() {
        let Theirs::Array(count, element) = theirs else { panic!("{theirs:?} has no axis of {first}") };
        assert_eq!(*count, *first as u64);
        return same(ours, inner, element);
    }
    match (ours, theirs) {
        (DType::Record(layout), Theirs::Record(fields)) => record(layout, fields),
        (DType::Scalar(scalar, order), Theirs::Plain(code)) => {
            assert_eq!(Some(scalar.size()), code.num_bytes(), "{scalar:?}, {code}");
            let swapped = scalar.swap_unit() > 1;
            assert!(!swapped || (*order == Order::Big) == (code.endianness() == npyz::Endianness::Big));
            let kind = match code.type_char() {
                TypeChar::Bool => 'b',
                TypeChar::Int => 'i',
                TypeChar::Uint => 'u',
                TypeChar::Float => 'f',
                TypeChar::Complex => 'c',
                TypeChar::ByteStr => 'S',
                TypeChar::UnicodeStr => 'U',
                TypeChar::RawData => 'V',
                other => panic!("{other:?} is no type of a field"),
            };
            assert!(scalar.code().starts_with(kind), "{scalar:?}, {code}");
        }
        _ => panic!("{ours:?} is {theirs:?}"),
    }
}

/// Fields without a name are the crate's, and only move ours.
fn record(layout: &Layout, fields: &[npyz::Field]) {
    let (mut at, mut own) = (0, layout.fields().iter());
    for field in fields {
        if !field.name.is_empty() {
            let mine = own.next().expect("as many fields");
            assert_eq!((&mine.name, mine.offset), (&field.name, at));
            same(&mine.dtype, &mine.shape, &field.dtype);
        }
        at += field.dtype.num_bytes().expect("a field that was read");
    }
    assert!(own.next().is_none() && at == layout.size());
}
