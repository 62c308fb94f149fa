//! Replays every file of the fuzz corpora on stable Rust through the bodies of the fuzz targets.
//! `cargo test -p gristmill-format --test formats corpus_replay -- --ignored` writes the seeds again.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used, unreachable_pub)]

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz_bodies;

use std::fs;
use std::path::PathBuf;

use gristmill_format::chess::pack::{CODEC, Packer};
use gristmill_format::chess::syzygy::{Material, TableKind};
use gristmill_format::chess::{InputFormat, Version};
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::container::gzip::compress;
use gristmill_format::container::marks::{Mark, Origin};
use gristmill_format::container::sums;
use gristmill_format::container::tar::TarWriter;

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn replay(target: &str, body: fn(&[u8])) {
    let mut files: Vec<_> = fs::read_dir(corpus(target)).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "the corpus of {target} is missing");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let outcome = std::panic::catch_unwind(|| body(&bytes));
        assert!(outcome.is_ok(), "{} breaks a promise", file.display());
    }
}

#[test]
fn gzip_chunk() {
    replay("gzip_chunk", fuzz_bodies::gzip_chunk);
}

#[test]
fn binpack() {
    replay("binpack", fuzz_bodies::binpack);
}

#[test]
fn bullet() {
    replay("bullet", fuzz_bodies::bullet);
}

#[test]
fn katago() {
    replay("katago", fuzz_bodies::katago);
}

#[test]
fn records() {
    replay("records", fuzz_bodies::records);
}

#[test]
fn tally() {
    replay("tally", fuzz_bodies::tally);
}

#[test]
fn pgn() {
    replay("pgn", fuzz_bodies::pgn);
}

#[test]
fn tar() {
    replay("tar", fuzz_bodies::tar);
}

#[test]
fn packed() {
    replay("packed", fuzz_bodies::packed);
}

#[test]
fn trajectory() {
    replay("trajectory", fuzz_bodies::trajectory);
}

#[test]
fn chunks() {
    replay("chunks", fuzz_bodies::chunks);
}

#[test]
fn marks() {
    replay("marks", fuzz_bodies::marks);
}

#[test]
fn weights() {
    replay("weights", fuzz_bodies::weights);
}

#[test]
fn record() {
    replay("record", fuzz_bodies::record);
}

#[test]
fn descr() {
    replay("descr", fuzz_bodies::descr);
}

#[test]
fn check() {
    replay("check", fuzz_bodies::check);
}

#[test]
fn rescore() {
    replay("rescore", fuzz_bodies::rescore);
}

#[test]
fn syzygy() {
    replay("syzygy", fuzz_bodies::syzygy);
}

/// A generator of numbers that are the same each time.
fn numbers() -> impl FnMut() -> u32 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    }
}

/// Any few edits of records: half of them in the planes and the bytes after them.
fn edits(next: &mut impl FnMut() -> u32, mut data: Vec<u8>) -> Vec<u8> {
    for _ in 0..next() % 6 {
        let at = if next().is_multiple_of(2) { next() } else { 7440 + next() % 900 };
        data.extend_from_slice(&at.to_le_bytes());
        data.push(next() as u8);
    }
    data
}

/// Far more games than the corpus holds.
#[test]
fn games_with_random_edits_are_judged() {
    let mut next = numbers();
    for kind in 0..400 {
        fuzz_bodies::check(&edits(&mut next, vec![kind as u8]));
    }
}

#[test]
fn packed_games_with_random_edits_are_read_or_refused() {
    let mut next = numbers();
    let seeds = ["v6", "v7"].map(|name| fs::read(corpus("packed").join(name)).unwrap());
    for n in 0..600 {
        let mut data = seeds[n % 2].clone();
        for _ in 0..1 + next() % 3 {
            let at = next() as usize % data.len();
            data[at] = next() as u8;
        }
        fuzz_bodies::packed(&data);
    }
}

