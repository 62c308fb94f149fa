//! Opens packs of a thousand million frames in a bucket, and counts requests and bytes. Their files are sparse. This file writes
//! `opening.index` by its page (docs/format/opening.md), without the program's writer.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::names::{MANIFEST, OPENING, file_name};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::store::Residence;
use gristmill_engine::store::bucket::{Options, counts, set_options};
use gristmill_engine::table::FrameTable;
use gristmill_faultserver::{Network, start};
use gristmill_format::g2048::RowForm;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

const MANIFEST_TEXT: &str = "{\"of\": \"a test\"}\n";

/// The bounds that the guide names.
const REQUESTS: u64 = 20;
const BYTES: u64 = 64 << 20;

fn words(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    words(out, &[bytes.len() as u64]);
    out.extend_from_slice(bytes);
}

fn numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    for group in numbers.chunks(128) {
        let (least, most) = (group.iter().min().unwrap(), group.iter().max().unwrap());
        let width = (most - least).checked_ilog2().map_or(0, |log| log + 1);
        words(out, &[*least]);
        out.push(width as u8);
        let (mut held, mut bits) = (0u128, 0);
        for number in group {
            held |= u128::from(number - least) << bits;
            bits += width;
            while bits >= 8 {
                out.push(held as u8);
                (held, bits) = (held >> 8, bits - 8);
            }
        }
        if bits > 0 {
            out.push(held as u8);
        }
    }
}

fn sealed(folder: &Path, layout: &[u8; 8], body: &[u8]) {
    let mut out = [&b"GMOPEN01"[..], layout, &xxh3_128(MANIFEST_TEXT.as_bytes()).to_le_bytes(), body].concat();
    let sum = xxh3_64(&out);
    words(&mut out, &[sum]);
    fs::write(folder.join(OPENING), out).unwrap();
    fs::write(folder.join(MANIFEST), MANIFEST_TEXT).unwrap();
}

fn sparse(path: &Path, len: u64) {
    File::create(path).unwrap().set_len(len).unwrap();
}

/// A bucket with one pack in the folder `pack`.
struct Served {
    _folder: tempfile::TempDir,
    url: String,
}

impl Served {
    fn new(bucket: &str, fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pack = folder.path().join(bucket).join("pack");
        fs::create_dir_all(&pack).unwrap();
        fill(&pack);
        let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
        let url = format!("s3://{bucket}");
        set_options(&url, Options { endpoint: Some(server.address), anonymous: true, ..Options::default() });
        Served { _folder: folder, url }
    }

    fn pack(&self) -> String {
        format!("{}/pack", self.url)
    }

    fn asked(&self) -> (u64, u64) {
        let all = counts();
        let (_, counts) = all.iter().find(|(url, _)| *url == self.url).unwrap();
        (counts.requests.load(Ordering::Relaxed), counts.bytes.load(Ordering::Relaxed))
    }

    fn is_bounded(&self) {
        let (requests, bytes) = self.asked();
        assert!(requests <= REQUESTS && bytes <= BYTES, "{requests} requests, {bytes} bytes");
    }
}

/// Frames and bytes of game `i`: about 100 and 40 000, as in chess.
fn game(i: u64) -> (u64, u64) {
    let mixed = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let frames = 36 + mixed % 129;
    (frames, frames * 400 + (mixed >> 10) % 9000)
}

