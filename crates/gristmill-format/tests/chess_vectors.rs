//! The synthetic record R1 of the spec (A.3, A.4) and single planes (A.1): bytes, tensors and every published hash.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::record::at;
use gristmill_format::chess::{ChessEncoder, FrameMut, InputFormat, Output, Outputs, layout_v6, layout_v7};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::Conform;
use sha2::{Digest, Sha256};

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn splitmix(i: u64) -> u64 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn r1() -> Vec<u8> {
    let mut bytes = vec![0; layout_v6().size()];
    let mut f = FrameMut::blank(&mut bytes, InputFormat::Classical).unwrap();
    for k in 0..20u8 {
        f.set_probability(37 * usize::from(k), f32::from(k + 1) / 256.0);
    }
    f.set_probability(740, 46.0 / 256.0);
    for i in 0..104u8 {
        f.set_plane(usize::from(i), splitmix(u64::from(i)));
    }
    f.set_castling_us_ooo(1).set_castling_us_oo(0).set_castling_them_ooo(1).set_castling_them_oo(1);
    f.set_side_to_move_or_enpassant(1).set_rule50_count(37).set_invariance_info(0x28);
    f.set_root_q(0.25).set_best_q(-0.5).set_root_d(0.125).set_best_d(0.375).set_root_m(40.5).set_best_m(38.25);
    f.set_plies_left(61.0).set_result_q(1.0).set_result_d(0.0);
    f.set_played_q(-0.625).set_played_d(0.25).set_played_m(37.75);
    f.set_visits(800).set_played_idx(148).set_best_idx(703).set_policy_kld(0.03125);
    bytes
}

fn widened() -> Vec<u8> {
    let mut wide = vec![0xEE; layout_v7().size()];
    Conform::new(layout_v6(), layout_v7()).unwrap().record(&r1(), &mut wide);
    wide
}

/// Encodes one record into `outputs`, each tensor in a buffer of its own.
fn encode(record: &[u8], outputs: &[Output]) -> Vec<Vec<u8>> {
    let encoder = ChessEncoder::new(outputs).unwrap();
    let mut tensors: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xEE; spec.row_bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = tensors.iter_mut().map(Vec::as_mut_slice).collect();
    let provenance = Provenance { source: 1 << 40, chunk: 5, frame: 6 };
    encoder.encode(&[Row { record, provenance, bits: Default::default(), sparse: None }], &mut slices).unwrap();
    tensors
}

