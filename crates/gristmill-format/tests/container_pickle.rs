//! The safe unpickler on bytes of our own: protocols 0 and 1 as Python writes them, hostile shapes, bounds, sharing.
#![allow(missing_docs, clippy::unwrap_used)]

use gristmill_format::container::pickle::{
    Class, Element, Mapping, Node, Pickle, PickleLimits, Space, parse, parse_prefix,
};
use gristmill_format::{Error, Kind};

fn read(bytes: &[u8]) -> Pickle<'_> {
    parse(bytes, &PickleLimits::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(bytes: &[u8]) -> Error {
    let e = parse(bytes, &PickleLimits::default()).expect_err("refused");
    assert!(e.place().offset.is_some(), "{e}");
    e
}

#[test]
fn protocol_0_and_1_read_as_python_wrote_them() {
    let zero = b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naL1180591620717411303424L\naI01\naNaF1.5\nasVb\np3\n(Vx\np4\nV\xe9\\u20ac\np5\n\
                 tp7\nsVc\np8\nc_codecs\nencode\np9\n(V\\u0000\xff\np10\nVlatin1\np11\ntp12\nRp13\ns.";
    let one = b"}q\x00(X\x01\0\0\0aq\x01]q\x02(K\x01J\xfe\xff\xff\xffL1180591620717411303424L\nI01\nNG?\xf8\0\0\0\0\0\0e\
                X\x01\0\0\0bq\x03(X\x01\0\0\0xq\x04X\x05\0\0\0\xc3\xa9\xe2\x82\xacq\x05tq\x07X\x01\0\0\0cq\x08c_codecs\nencode\n\
                q\t(X\x03\0\0\0\0\xc3\xbfq\nX\x06\0\0\0latin1q\x0btq\x0cRq\ru.";
    for bytes in [&zero[..], one] {
        let pickle = read(bytes);
        let a = pickle.items(pickle.get(pickle.root(), "a").unwrap()).unwrap();
        assert_eq!(*pickle.node(a[0]), Node::Int(1));
        assert_eq!(*pickle.node(a[1]), Node::Int(-2));
        let Node::BigInt(big) = pickle.node(a[2]) else { panic!("a big integer") };
        assert_eq!(pickle.bytes(big)[..9], [0, 0, 0, 0, 0, 0, 0, 0, 64]);
        assert_eq!(
            [pickle.node(a[3]), pickle.node(a[4]), pickle.node(a[5])],
            [&Node::Bool(true), &Node::None, &Node::Float(1.5)]
        );
        let b = pickle.items(pickle.get(pickle.root(), "b").unwrap()).unwrap();
        assert_eq!((pickle.text(b[0]), pickle.text(b[1])), (Some("x"), Some("é€")));
        let Node::Bytes(c) = pickle.node(pickle.get(pickle.root(), "c").unwrap()) else { panic!("bytes") };
        assert_eq!(pickle.bytes(c), [0, 255]);
    }
}

#[test]
fn numpy_arrays_and_scalars_of_protocol_0_and_1() {
    let little = b"cnumpy._core.multiarray\n_reconstruct\np0\n(cnumpy\nndarray\np1\n(I0\ntp2\nc_codecs\nencode\np3\n(Vb\np4\n\
                   Vlatin1\np5\ntp6\nRp7\ntp8\nRp9\n(I1\n(I3\ntp10\ncnumpy\ndtype\np11\n(Vi2\np12\nI00\nI01\ntp13\nRp14\n\
                   (I3\nV<\np15\nNNNI-1\nI-1\nI0\ntp16\nbI00\ng3\n(V\\u0000\\u0000\x01\\u0000\x02\\u0000\np17\ng5\ntp18\nRp19\n\
                   tp20\nb.";
    let pickle = read(little);
    let array = pickle.array(pickle.root()).unwrap();
    assert_eq!((array.element.descr().as_str(), array.shape.as_slice()), ("<i2", &[3][..]));
    assert_eq!(array.c_order(&pickle).unwrap().as_ref(), [0, 0, 1, 0, 2, 0]);

    let big = b"cnumpy._core.multiarray\n_reconstruct\nq\0(cnumpy\nndarray\nq\x01(K\0tq\x02c_codecs\nencode\nq\x03(X\x01\0\0\0b\
                q\x04X\x06\0\0\0latin1q\x05tq\x06Rq\x07tq\x08Rq\t(K\x01(K\x03tq\ncnumpy\ndtype\nq\x0b(X\x02\0\0\0i2q\x0cI00\n\
                I01\ntq\rRq\x0e(K\x03X\x01\0\0\0>q\x0fNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tq\x10bI00\nh\x03(X\x06\0\0\0\
                \0\0\0\x01\0\x02q\x11h\x05tq\x12Rq\x13tq\x14b.";
    let pickle = read(big);
    let array = pickle.array(pickle.root()).unwrap();
    assert_eq!((array.element.descr().as_str(), array.count()), (">i2", 3));

    let scalar = b"cnumpy._core.multiarray\nscalar\np0\n(cnumpy\ndtype\np1\n(Vf4\np2\nI00\nI01\ntp3\nRp4\n(I3\nV<\np5\nNNNI-1\n\
                   I-1\nI0\ntp6\nbc_codecs\nencode\np7\n(V\\u0000\\u0000\xc0?\np8\nVlatin1\np9\ntp10\nRp11\ntp12\nRp13\n.";
    let pickle = read(scalar);
    let Node::Scalar(Element::Scalar(..), blob) = pickle.node(pickle.root()) else { panic!("a scalar") };
    assert_eq!(pickle.bytes(blob), 1.5f32.to_le_bytes());
}

#[test]
fn containers_of_the_library_are_data() {
    let pickle = read(b"ccollections\nOrderedDict\np0\n(tRp1\nVa\np2\nI1\ns.");
    assert!(matches!(pickle.node(pickle.root()), Node::Dict(Mapping::Ordered, pairs) if pairs.len() == 1));
    let pickle = read(b"ccollections\ndefaultdict\n(c__builtin__\nlist\ntR.");
    assert!(matches!(pickle.node(pickle.root()), Node::Dict(Mapping::Default, _)));
    let pickle = read(b"c__builtin__\nset\np0\n((lp1\nI1\naI2\natp2\nRp3\n.");
    assert!(matches!(pickle.node(pickle.root()), Node::Set(items) if items.len() == 2));
    let pickle = read(b"c__builtin__\ncomplex\np0\n(F1.0\nF2.0\ntp1\nRp2\n.");
    assert_eq!(*pickle.node(pickle.root()), Node::Complex(1.0, 2.0));
    let pickle = read(b"cgym.spaces.discrete\nDiscrete\n)\x81}(U\x01nK\x06ub.");
    let Node::Object(space) = pickle.node(pickle.root()) else { panic!("a space") };
    assert_eq!(space.class, Class::Space(Space::Discrete));
    assert_eq!(pickle.get(space.state.unwrap(), "n").and_then(|n| pickle.int(n)), Some(6));
}

#[test]
fn nothing_off_the_list_is_resolved() {
    for (bytes, name) in [
        (&b"cos\nsystem\n(S'true'\ntR."[..], "os.system"),
        (b"c__builtin__\neval\n(S'1'\ntR.", "__builtin__.eval"),
        (b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.", "builtins.getattr"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n.", "torch._utils._rebuild_tensor_v2"),
        (b"cnumpy\nload\n.", "numpy.load"),
        (b"cnumpy.core.multiarray\nfromfile\n.", "numpy.core.multiarray.fromfile"),
    ] {
        let e = refused(bytes);
        assert_eq!(e.kind(), Kind::Forbidden, "{name}");
        assert!(e.detail().contains(name), "{e}");
    }
    // Listed names in the place of functions, and values in the place of names.
    for bytes in [&b"cnumpy\nndarray\n)R."[..], b"c__builtin__\nint\n(S'7'\ntR.", b"c_codecs\nencode\n(VA\nVrot13\ntR."]
    {
        assert_eq!(refused(bytes).kind(), Kind::Unsupported);
    }
    for bytes in [&b"K\x01)R."[..], b"cnumpy\ndtype\nK\x01R.", b"K\x01)\x81.", b"K\x01K\x02\x93."] {
        assert_eq!(refused(bytes).kind(), Kind::Corrupt);
    }
    for bytes in [&b"P1\n."[..], b"\x82\x01.", b"\x97.", b"(i__main__\nx\n.", b"\x80\x06N."] {
        assert_eq!(refused(bytes).kind(), Kind::Unsupported);
    }
}

#[test]
fn recursive_and_shared_values_cost_nothing() {
    let pickle = read(b"]q\x00(K\x01h\x00e.");
    let items = pickle.items(pickle.root()).unwrap();
    assert_eq!(items[1], pickle.root());
    // Lists of the list before, twice each: two to the power of thirty leaves, thirty nodes.
    let mut laughs = b"]q\x00".to_vec();
    for i in 0..30u8 {
        laughs.extend([b']', b'q', i + 1, b'(', b'h', i, b'h', i, b'e']);
    }
    laughs.push(b'.');
    // Each list but the last is left on the stack below it.
    let mut pops = vec![b'('];
    pops.extend(&laughs[..laughs.len() - 1]);
    pops.extend(*b"0h\x1e.");
    assert_eq!(refused(&laughs).kind(), Kind::Corrupt);
    pops.splice(pops.len() - 4.., *b"1h\x1e.");
    let pickle = read(&pops);
    assert_eq!(pickle.items(pickle.root()).unwrap().len(), 2);
    assert!(pickle.len() < 64);
}

#[test]
fn depth_and_bombs_are_bounded() {
    let depth = 200_000;
    let mut deep = vec![b']'; depth];
    deep.extend(vec![b'a'; depth - 1]);
    deep.push(b'.');
    assert_eq!(read(&deep).len(), depth);

    let bound = PickleLimits { max_bytes: 1 << 20 };
    let many = |op: &[u8], times: usize| {
        let mut bytes = b"(".to_vec();
        for _ in 0..times {
            bytes.extend_from_slice(op);
        }
        bytes.extend(*b"l.");
        bytes
    };
    for (op, times) in [(&b"]"[..], 1 << 20), (b"}", 1 << 20), (b"N2", 1 << 20), (b"(", 1 << 20)] {
        let e = parse(&many(op, times), &bound).unwrap_err();
        assert_eq!(e.kind(), Kind::TooLarge, "{op:?}: {e}");
    }
    let e = refused(b"Nr\xff\xff\xff\xff.");
    assert_eq!(e.kind(), Kind::Corrupt, "a memo of four billion entries: {e}");
    for length in [&b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."[..], b"B\xff\xff\xff\xff.", b"\x8b\xff\xff\xff\x7f."] {
        assert_eq!(refused(length).kind(), Kind::Truncated);
    }
}

/// An array as protocol 3 writes it: shape and data as given.
fn array(shape: &[u8], dtype: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R(K\x01".to_vec();
    bytes.extend_from_slice(shape);
    bytes.extend(b"cnumpy\ndtype\nX\x02\0\0\0".iter().chain(dtype));
    bytes.extend(*b"\x89\x88\x87R(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89");
    bytes.extend([b'C', data.len() as u8]);
    bytes.extend_from_slice(data);
    bytes.extend(*b"tb.");
    bytes
}

#[test]
fn arrays_whose_parts_disagree_are_refused() {
    let whole = array(b"K\x02\x85", b"i4", &[0; 8]);
    let pickle = read(&whole);
    assert_eq!(pickle.array(pickle.root()).unwrap().count(), 2);
    assert_eq!(refused(&array(b"K\x03\x85", b"i4", &[0; 8])).kind(), Kind::WrongSize);
    assert_eq!(refused(&array(b"J\xff\xff\xff\xff\x85", b"i4", &[0; 8])).kind(), Kind::Unsupported);
    let huge = b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x86";
    assert_eq!(refused(&array(huge, b"i4", &[0; 8])).kind(), Kind::WrongSize);
    assert_eq!(refused(&array(b"K\x02\x85", b"q4", &[0; 8])).kind(), Kind::Unsupported);
    let announced = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R.";
    assert_eq!(refused(announced).kind(), Kind::Corrupt);
    assert_eq!(refused(b"}(VA\nK\x01VA\nK\x02u.").kind(), Kind::Corrupt, "one key twice");
    assert_eq!(refused(b"}(]K\x01u.").kind(), Kind::Corrupt, "a list as a key");
}

#[test]
fn stacks_never_run_below_their_marks() {
    for bytes in
        [&b"."[..], b"a.", b"(a.", b"N(\x85.", b"0.", b"(0N(N..", b"e.", b"s.", b"u.", b"R.", b"b.", b"q\0.", b"h\0."]
    {
        assert_eq!(refused(bytes).kind(), Kind::Corrupt, "{bytes:?}");
    }
    assert_eq!(refused(b"NN.").kind(), Kind::Corrupt);
    assert_eq!(refused(b"(N.").kind(), Kind::Corrupt);
}

#[test]
fn what_follows_the_end_is_refused_or_left() {
    let e = refused(b"N.N.");
    assert_eq!((e.kind(), e.place().offset), (Kind::Corrupt, Some(2)));
    let (pickle, used) = parse_prefix(b"N.rest", &PickleLimits::default()).unwrap();
    assert_eq!((pickle.node(pickle.root()), used), (&Node::None, 2));
}
