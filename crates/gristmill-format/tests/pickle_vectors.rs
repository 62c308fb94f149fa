//! The safe unpickler on pickles that real libraries wrote: every value compared with what it is known to be.
//! Skips where the folder of vectors is absent.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use gristmill_format::Kind;
use gristmill_format::container::pickle::{Class, Data, Id, Mapping, Node, Pickle, PickleLimits, parse};
use serde_json::Value;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Compares a value with its description; `above` holds the containers around it.
fn compare(pickle: &Pickle<'_>, id: Id, expected: &Value, above: &mut Vec<Id>, place: &str) {
    let kind = expected["t"].as_str().unwrap();
    if above.contains(&id) {
        assert_eq!(kind, "RECURSIVE", "{place}");
        return;
    }
    let items = |expected: &Value| expected["items"].as_array().unwrap().clone();
    above.push(id);
    match (pickle.node(id), kind) {
        (Node::None, "NoneType") => {}
        (Node::Bool(value), "bool") => assert_eq!(expected["v"], *value, "{place}"),
        (Node::Int(value), "int") => assert_eq!(expected["v"], value.to_string(), "{place}"),
        (Node::BigInt(blob), "int") => {
            let mut text = expected["v"].as_str().unwrap().as_bytes().to_vec();
            text.insert(0, b'L');
            text.extend_from_slice(b"\n.");
            let decimal = parse(&text, &PickleLimits::default()).unwrap();
            let Node::BigInt(other) = decimal.node(decimal.root()) else { panic!("{place}: a small integer") };
            let (one, other) = (pickle.bytes(blob), decimal.bytes(other));
            let len = one.len().min(other.len());
            assert_eq!(one[..len], other[..len], "{place}");
        }
        (Node::Float(value), "float") => {
            let text = expected["v"].as_str().unwrap();
            let known: f64 = text.parse().unwrap();
            assert!(known == *value || known.is_nan() && value.is_nan(), "{place}: {value} for {text}");
        }
        (Node::Complex(..), "complex") => {}
        (Node::Text(_), "str") => assert_eq!(expected["v"].as_str(), pickle.text(id), "{place}"),
        (Node::Bytes(blob), "bytes") | (Node::ByteArray(blob), "bytearray") => {
            assert_eq!(
                expected["hex"].as_str().or(expected["v"].as_str()).unwrap(),
                hex(pickle.bytes(blob)),
                "{place}"
            );
        }
        (Node::List(found), "list") | (Node::Tuple(found), "tuple") | (Node::Deque(found), "deque") => {
            let known = items(expected);
            assert_eq!(found.len(), known.len(), "{place}");
            for (i, (id, known)) in found.iter().zip(&known).enumerate() {
                compare(pickle, *id, known, above, &format!("{place}[{i}]"));
            }
        }
        (Node::Set(found), "set") | (Node::FrozenSet(found), "frozenset") => {
            assert_eq!(found.len(), items(expected).len(), "{place}");
        }
        (Node::Dict(mapping, pairs), "dict" | "OrderedDict" | "defaultdict") => {
            let known = match mapping {
                Mapping::Dict => "dict",
                Mapping::Ordered => "OrderedDict",
                Mapping::Default => "defaultdict",
            };
            assert_eq!(kind, known, "{place}");
            let known = items(expected);
            assert_eq!(pairs.len(), known.len(), "{place}");
            for ((key, value), known) in pairs.iter().zip(&known) {
                compare(pickle, *key, &known[0], above, &format!("{place}.key"));
                compare(pickle, *value, &known[1], above, &format!("{place}[{}]", known[0]["v"]));
            }
        }
        (Node::Array(array), "ndarray") => {
            assert_eq!(expected["shape"], Value::from(array.shape.clone()), "{place}");
            if let Data::Objects(objects) = &array.data {
                assert_eq!(expected["dtype"], "O");
                for (id, known) in objects.iter().zip(&items(expected)) {
                    compare(pickle, *id, known, above, place);
                }
            } else {
                assert_eq!(array.element.descr(), expected["dtype"].as_str().unwrap(), "{place}");
                let bytes = array.c_order(pickle).unwrap();
                if let Some(known) = expected["c_order_hex"].as_str() {
                    assert_eq!(hex(&bytes), known, "{place}");
                }
                assert_eq!(sha256(&bytes), expected["c_order_sha256"].as_str().unwrap(), "{place}");
            }
        }
        (Node::Scalar(element, blob), "npscalar") => {
            let little = expected["dtype"].as_str().unwrap();
            let mut bytes = pickle.bytes(blob).to_vec();
            if element.descr().starts_with('>') {
                bytes.reverse();
            }
            assert_eq!(element.descr().replace('>', "<"), little, "{place}");
            assert_eq!(hex(&bytes), expected["hex"].as_str().unwrap(), "{place}");
        }
        (Node::DType(element), "dtype") => assert_eq!(element.descr(), expected["v"].as_str().unwrap(), "{place}"),
        (Node::Object(object), "enum") => {
            assert_eq!(object.class, Class::ColorSpace, "{place}");
            assert_eq!(pickle.text(object.args[0]), expected["v"].as_str(), "{place}");
        }
        (Node::Object(object), "opaque") => {
            let known = expected["cls"].as_str().unwrap().rsplit('.').next().unwrap();
            let found = object.class.name();
            let same = found == known || known == "KwObj" || found == "a random state" || known.starts_with(found);
            assert!(same, "{place}: {found} for {known}");
        }
        (node, _) => panic!("{place}: {} for {expected}", node.type_name()),
    }
    above.pop();
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(bytes))
}

#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn every_pickle_of(folder: &str) {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from);
    let root = shared.join("vectors/demos").join(folder);
    let Ok(index) = fs::read_to_string(root.join("index.json")) else {
        eprintln!("skipped: no vectors at {}; set GRISTMILL_SHARED", root.display());
        return;
    };
    let index: Value = serde_json::from_str(&index).unwrap();
    let mut read = 0;
    for name in index["files"].as_object().unwrap().keys() {
        let bytes = fs::read(root.join(name)).unwrap();
        let found = parse(&bytes, &PickleLimits::default());
        if name.starts_with("EVIL_") {
            let e = found.unwrap_err();
            assert_eq!(e.kind(), Kind::Forbidden, "{name}: {e}");
            assert!(
                e.place().offset.is_some() && (e.detail().contains("system") || e.detail().contains("eval")),
                "{e}"
            );
            continue;
        }
        let pickle = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        let value = name.split('.').next().unwrap();
        compare(&pickle, pickle.root(), &index["expected"][value], &mut Vec::new(), name);
        read += 1;
        for cut in 0..bytes.len().min(400) {
            let e = parse(&bytes[..cut], &PickleLimits::default()).expect_err(name);
            assert!(e.place().offset.is_some_and(|at| at <= cut as u64), "{name} cut at {cut}: {e}");
        }
    }
    assert!(read > 300, "{read} pickles were read");
}

#[test]
fn those_of_numpy_1() {
    every_pickle_of("pickles_np1");
}

#[test]
fn those_of_numpy_2() {
    every_pickle_of("pickles_np2");
}