fn one(record: &[u8], output: &str) -> Vec<u8> {
    encode(record, &[Output::parse(output).unwrap()]).remove(0)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn r1_has_the_published_bytes() {
    let r1 = r1();
    assert_eq!(hash(&r1), "7222c7d56bf642ce6366444f79b3bb5c75a60e76993e13a3b2c62f5d3043fc6a");
    for (at, bytes) in [
        (0, [6, 0, 0, 0, 1, 0, 0, 0]),
        (8, [0x00, 0x00, 0x80, 0x3b, 0x00, 0x00, 0x80, 0xbf]),
        (7440, [0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2]),
        (8272, [0x01, 0x00, 0x01, 0x01, 0x01, 0x25, 0x28, 0x00]),
        (8280, [0x00, 0x00, 0x80, 0x3e, 0x00, 0x00, 0x00, 0xbf]),
        (8340, [0x20, 0x03, 0x00, 0x00, 0x94, 0x00, 0xbf, 0x02]),
    ] {
        assert_eq!(r1[at..at + 8], bytes, "at {at}");
    }
    assert_eq!(hash(&widened()), "ab193774b0904f6e941671297441c90c6dcbe3eeba7e5afe4b43e6597d98574f");
}

#[test]
fn r1_encodes_to_the_published_tensors() {
    let tensors = encode(&widened(), &Outputs::standard());
    for (tensor, expected) in tensors.iter().zip([
        "78bafec33e16d0a4aeba5a83805e1804ea733d568df0d91d3ce426a26a095e76",
        "aebe16a166a8852e223099f0b1ec80a928b310e93533f81e3d3141f88536f452",
        "0acc9268626d63b919b421ba939ceb3b3ea6658b173c5f5e8dbd7af2dd9cc87d",
    ]) {
        assert_eq!(hash(tensor), expected);
    }
    let planes = floats(&tensors[0]);
    let ones: Vec<usize> = (0..64).filter(|&s| planes[s] == 1.0).collect();
    let expected = "0 2 4 5 6 7 8 9 12 13 15 19 20 21 23 25 26 27 28 30 31 34 35 36 39 40 42 44 50 56 57 58 62";
    assert_eq!(ones.iter().map(usize::to_string).collect::<Vec<_>>().join(" "), expected);
    assert_eq!(planes[..104 * 64].iter().sum::<f32>(), 3272.0);
    assert_eq!(planes[109 * 64].to_bits(), 0x3ebf_5a81);
}

#[test]
fn a_v7_tail_reaches_the_values() {
    let mut wide = widened();
    FrameMut::new(&mut wide).unwrap().set_short_term(0.5, 703, 65535);
    assert_eq!(hash(&wide), "54672ebafcc75abfce79804ec94c1ac144b71a291706958c6790ea8ef473c34a");
    let values = one(&wide, "values");
    assert_eq!(hash(&values), "0942a054d76575b2a1632f3df34604daa3163d304015d457c3465fd0618b22b1");
    assert_eq!(one(&wide, "opp_played_idx"), 703i32.to_le_bytes());
    assert_eq!(one(&wide, "next_played_idx"), (-1i32).to_le_bytes());
}

#[test]
#[rustfmt::skip]
fn every_input_format_has_its_published_planes() {
    type Case = (u32, [u8; 8], &'static [usize], &'static [usize], &'static [usize], f32, f32, &'static str);
    let cases: [Case; 6] = [
        (2, [0x01, 0x80, 0x01, 0x80, 0x01, 0x25, 0x00, 0x00], &[0, 56], &[7, 63], &[0; 64], 0.373_737_36, 0.0,
            "fb6826e651dd5ebe4a1d249c107dfa61a47821e69aeabd88883a399582bdf881"),
        (3, [0x02, 0x20, 0x00, 0x40, 0x10, 0x25, 0x81, 0x00], &[1], &[5, 62], &[60], 0.373_737_36, 0.0,
            "d7b7c9094f28c4aa497482024fa6b1ad51cd3bbcbef70fd424d59fa4ba068394"),
        (4, [0x00, 0x00, 0x00, 0x00, 0x08, 0x25, 0x83, 0x00], &[], &[], &[59], 0.37, 0.0,
            "0441c3f6e3860f5067adfe296859a4f5fe9371bc2ef12812d872083a217bd3c7"),
        (5, [0x00, 0x00, 0x00, 0x00, 0x00, 0x32, 0x07, 0x00], &[], &[], &[], 0.5, 0.0,
            "0604f14b726b88a9473dcfe826dd89ca13bf60ab8f8778a423c2345df60f3fc8"),
        (132, [0x00, 0x00, 0x00, 0x00, 0x01, 0x63, 0x81, 0x00], &[], &[], &[56], 0.99, 1.0,
            "05454cde05b89d1e529a453d572329c178d48e39380b624eaaba6c0818115966"),
        (133, [0x00, 0x00, 0x00, 0x00, 0x00, 0x64, 0x01, 0x00], &[], &[], &[], 1.0, 0.0,
            "c3384d63c7c9fe979cde1048ba0d4dd34de6e2facb6afe887a624190999c6834"),
    ];
    for (format, bytes, p104, p105, p108, p109, p110, expected) in cases {
        let mut record = widened();
        record[at::INPUT_FORMAT..at::INPUT_FORMAT + 4].copy_from_slice(&format.to_le_bytes());
        record[at::CASTLING_US_OOO..at::ROOT_Q].copy_from_slice(&bytes);
        let tensor = one(&record, "planes");
        let planes = floats(&tensor);
        let ones = |p: usize| (0..64).filter(|s| planes[p * 64 + s] == 1.0).collect::<Vec<_>>();
        assert_eq!((ones(104).as_slice(), ones(105).as_slice()), (p104, p105), "format {format}");
        match p108.len() {
            64 => assert_eq!(ones(108).len(), 64, "format {format}"),
            _ => assert_eq!(ones(108), p108, "format {format}"),
        }
        assert_eq!((planes[109 * 64], planes[110 * 64]), (p109, p110), "format {format}");
        assert_eq!(hash(&tensor), expected, "format {format}");
        same_in_every_form(&record, &planes);
    }
    same_in_every_form(&widened(), &floats(&one(&widened(), "planes")));
}

/// f16, bf16, u8, flat and packed bits say the same as the f32 planes.
fn same_in_every_form(record: &[u8], planes: &[f32]) {
    for (i, (half, &full)) in one(record, "planes:f16").chunks_exact(2).zip(planes).enumerate() {
        assert_eq!(half::f16::from_le_bytes(half.try_into().unwrap()), half::f16::from_f32(full), "element {i}");
    }
    for (i, (half, &full)) in one(record, "planes:bf16").chunks_exact(2).zip(planes).enumerate() {
        assert_eq!(half::bf16::from_le_bytes(half.try_into().unwrap()), half::bf16::from_f32(full), "element {i}");
    }
    assert_eq!(one(record, "planes:packed"), encode(record, &[Output::PlaneBits]).concat());
    let meta = &encode(record, &[Output::PlaneBits])[1];
    let rule50 = f32::from(meta[5]);
    for (i, (&byte, &full)) in one(record, "planes:u8").iter().zip(planes).enumerate() {
        let expected = if i / 64 == 109 { rule50 } else { full };
        assert_eq!(f32::from(byte), expected, "element {i}");
    }
    assert_eq!(floats(&one(record, "planes:flat")), planes);
    assert_eq!(expanded_bits(record), planes);
}

/// The expansion that `docs/format/chess.md` gives for `planes:bits`, for a device to do.
fn expanded_bits(record: &[u8]) -> Vec<f32> {
    let tensors = encode(record, &[Output::PlaneBits]);
    let (words, m) = (&tensors[0], &tensors[1]);
    let words: Vec<u64> = words.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    let format = u32::from_le_bytes(m[8..12].try_into().unwrap());
    let bit = |word: u64, s: usize| f32::from(u8::from(word >> (s ^ 7) & 1 == 1));
    let mut planes = Vec::new();
    for p in 0..112 {
        for s in 0..64 {
            let (rank, file) = (s / 8, s % 8);
            let edge = |first: u8, last: u8| match rank {
                0 => f32::from(first >> file & 1),
                7 => f32::from(last >> file & 1),
                _ => 0.0,
            };
            planes.push(match p {
                0..104 => bit(words[p], s),
                104..108 if format == 1 => f32::from(m[p - 104]),
                104 => edge(m[0], m[2]),
                105 => edge(m[1], m[3]),
                106 | 107 => 0.0,
                108 if format < 3 => f32::from(m[4]),
                108 => edge(0, m[4]),
                109 => f32::from(m[5]) / if format < 4 { 99.0 } else { 100.0 },
                110 => f32::from(u8::from(format >= 132 && m[6] >= 128)),
                _ => 1.0,
            });
        }
    }
    planes
}

#[test]
fn the_older_tuple_the_mask_and_the_ids() {
    let tensors = encode(&widened(), &Outputs::legacy_tuple());
    assert_eq!(tensors.len(), 5);
    assert_eq!(hash(&tensors[0]), "78bafec33e16d0a4aeba5a83805e1804ea733d568df0d91d3ce426a26a095e76");
    assert_eq!(floats(&tensors[2]), [1.0, 0.0, 0.0]);
    assert_eq!(floats(&tensors[3]), [0.0625, 0.375, 0.5625]);
    assert_eq!(floats(&tensors[4]), [61.0]);
    let legal = one(&widened(), "legal");
    let on: Vec<usize> = (0..1858).filter(|&i| legal[i] == 1).collect();
    assert_eq!(on, (0..=20).map(|k| 37 * k).collect::<Vec<_>>());
    let ids: Vec<u64> =
        one(&widened(), "ids").chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(ids, [1 << 40, 5, 6]);
    assert_eq!(one(&widened(), "played_idx"), 148i32.to_le_bytes());
}

#[test]
fn single_planes_have_their_published_squares() {
    for (word, squares) in [
        (0x0000_0000_0000_0008, vec![4]),
        (0x0000_0000_0000_0010, vec![3]),
        (0x0000_0000_0000_ff00, (8..16).collect()),
        (0x0000_0000_0000_01c0, vec![0, 1, 15]),
        (0x8100_0000_0000_0001, vec![7, 56, 63]),
        (0x0102_0408_1020_4080, vec![0, 9, 18, 27, 36, 45, 54, 63]),
        (0x0000_0000_0800_0000, vec![28]),
        (0x0000_0000_0000_0042, vec![1, 6]),
    ] {
        let mut record = widened();
        FrameMut::new(&mut record).unwrap().set_plane(50, word);
        let planes = floats(&one(&record, "planes"));
        let ones: Vec<usize> = (0..64).filter(|s| planes[50 * 64 + s] == 1.0).collect();
        assert_eq!(ones, squares, "{word:x}");
    }
}

#[test]
fn many_rows_are_the_single_rows_one_after_another() {
    let outputs = Outputs::parse(&["planes:f16", "probs", "values", "ids"]).unwrap();
    let mut records: Vec<Vec<u8>> = Vec::new();
    for i in 0..100u8 {
        let mut record = widened();
        FrameMut::new(&mut record).unwrap().set_rule50_count(i).set_probability(9, f32::from(i));
        records.push(record);
    }
    let provenance = Provenance { source: 1 << 40, chunk: 5, frame: 6 };
    let rows: Vec<Row<'_>> =
        records.iter().map(|record| Row { record, provenance, bits: Default::default(), sparse: None }).collect();
    let encoder = ChessEncoder::new(&outputs).unwrap();
    // Far enough apart that a streamed row would show if it ran over, at several alignments.
    for shift in [0, 32, 8] {
        let mut rooms: Vec<Vec<u8>> =
            encoder.outputs().iter().map(|spec| vec![0xEE; spec.row_bytes() * rows.len() + 256]).collect();
        let starts: Vec<usize> = rooms.iter().map(|room| room.as_ptr().align_offset(64) + shift).collect();
        let mut slices: Vec<&mut [u8]> = rooms
            .iter_mut()
            .zip(encoder.outputs())
            .zip(&starts)
            .map(|((room, spec), &start)| &mut room[start..start + spec.row_bytes() * rows.len()])
            .collect();
        encoder.encode(&rows, &mut slices).unwrap();
        for (i, record) in records.iter().enumerate() {
            for ((slice, spec), single) in slices.iter().zip(encoder.outputs()).zip(encode(record, &outputs)) {
                let bytes = spec.row_bytes();
                assert!(slice[i * bytes..(i + 1) * bytes] == single, "row {i} of {}", spec.name);
            }
        }
    }
}

#[test]
fn records_that_cannot_be_encoded_are_refused_with_their_frame() {
    let encoder = ChessEncoder::new(&Outputs::standard()).unwrap();
    let refuse = |record: &[u8]| {
        let mut tensors: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; spec.row_bytes()]).collect();
        let mut slices: Vec<&mut [u8]> = tensors.iter_mut().map(Vec::as_mut_slice).collect();
        let provenance = Provenance { source: 0, chunk: 3, frame: 9 };
        encoder.encode(&[Row { record, provenance, bits: Default::default(), sparse: None }], &mut slices).unwrap_err()
    };
    let mut format = widened();
    format[4] = 6;
    let mut version = widened();
    version[0] = 5;
    let name = |e: &gristmill_format::Error| (e.kind().name(), e.place().frame, e.place().chunk);
    assert_eq!(name(&refuse(&format)), ("out_of_range", Some(9), Some(3)));
    assert_eq!(name(&refuse(&version)), ("unknown_version", Some(9), Some(3)));
    assert_eq!(name(&refuse(&r1())), ("wrong_size", Some(9), Some(3)));
    let mut none: Vec<&mut [u8]> = Vec::new();
    assert_eq!(encoder.encode(&[], &mut none).unwrap_err().kind().name(), "wrong_size");
}

#[test]
fn two_tensors_of_one_name_are_refused() {
    let twice = Outputs::parse(&["planes:u8", "probs", "planes"]).unwrap();
    assert!(ChessEncoder::new(&twice).unwrap_err().detail().contains("`planes`"));
    assert!(ChessEncoder::new(&[]).is_err());
}