#[test]
fn packed_trajectories_with_random_edits_are_read_or_refused() {
    let mut next = numbers();
    let seeds = ["stacks", "values"].map(|name| fs::read(corpus("trajectory").join(name)).unwrap());
    for n in 0..600 {
        let mut data = seeds[n % 2].clone();
        for _ in 0..1 + next() % 3 {
            let at = next() as usize % data.len();
            data[at] = next() as u8;
        }
        fuzz_bodies::trajectory(&data);
    }
}

#[test]
fn games_with_random_edits_are_rescored_or_refused() {
    let mut next = numbers();
    for format in 0..800 {
        let head = vec![format as u8, next() as u8, next() as u8 % 14, next() as u8];
        fuzz_bodies::rescore(&edits(&mut next, head));
    }
}

#[test]
fn tables_with_random_edits_answer_or_say_that_they_are_damaged() {
    let mut next = numbers();
    let seeds = tables();
    for n in 0..400 {
        let mut data = seeds[n % seeds.len()].1.clone();
        for _ in 0..1 + next() % 4 {
            let reach = if next().is_multiple_of(2) { 60.min(data.len()) } else { data.len() };
            let at = 1 + next() as usize % (reach - 1);
            data[at] = next() as u8;
        }
        fuzz_bodies::syzygy(&data);
    }
}

/// Sound tables, as inputs of their target, by name.
fn tables() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (m, name) in fuzz_bodies::MATERIALS.into_iter().enumerate() {
        let material = Material::parse(name).unwrap();
        for (k, kind) in TableKind::ALL.into_iter().enumerate() {
            let choice = (2 * m + k) as u8;
            let mut put = |what: &str, table: Vec<u8>| {
                all.push((format!("{what}-{name}.{}", kind.extension()), [&[choice][..], &table].concat()));
            };
            put("constant", fuzz_bodies::constant(material, kind, 3));
            if material.men() == 3 {
                let mut bits = [0; 32];
                bits[1] = 0b0101_1000;
                put("compressed", fuzz_bodies::compressed(material, kind, 4, 1, &bits));
            }
        }
    }
    all
}

#[test]
fn rows() {
    replay("rows", fuzz_bodies::rows);
}

#[test]
fn tokenizer() {
    replay("tokenizer", fuzz_bodies::tokenizer);
}

#[test]
fn log_line() {
    replay("log_line", fuzz_bodies::log_line);
}

#[test]
fn sidecar() {
    replay("sidecar", fuzz_bodies::sidecar);
}

#[test]
fn pickle() {
    replay("pickle", fuzz_bodies::pickle);
}

#[test]
fn npz() {
    replay("npz", fuzz_bodies::npz);
}

#[test]
fn shard() {
    replay("shard", fuzz_bodies::shard);
}

#[test]
fn npy() {
    replay("npy", fuzz_bodies::npy);
}

/// Records of a version that are zero but for the version and the format.
fn game(version: u8, size: usize, frames: usize) -> Vec<u8> {
    let mut record = vec![0; size];
    record[0] = version;
    record[4] = u8::from(version >= 5);
    record.repeat(frames)
}

