//! Body of the `pickle` fuzz target: arbitrary bytes as a pickle; panics when a promise breaks.
//! Shared, as source, with the replay of its corpus on stable Rust.

use gristmill_format::container::pickle::{Blob, Data, Node, Pattern, Pickle, PickleLimits, parse_prefix};

/// What parses took no more memory than allowed, holds no half-made array, and every range lies within the input; what
/// does not says where.
pub fn pickle(data: &[u8]) {
    let bound = 1 << 20;
    let (pickle, used) = match parse_prefix(data, &PickleLimits { max_bytes: bound }) {
        Ok(found) => found,
        Err(e) => {
            assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}");
            return;
        }
    };
    patterned(&data[..used], &pickle);
    assert!(used <= data.len() && pickle.len() * size_of::<Node>() <= bound);
    let within = |blob: &Blob| match blob {
        Blob::Input(range) => assert!(range.end <= used),
        Blob::Owned(bytes) => assert!(bytes.len() <= bound),
    };
    for id in pickle.ids() {
        match pickle.node(id) {
            Node::Announced => panic!("an array without contents"),
            Node::Text(blob) => {
                within(blob);
                assert!(pickle.text(id).is_some());
            }
            Node::Bytes(blob) | Node::ByteArray(blob) | Node::BigInt(blob) => within(blob),
            Node::Scalar(element, blob) => assert_eq!(pickle.bytes(blob).len(), element.size()),
            Node::Array(array) => match &array.data {
                Data::Objects(objects) => assert_eq!(objects.len(), array.count()),
                Data::Raw(blob) => {
                    within(blob);
                    let bytes = array.c_order(&pickle).expect("raw");
                    assert_eq!(bytes.len(), array.count() * array.element.size());
                }
            },
            _ => {}
        }
    }
}

/// What a pattern says of a pickle with other bytes in its array is what the machine makes of it.
fn patterned(data: &[u8], pickle: &Pickle<'_>) {
    // A pattern is of all of its input.
    let Ok((whole, _)) = parse_prefix(data, &PickleLimits { max_bytes: 1 << 20 }) else { return };
    let Some(pattern) = Pattern::of(&whole) else { return };
    let own = pattern.fits(data).expect("it fits what it was made of");
    let start = own.as_ptr().addr() - data.as_ptr().addr();
    let mut other = data.to_vec();
    other[start..start + own.len()].iter_mut().for_each(|byte| *byte = !*byte);
    let (found, used) = parse_prefix(&other, &PickleLimits { max_bytes: 1 << 20 }).expect("only its bytes differ");
    assert!(used == other.len() && pattern.fits(&other) == Some(&other[start..start + own.len()]));
    // Byte strings are compared by their place, so that all values are the same ones.
    let same = |id| format!("{:?}", found.node(id)) == format!("{:?}", pickle.node(id));
    assert!(found.len() == pickle.len() && found.ids().all(same));
}
