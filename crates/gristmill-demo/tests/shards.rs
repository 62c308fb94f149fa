//! Shards, whole and bad, by every way that reads them: into records, over their bytes, by the place of their frames, and
//! streamed. All ways agree on what is there, and each refuses what is wrong with its member and byte.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use flate2::write::DeflateEncoder;
use gristmill_bytes::container::gzip;
use gristmill_bytes::container::npy::{Header, Spelling};
use gristmill_bytes::container::tar::{TarLimits, TarWriter, walk};
use gristmill_bytes::container::zstd;
use gristmill_bytes::layout::{DType, Order, Scalar};
use gristmill_bytes::source::ReadAt;
use gristmill_bytes::{Error, Kind, Result};
use gristmill_demo::form::{ReadOptions, read};
use gristmill_demo::shard::{Packing, Shard, ShardIndex, ShardWriter, metadata, read_frames, stream};
use gristmill_demo::trajectory::{End, Tape, Trajectories};

const MAX: usize = 1 << 22;

/// What a shard holds: ends, all records, all extras.
#[derive(Debug, PartialEq)]
struct Whole {
    ends: Vec<(usize, End)>,
    records: Vec<u8>,
    extras: String,
}

fn whole(all: &Trajectories, ends: Vec<(usize, End)>) -> Whole {
    let mut records = vec![0; all.frames() * all.layout().map_or(0, |layout| layout.size())];
    all.copy_records(0..all.frames(), &mut records).unwrap();
    Whole { ends, records, extras: format!("{:?}", all.extras()) }
}

fn closed(mut all: Trajectories) -> Whole {
    all.end(End::Truncated);
    let ends = all.ends().to_vec();
    whole(&all, ends)
}

struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.as_slice().read_at(offset, buf)
    }
}

fn by_place(tar: &[u8]) -> Result<Whole> {
    let index = ShardIndex::scan(tar, MAX)?.unwrap();
    let all = read_frames(tar, &index.frames, 0, None, MAX)?;
    if let Some(layout) = all.layout() {
        for field in layout.fields() {
            let one = read_frames(tar, &index.frames, 0, Some(&field.name), MAX)?;
            let (mut alone, mut beside) =
                (vec![0; all.frames() * field.bytes()], vec![0; all.frames() * field.bytes()]);
            one.gather(&field.name, 0..one.frames(), &mut alone)?;
            all.gather(&field.name, 0..all.frames(), &mut beside)?;
            assert_eq!(alone, beside, "{}", field.name);
        }
    }
    Ok(whole(&all, index.ends))
}

/// Streamed; `None` where frames come out of order, which a stream leaves to others.
fn streamed(packed: Vec<u8>) -> Result<Option<Whole>> {
    let packing = Packing::of(&packed);
    let mut all = Trajectories::new(MAX);
    let mut ends = Vec::new();
    let read = stream(Arc::new(Bytes(packed)), packing, 64, MAX, &mut |block| {
        ends.extend(block.ends().iter().map(|(end, how)| (all.frames() + end, *how)));
        for frame in 0..block.frames() {
            all.push_from(&block, frame)?;
        }
        Ok(())
    })?;
    if all.frames() > ends.last().map_or(0, |(end, _)| *end) {
        ends.push((all.frames(), End::Truncated));
    }
    Ok((!read.shuffled).then(|| whole(&all, ends)))
}

/// Every way; the streaming ones differ where frames are out of order.
fn ways(tar: &[u8]) -> Vec<(&'static str, Result<Option<Whole>>)> {
    let over =
        |bytes: &[u8]| Shard::over(&Tape::new(bytes.to_vec()), MAX).map(|shard| Some(closed(shard.trajectories)));
    let read = |bytes: &[u8]| Shard::read(bytes, MAX).map(|shard| Some(closed(shard.trajectories)));
    let (gz, zst) = (gzip::compress(1, tar).unwrap(), zstd::compress(1, tar).unwrap());
    vec![
        ("records", read(tar)),
        ("gzip", read(&gz)),
        ("zstd", read(&zst)),
        ("over its bytes", over(tar)),
        ("by place", by_place(tar).map(Some)),
        ("streamed gzip", streamed(gz)),
        ("streamed zstd", streamed(zst)),
    ]
}