#[test]
#[ignore = "writes the seeds into fuzz/corpus"]
fn write_seeds() {
    let put = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(corpus(target)).unwrap();
        fs::write(corpus(target).join(name), bytes).unwrap();
    };
    crate::katago::seeds().iter().for_each(|(name, bytes)| put("katago", name, bytes));
    crate::records::seeds().iter().for_each(|(name, bytes)| put("records", name, bytes));
    let v6 = compress(6, &game(6, 8356, 2)).unwrap();
    put("gzip_chunk", "v6-two-frames.gz", &v6);
    put("gzip_chunk", "v7-one-frame.gz", &compress(9, &game(7, 8396, 1)).unwrap());
    put("gzip_chunk", "v3-one-frame.gz", &compress(6, &game(3, 8276, 1)).unwrap());
    put("gzip_chunk", "two-members-and-padding.gz", &[&v6[..], &v6[..], &[0; 9]].concat());
    put("gzip_chunk", "truncated.gz", &v6[..v6.len() / 2]);
    put("gzip_chunk", "crc-flipped.gz", &{
        let mut bad = v6.clone();
        let at = bad.len() - 6;
        bad[at] ^= 1;
        bad
    });
    put("gzip_chunk", "bomb.gz", &compress(12, &vec![0; 3 << 20]).unwrap());
    put("gzip_chunk", "stored-block.gz", &compress(0, b"stored").unwrap());
    put(
        "gzip_chunk",
        "named-header.gz",
        b"\x1f\x8b\x08\x1c\0\0\0\0\0\x03\x02\0abname\0comment\0\x03\0\0\0\0\0\0\0\0\0",
    );
    put("gzip_chunk", "header-crc-wrong.gz", b"\x1f\x8b\x08\x02\0\0\0\0\0\x03\xff\xff\x03\0\0\0\0\0\0\0\0\0");
    put("gzip_chunk", "plain", b"\x06\0\0\0\x01\0\0\0");

    for (name, version, size) in [("v6", Version::V6, 8356), ("v7", Version::V7, 8396)] {
        let mut bytes = Vec::new();
        let records = fuzz_bodies::opening(InputFormat::Classical, size);
        let frames = (records.len() / size) as u32;
        Packer::default().pack(version, &records, &mut bytes).unwrap();
        put("packed", name, &bytes);
        put("packed", &format!("{name}-cut"), &bytes[..bytes.len() - 9]);
        let mut file = ChunkFileWriter::new(CODEC);
        file.add("run.tar/training.1.gz", frames, &bytes).unwrap();
        file.add("training.2.gz", frames, &bytes).unwrap();
        let file = [&MAGIC[..], &bytes, &bytes, &file.finish()].concat();
        put("chunks", name, &file);
        put("chunks", &format!("{name}-cut"), &file[..file.len() - 60]);
    }

    for (name, weights) in [("many", &[1.5, 0.0, 3.25e7, f32::MAX][..]), ("none", &[]), ("wrong", &[f32::NAN])] {
        let bytes = sums::write(7, 0x1234_5678_9abc_def0, weights);
        put("weights", name, &bytes);
        put("weights", &format!("{name}-cut"), &bytes[..bytes.len() - 1]);
    }

    for (name, rule, rows) in [
        ("rule", "best_q > 0.5", (0..70_000).step_by(2).collect()),
        ("given", "", [1u64, 5, 1 << 34].into_iter().collect()),
        ("runs", "ply < 10", (100..5000).collect()),
    ] {
        let mut mark = Mark { origin: Origin::Rule, rule: rule.into(), frames: (1 << 34) + 1, identity: 3, rows };
        mark.rows.optimize();
        let bytes = mark.to_bytes().unwrap();
        put("marks", name, &bytes);
        put("marks", &format!("{name}-cut"), &bytes[..bytes.len() - 5]);
    }

    for (name, shape) in [("stacks", vec![4, 6, 12]), ("values", vec![3])] {
        let bytes = crate::packed_trajectories::trajectory_of(&shape);
        put("trajectory", name, &bytes);
        put("trajectory", &format!("{name}-cut"), &bytes[..bytes.len() - 9]);
    }

    for kind in 0..16 {
        put("check", &format!("sound-{kind:02}"), &[kind]);
    }
    put("check", "two-kings", &[&[0][..], &(7440u32 + 40).to_le_bytes(), &[9]].concat());
    put("check", "black-twice", &[&[0][..], &(2 * 8356u32 + 8276).to_le_bytes(), &[1]].concat());

    for format in 0..7 {
        put("rescore", &format!("plain-{format}"), &[format, 0, 7, 0]);
        put("rescore", &format!("to-every-{format}"), &[format, 0b0001_0011, 6 - format, 0]);
        put("rescore", &format!("tables-{format}"), &[format, 0b0001_1110, 7, format % 5]);
        put("rescore", &format!("quirks-{format}"), &[format, 0b1010_1100, format, 132]);
    }
    put("rescore", "flagged", &[&[0, 0b0100_0000, 7, 0][..], &(8356u32 + 8278).to_le_bytes(), &[64]].concat());
    put("rescore", "index-past-end", &[&[0, 0, 7, 0][..], &8347u32.to_le_bytes(), &[7]].concat());
    for (name, table) in tables() {
        put("syzygy", &name, &table);
        if name == "compressed-KPvK.rtbw" {
            put("syzygy", "truncated", &table[..table.len() / 2]);
        }
    }

    let mut tar = TarWriter::new(Vec::new());
    tar.directory("d").unwrap();
    tar.append("d/LICENSE", b"Open").unwrap();
    tar.append("d/training.1.gz", &v6).unwrap();
    tar.append(&format!("{}/training.2.gz", "long".repeat(60)), &v6).unwrap();
    let tar = tar.finish().unwrap();
    put("tar", "games.tar", &tar);
    put("tar", "truncated.tar", &tar[..1800]);
    let mut lie = tar[1536..].to_vec();
    lie[124..136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    lie[148..156].fill(b' ');
    let sum: u32 = lie[..512].iter().map(|&b| u32::from(b)).sum();
    lie[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    put("tar", "size-lies.tar", &lie);
    let mut gnu = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(v6.len() as u64);
    gnu.append_data(&mut header, format!("{}training.3.gz", "deep/".repeat(50)), &v6[..]).unwrap();
    put("tar", "gnu-long-name.tar", &gnu.into_inner().unwrap());

    for (version, fill) in [(3, 0), (4, 1), (5, 0xff), (6, 0), (7, 9), (8, 0)] {
        let mut head = game(version, 8276, 1)[..64].to_vec();
        head[16..].fill(fill);
        put("record", &format!("v{version}"), &head);
    }
    for (name, text) in [
        ("plain", "[('a', '<u4'), ('b', '>f8', (2, 3)), ('', '|V3'), ('c', '|u1')]"),
        ("nested", "[('board', [('x', '<i2'), ('', '|V2'), ('y', '<f4', (104,))], (8,)), ('', '|V4')]"),
        ("strings", "[('s', '|S12'), ('u', '<U3'), ('v', '|V16'), ('h', '<f2'), ('z', '<c16')]"),
        ("quoted", r"[('it\'s', '<u2'), ('back\\slash', '|b1')]"),
        ("huge", "[('a', '<u4', (18446744073709551615, 8))]"),
        ("object", "[('a', '|O')]"),
    ] {
        put("descr", name, text.as_bytes());
    }

    let line = concat!(
        r#"{"seed":272350805,"step_index":7,"max_rank":15,"move":"down","valuation_type":"search","valuation":-1.000000,"#,
        r#""board":[15,13,11,1,14,12,1,0,0,0,0,0,0,0,0,16],"#,
        r#""branch_evs":{"up":null,"left":0.034000,"right":-0.000000,"down":-1587.186000}}"#
    );
    let old = line.replace("\"valuation_type\":\"search\",", "").replace("\"step_index\":7,", "");
    let mixed = [line, &old, "", &line.replace("search", "line_plan"), &line.replace("}}", "},\"x\":[1]}")].join("\n");
    for (name, text) in [
        ("producer", line.to_owned()),
        ("two-old", format!("{old}\n{old}\n")),
        ("mixed", mixed.clone()),
        ("crlf", mixed.replace('\n', "\r\n")),
        ("exponents", line.replace("0.034000", "1e40").replace("-0.000000", "1E-50").replace("null", "-0")),
        ("python", line.replace('"', "'").replace("null", "None")),
        ("rank-40", line.replace("16]", "40]")),
        ("cut", line[..200].to_owned()),
        ("least", r#"{"move":"up","board":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#.to_owned()),
    ] {
        put("log_line", name, text.as_bytes());
    }
    put("log_line", "stored.gz", &compress(6, mixed.as_bytes()).unwrap());
    let facts = r#"{"seed": 9, "depth": 6, "num_moves": 1, "score": 795564, "max_tile": 32768, "max_rank": 15}"#;
    put("sidecar", "facts", facts.as_bytes());
    put("sidecar", "extras", facts.replace("6,", "{\"a\": [1.5e300, null]}, \"depth\": \"\\u0041\",").as_bytes());
    put("sidecar", "negative", facts.replace("9", "-9").as_bytes());
    put("sidecar", "cut", &facts.as_bytes()[..40]);

    for (name, bytes) in [
        ("protocol-0", &b"(dVa\n(lI1\naL18446744073709551616L\naI01\naF1.5\nas."[..]),
        ("protocol-4", b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94\x8c\x01a\x94\x8f(K\x01\x90s."),
        ("recursive", b"]q\0(K\x01h\0e."),
        ("forbidden", b"cposix\nsystem\n(Vtrue\ntR."),
        ("space", b"cgym.spaces.discrete\nDiscrete\n)\x81}(U\x01nK\x06ub."),
        (
            "array",
            b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R(K\x01K\x02\x85cnumpy\ndtype\n\
              X\x02\0\0\0i4\x89\x88\x87R(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89C\x08abcdefghtb.",
        ),
        (
            "buffer",
            b"\x80\x05cnumpy._core.numeric\n_frombuffer\n(\x96\x02\0\0\0\0\0\0\0abcnumpy\ndtype\nX\x02\0\0\0u1\x89\x88\x87RK\x02\x85\
              X\x01\0\0\0CtR.",
        ),
    ] {
        put("pickle", name, bytes);
    }

    let mut shard = TarWriter::new(Vec::new());
    shard.append("_metadata.meta.pickle", b"(dVenv_cfg\n(ds.").unwrap();
    let bare = shard.finish().unwrap();
    let mut shard = TarWriter::new(Vec::new());
    for (i, done) in ["true", "false", "true"].into_iter().enumerate() {
        shard.append(&format!("frame_{i:03}.acts.cls"), i.to_string().as_bytes()).unwrap();
        shard.append(&format!("frame_{i:03}.dones.json"), done.as_bytes()).unwrap();
        shard.append(&format!("frame_{i:03}.obs.pickle"), b"I5\n.").unwrap();
        shard.append(&format!("frame_{i:03}.note.txt"), b"hi").unwrap();
    }
    let whole = shard.finish().unwrap();
    put("shard", "metadata-alone.tar", &bare);
    put("shard", "frames.tar", &whole);
    put("shard", "cut.tar", &whole[..4000]);
    put("shard", "split-sample.tar", &[&whole[..1024], &whole[4096..5120], &whole[1024..]].concat());

    let framed = |version: u8, text: &str| {
        let len = (text.len() as u32).to_le_bytes();
        [b"\x93NUMPY", &[version, 0][..], &len[..if version == 1 { 2 } else { 4 }], text.as_bytes()].concat()
    };
    let rows =
        "{'descr': [('a', '<u4'), ('', '|V2'), ('b', '|u1', (2,))], 'fortran_order': False, 'shape': (1,), }  \n";
    put("npy", "rows.npy", &[framed(1, rows), vec![7; 8]].concat());
    put("npy", "rows-v3.npy", &[framed(3, rows), vec![7; 8]].concat());
    put("npy", "truncated.npy", &framed(2, rows)[..70]);
    for (name, text) in [
        ("scalar", "{'descr': '>f8', 'fortran_order': True, 'shape': (0, 5), }"),
        ("zero-d", "{'descr': '<c16', 'fortran_order': False, 'shape': ()}"),
        ("python2", "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,)}"),
        ("overflow", "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 2)}"),
        ("object", "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
        ("latin", "{'descr': [('gr\u{fc}n', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
    ] {
        put("npy", name, &framed(if name == "latin" { 3 } else { 1 }, text));
    }
}