#[test]
fn a_chunk_pack_of_a_thousand_million_frames_opens_within_the_bounds() {
    let mut frames = 0;
    let mut files = Vec::new();
    let mut games = 0;
    while frames < 1_000_000_000 {
        let mut of_file = Vec::new();
        let first = frames;
        while frames - first < 4_000_000 {
            of_file.push(game(games));
            frames += game(games).0;
            games += 1;
        }
        files.push(of_file);
    }
    let served = Served::new("opening-chunks", |folder| {
        let mut body = b"chess\0\0\x01".to_vec();
        text(&mut body, gristmill_format::chess::record::layout_v7().to_descr().as_bytes());
        words(&mut body, &[files.len() as u64]);
        for (i, games) in files.iter().enumerate() {
            let (frames, lens): (Vec<u64>, Vec<u64>) = games.iter().copied().unzip();
            let len = 8 + lens.iter().sum::<u64>() + games.len() as u64 * (32 + 40) + 56;
            text(&mut body, file_name(i).as_bytes());
            words(&mut body, &[len, i as u64 * 7 + 1, games.len() as u64, 0]);
            numbers(&mut body, &frames);
            numbers(&mut body, &lens);
            sparse(&folder.join(file_name(i)), len);
        }
        sealed(folder, b"chunks\0\0", &body);
    });
    let pack = ChunkPack::open(Path::new(&served.pack()), Residence::Unkept).unwrap();
    served.is_bounded();
    assert_eq!((pack.len(), pack.games()), (frames, games));
    let mut first = 0;
    for at in 0..games {
        assert!(at % 99_991 != 0 || pack.frames(at) == Some((first, game(at).0)), "game {at}");
        first += game(at).0;
    }
    // The files are sparse, so no index has its checksum: the test reads no game.
    assert!(pack.stored(0).unwrap_err().to_string().contains("delete that one"));
}

#[test]
fn a_pack_of_a_thousand_million_rows_opens_within_the_bounds() {
    let layout = RowForm::Aligned.layout();
    let (size, offset, shards) = (layout.size() as u64, 384, 12);
    // Games have about 300 rows. Strong players make games a hundred times as long, so real packs have fewer games.
    let steps: Vec<u64> = (0..3_300_000).map(|run| 270 + run * 7 % 68).collect();
    let rows: u64 = steps.iter().sum();
    assert!(rows > 1_000_000_000);
    let served = Served::new("opening-rows", |folder| {
        let types = "{\n  \"search\": 0,\n  \"tuple11\": 1,\n  \"tuple10\": 2\n}\n";
        let mut body = Vec::new();
        text(&mut body, layout.to_descr().as_bytes());
        words(&mut body, &[77, xxh3_64(types.as_bytes()), shards]);
        for shard in 0..shards {
            let own = rows / shards + if shard == shards - 1 { rows % shards } else { 0 };
            let name = format!("steps-{shard:05}.npy");
            let mut head = b"GMXXH301".to_vec();
            head.extend([256u32, size as u32].iter().flat_map(|number| number.to_le_bytes()));
            words(&mut head, &[own, offset, 5]);
            text(&mut body, name.as_bytes());
            words(&mut body, &[offset + own * size, own, offset, 5]);
            text(&mut body, &head);
            sparse(&folder.join(&name), offset + own * size);
            sparse(&folder.join(format!("{name}.xxh3")), 40 + own.div_ceil(256) * 8);
        }
        words(&mut body, &[steps.len() as u64]);
        body.push(1);
        let each = |of: &dyn Fn(u64) -> u64| (0..steps.len() as u64).map(of).collect::<Vec<_>>();
        numbers(&mut body, &each(&|run| run));
        numbers(&mut body, &each(&|run| 0xC0_FFEE + run));
        numbers(&mut body, &steps);
        numbers(&mut body, &each(&|run| 2000 + run * 31 % 9000));
        numbers(&mut body, &each(&|run| 1 << (8 + run % 4)));
        sealed(folder, b"rows\0\0\0\0", &body);
        fs::write(folder.join("valuation_types.json"), types).unwrap();
        // The real database of this pack would exceed the bound by itself.
        sparse(&folder.join("metadata.db"), 1 << 30);
    });
    let pack = RowPack::open(Path::new(&served.pack()), Residence::Unkept).unwrap();
    served.is_bounded();
    assert_eq!((pack.table().len(), pack.index().runs().len(), pack.identity()), (rows, steps.len(), 77));
    assert_eq!(pack.index().run_of(rows - 1), Some(steps.len() as u64 - 1));
    // The pack checks rows against checksums that it fetched with them.
    let e = pack.table().gathered(&[rows / 2]).unwrap_err().to_string();
    assert!(e.contains("do not have their checksum"), "{e}");
}