/// What every way finds.
fn agreed(tar: &[u8]) -> Whole {
    let mut ways = ways(tar);
    let (_, first) = ways.remove(0);
    let first = first.unwrap().unwrap();
    for (name, found) in ways {
        let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(found.is_none_or(|found| found == first), "{name}");
    }
    first
}

/// How every way refuses it.
fn refused(tar: &[u8]) -> Vec<(&'static str, Error)> {
    ways(tar).into_iter().map(|(name, found)| (name, found.map(|_| name).unwrap_err())).collect()
}

/// Names and contents.
type Members<'a> = &'a [(&'a str, &'a [u8])];

fn tar(members: Members<'_>) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    for (name, bytes) in members {
        tar.append(name, bytes).unwrap();
    }
    tar.finish().unwrap()
}

fn meta(colors: &str) -> Vec<u8> {
    let six = b"(dVn\nI6\ns.";
    metadata(b"(dVtask_name\nVx\ns.", ("Discrete", six), ("Discrete", six), colors).unwrap()
}

fn npy(values: &[u8]) -> Vec<u8> {
    let dtype = DType::Scalar(Scalar::U8, Order::Little);
    let mut file = Header::write(&dtype, &[values.len() as u64], Spelling::NumPy).unwrap();
    file.extend_from_slice(values);
    file
}

/// A picture, an action, an end, a text; `done` says which frames end a trajectory.
fn made(frames: usize, done: &[usize]) -> Vec<u8> {
    let mut writer = ShardWriter::new(Vec::new(), &meta("RGB"), gristmill_demo::shard::Members::Pickle).unwrap();
    for t in 0..frames {
        let picture: Vec<u8> = (0..48).map(|i| (i * t % 251) as u8).collect();
        let picture = [&b"\x80\x05cnumpy._core.numeric\n_frombuffer\n(\x96\x30\0\0\0\0\0\0\0"[..], &picture, b"cnumpy\ndtype\nX\
            \x02\0\0\0u1\x89\x88\x87R(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbK\x30\x85X\x01\0\0\0CtR."]
            .concat();
        let fields = [
            ("obs".to_owned(), picture),
            ("acts".to_owned(), format!("I{t}\n.").into_bytes()),
            ("dones".to_owned(), format!("I{:02}\n.", u8::from(done.contains(&t))).into_bytes()),
            ("note".to_owned(), format!("Vstep {t}\n.").into_bytes()),
        ];
        writer.frame(&fields).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn every_way_finds_the_same_frames() {
    let found = agreed(&made(300, &[0, 7, 200]));
    assert_eq!(
        found.ends,
        [1, 8, 201, 300].map(|end| (end, if end == 300 { End::Truncated } else { End::Terminated }))
    );
    assert!(found.extras.contains("step 299"));
    let plain = [
        ("a.obs.npy", npy(&[1, 2])),
        ("a.dones.cls", b"1".to_vec()),
        ("b.obs.npy", npy(&[3, 4])),
        ("b.dones.cls", b"0".to_vec()),
    ];
    let plain: Vec<(&str, &[u8])> = plain.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    assert_eq!(agreed(&tar(&plain)).ends, [(1, End::Terminated), (2, End::Truncated)]);
    assert_eq!(agreed(&tar(&[])).ends, []);
}

#[test]
fn frames_in_another_order_are_put_into_that_of_time_and_streams_say_so() {
    let frame = |name: &str, number: u8, done: u8| {
        [(format!("{name}.dones.cls"), vec![b'0' + done]), (format!("{name}.frame.cls"), vec![b'0' + number])]
    };
    let frames = [frame("x", 2, 1), frame("y", 0, 1), frame("z", 1, 0)].concat();
    let members: Vec<(&str, &[u8])> = frames.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let found = agreed(&tar(&members));
    assert_eq!(found.ends, [(1, End::Terminated), (3, End::Terminated)]);
    assert!(streamed(gzip::compress(1, &tar(&members)).unwrap()).unwrap().is_none());
    let twice = [frame("x", 2, 1), frame("y", 1, 1), frame("z", 1, 0)].concat();
    let members: Vec<(&str, &[u8])> = twice.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    for (way, e) in refused(&tar(&members)) {
        assert!(e.kind() == Kind::Corrupt && e.place().offset.is_some(), "{way}: {e}");
    }
}

#[test]
fn a_cut_at_any_block_is_an_error_by_every_way() {
    let tar = made(4, &[1]);
    let end = tar.iter().rposition(|b| *b != 0).unwrap().next_multiple_of(512) + 512;
    let expected = agreed(&tar);
    for cut in (512..tar.len()).step_by(512) {
        if cut >= end {
            assert_eq!(agreed(&tar[..cut]), expected, "cut at {cut}");
        } else {
            for (way, e) in refused(&tar[..cut]) {
                assert!(e.place().offset.is_some(), "{way}, cut at {cut}: {e}");
            }
        }
    }
    let (gz, zst) = (gzip::compress(1, &tar).unwrap(), zstd::compress(1, &tar).unwrap());
    for packed in [gz, zst] {
        for cut in 1..packed.len() {
            assert!(streamed(packed[..cut].to_vec()).is_err(), "cut at {cut}");
        }
    }
}

/// The npz of one array that inflates to far more than it may.
fn bomb() -> Vec<u8> {
    use std::io::Write;
    let mut writer = rawzip::ZipArchiveWriter::new(Vec::new());
    let method = rawzip::CompressionMethod::DEFLATE;
    let (mut entry, config) = writer.new_file("a.npy").compression_method(method).start().unwrap();
    let mut file = config.wrap(DeflateEncoder::new(&mut entry, flate2::Compression::fast()));
    for _ in 0..64 {
        file.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let (encoder, descriptor) = file.finish().unwrap();
    encoder.finish().unwrap();
    entry.finish(descriptor).unwrap();
    writer.finish().unwrap()
}

#[test]
fn what_is_wrong_is_refused_with_member_and_byte_by_every_way() {
    let (one, two, three) = (npy(&[1]), npy(&[2]), npy(&[3, 4]));
    let (gray, rgb, bomb) = (meta("GRAY"), meta("RGB"), bomb());
    let deep: Vec<u8> = [vec![b']'; 2_000_000], vec![b'a'; 1_999_999], vec![b'.']].concat();
    let giant = [&b"\x80\x05\x96"[..], &(1u64 << 40).to_le_bytes(), b"xx."].concat();
    let cases: [(&str, Kind, Members<'_>); 12] = [
        ("a.x.json", Kind::Corrupt, &[("a.x.npy", &one), ("a.x.json", b"1")]),
        ("a.y.npy", Kind::Corrupt, &[("a.x.npy", &one), ("b.x.npy", &two), ("a.y.npy", &one)]),
        ("_metadata.meta.pickle", Kind::Corrupt, &[("a.x.npy", &one), ("_metadata.meta.pickle", &rgb)]),
        (
            "s/_metadata.meta.pickle",
            Kind::Corrupt,
            &[("_metadata.meta.pickle", &rgb), ("a.x.npy", &one), ("s/_metadata.meta.pickle", &gray)],
        ),
        ("_metadata.meta.pickle", Kind::Missing, &[("_metadata.meta.pickle", b"}."), ("a.x.npy", &one)]),
        ("b.x.npy", Kind::Missing, &[("a.x.npy", &one), ("a.y.npy", &one), ("b.x.npy", &two)]),
        ("b.z.npy", Kind::Missing, &[("a.x.npy", &one), ("b.x.npy", &two), ("b.z.npy", &two)]),
        ("b.x.npy", Kind::WrongSize, &[("a.x.npy", &one), ("b.x.npy", &three)]),
        ("a.x.npz/a.npy", Kind::TooLarge, &[("a.x.npz", &bomb)]),
        ("a.x.pickle", Kind::TooLarge, &[("a.x.pickle", &deep)]),
        ("a.x.pickle", Kind::Truncated, &[("a.x.pickle", &giant)]),
        ("a.x.pickle", Kind::Forbidden, &[("a.x.pickle", b"cos\nsystem\n(Vtrue\ntR.")]),
    ];
    for (member, kind, members) in cases {
        for (way, e) in refused(&tar(members)) {
            assert_eq!((e.kind(), e.place().member.as_deref()), (kind, Some(member)), "{way}: {e}");
            assert!(e.place().offset.is_some(), "{way}: {e}");
        }
    }
}

#[test]
fn metadata_may_come_again_where_shards_were_joined() {
    let (rgb, one) = (meta("RGB"), npy(&[1]));
    let joined = tar(&[
        ("_metadata.meta.pickle", &rgb),
        ("a.x.npy", &one),
        ("s/_metadata.meta.pickle", &rgb),
        ("b.x.npy", &one),
    ]);
    assert_eq!(agreed(&joined).ends, [(2, End::Truncated)]);
}

#[test]
fn a_member_is_never_larger_than_the_bound() {
    let large = npy(&vec![7; 2 * MAX]);
    for (way, e) in refused(&tar(&[("a.x.npy", &npy(&[1])), ("b.x.npy", &large)])) {
        assert!(matches!(e.kind(), Kind::TooLarge | Kind::WrongSize) && e.place().offset.is_some(), "{way}: {e}");
    }
}

fn tar_of(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let members: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    tar(&members)
}

/// Byte of the first block of the end mark.
fn end_of(tar: &[u8]) -> usize {
    tar.len() - 1024
}

#[test]
fn what_lies_behind_the_end_mark_is_said_by_every_way() {
    let good = tar_of(&[
        ("f_0.obs.npy", npy(&[1])),
        ("f_0.dones.json", b"false".to_vec()),
        ("f_1.obs.npy", npy(&[2])),
        ("f_1.dones.json", b"true".to_vec()),
    ]);
    let rest = tar_of(&[("f_2.obs.npy", npy(&[3])), ("f_2.dones.json", b"true".to_vec())]);
    let mut zeroed = good.clone();
    // The third header: the second frame is lost with all that follows.
    let third = zeroed.windows(11).position(|name| name == b"f_1.obs.npy").unwrap();
    zeroed[third..third + 512].fill(0);
    let joined = [&good[..], &rest].concat();
    let garbage = [&good[..], &[0; 700], b"garbage"].concat();
    for (name, tar, place, says, frames) in [
        ("zeroed", &zeroed, third, "a header of zeros", 1),
        ("joined", &joined, end_of(&good), "another tar begins at byte", 2),
        ("garbage", &garbage, end_of(&good), "after the end mark, is not zero", 2),
    ] {
        let behind = |fault: Option<Error>, way: &str| {
            let fault = fault.unwrap_or_else(|| panic!("{name}, {way}: nothing is said"));
            assert_eq!((fault.kind(), fault.place().offset), (Kind::Corrupt, Some(place as u64)), "{name}, {way}");
            assert!(fault.detail().contains(says), "{name}, {way}: {fault}");
        };
        let shard = Shard::over(&Tape::new(tar.clone()), MAX).unwrap();
        assert_eq!(shard.trajectories.frames(), frames, "{name}");
        behind(shard.behind, "over its bytes");
        behind(ShardIndex::scan(tar.as_slice(), MAX).unwrap().unwrap().behind, "by place");
        for packed in [gzip::compress(1, tar).unwrap(), zstd::compress(1, tar).unwrap()] {
            behind(Shard::read(&packed, MAX).err(), "packed");
            let packing = Packing::of(&packed);
            let read = stream(Arc::new(Bytes(packed)), packing, 64, MAX, &mut |_| Ok(())).unwrap();
            behind(read.behind, "streamed");
        }
        behind(walk(tar.as_slice(), &TarLimits::default()).unwrap().faults().first().cloned(), "walked");
    }
    // Records of 10 240 bytes are filled up with zeros.
    let padded = [&good[..], &[0; 10_000]].concat();
    assert!(Shard::read(&padded, MAX).is_ok());
    assert!(walk(padded.as_slice(), &TarLimits::default()).unwrap().faults().is_empty());
}

#[test]
fn what_lies_behind_a_gzip_stream_is_said() {
    let packed = gzip::compress(1, &tar_of(&[("f_0.obs.npy", npy(&[1]))])).unwrap();
    let streamed =
        |packed: &[u8]| stream(Arc::new(Bytes(packed.to_vec())), Packing::Gzip, 64, MAX, &mut |_| Ok(())).unwrap();
    let longer = [&packed[..], &[0; 40], b"x"].concat();
    let fault = Shard::read(&longer, MAX).unwrap_err();
    assert_eq!((fault.kind(), fault.place().offset), (Kind::Corrupt, Some(packed.len() as u64 + 40)));
    assert_eq!(streamed(&longer).behind, Some(fault));
    let padded = [&packed[..], &[0; 300_000]].concat();
    assert!(Shard::read(&padded, MAX).is_ok() && streamed(&padded).behind.is_none());
}

#[test]
fn packings_and_empty_files_have_words_of_their_own() {
    let options = ReadOptions::default();
    let told = |bytes: &[u8]| {
        let e = read("demos.tar.x", bytes, &options).unwrap_err();
        (e.kind(), e.detail().to_owned())
    };
    for (magic, says) in [(&b"\xfd7zXZ\0"[..], "xz -dc"), (b"BZh91AY", "bzip2 -dc"), (b"\x04\x22\x4d\x18", "lz4 -dc")] {
        let (kind, detail) = told(magic);
        assert!(kind == Kind::Unsupported && detail.contains(says), "{detail}");
    }
    assert_eq!(told(b"").1, "a file of no bytes");
    assert!(told(&zstd::compress(1, b"").unwrap()).1.contains("unpacks to nothing"));
    for tar in [vec![0; 10_240], gzip::compress(1, &[0; 1024]).unwrap()] {
        let (kind, detail) = told(&tar);
        assert!(kind == Kind::Empty && detail.contains("nothing but its end mark"), "{detail}");
    }
    // A skippable frame comes first in what pzstd writes.
    let tar = tar_of(&[("f_0.obs.npy", npy(&[1]))]);
    let skippable = [b"\x50\x2a\x4d\x18\x04\0\0\0".as_slice(), b"size", &zstd::compress(1, &tar).unwrap()].concat();
    assert_eq!(Packing::of(&skippable), Packing::Zstd);
    assert_eq!(Shard::read(&skippable, MAX).unwrap().trajectories.frames(), 1);
    assert_eq!(streamed(skippable).unwrap().unwrap().ends, [(1, End::Truncated)]);
}

#[test]
fn tars_from_before_ustar_are_tars() {
    let mut tar = tar_of(&[("f_0.obs.npy", npy(&[1]))]);
    let header = &mut tar[..512];
    header[257..265].fill(0);
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let file = read("demos.tgz", &gzip::compress(1, &tar).unwrap(), &ReadOptions::default()).unwrap();
    assert_eq!(file.trajectories().frames(), 1);
}

#[test]
fn names_with_control_characters_are_shown_escaped() {
    let tar = tar_of(&[("a\u{1b}[2J.x.npy", npy(&[1])), ("b.x.npy", npy(&[1])), ("a\u{1b}[2J.y.npy", npy(&[1]))]);
    for (name, e) in refused(&tar) {
        let said = e.to_string();
        assert!(!said.chars().any(char::is_control) && said.contains("a\\u{1b}[2J"), "{name}: {said}");
    }
    let tar = tar_of(&[("f_0.x.npy", npy(&[1])), ("f_1.\u{7}\u{202e}.npy", npy(&[1]))]);
    for (name, e) in refused(&tar) {
        let said = e.to_string();
        assert!(!said.contains(['\u{7}', '\u{202e}']) && said.contains("\\u{202e}"), "{name}: {said}");
    }
}
