//! Every source against the contract of `ChunkSource`: one suite, one case per format.
#![allow(missing_docs, clippy::unwrap_used)]

mod solid;
mod suite;

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_format::binpack::pack as binpack;
use gristmill_format::bullet::{Board, pack as bullet};
use gristmill_format::chess::Version;
use gristmill_format::chess::pack::{CODEC, Packer};
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::container::gzip::compress;
use gristmill_format::container::tar::TarWriter;
use gristmill_format::demo::pack::{self as demo, About, Blocks, Trajectory};
use gristmill_format::demo::trajectory::{End, layout};
use gristmill_format::demo::value::Extra;
use gristmill_format::detect::{Format, detect, open};
use gristmill_format::g2048::StepRow;
use gristmill_format::layout::Scalar;
use gristmill_format::source::{Chunk, ChunkSource, Limits};

use suite::{Case, conform};

/// `frames` V6 records that compress well and are all different.
fn game(frames: u8, mark: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in 0..frames {
        let mut record = vec![0; 8356];
        record[..8].copy_from_slice(&[6, 0, 0, 0, 1, 0, 0, 0]);
        record[8..7440].as_chunks_mut().0.fill((-1.0f32).to_le_bytes());
        record[7440..7448].copy_from_slice(&[mark, frame, 1, 2, 3, 4, 5, 6]);
        bytes.extend(record);
    }
    bytes
}

#[test]
fn one_game() {
    let games = vec![game(3, 1)];
    let file = compress(6, &games[0]).unwrap();
    conform(&Case::new("training.1.gz", Format::ChessGame, file, games, open));
}

#[test]
fn one_game_in_two_members_with_padding() {
    let games = vec![[game(1, 1), game(2, 2)].concat()];
    let file = [compress(6, &games[0][..8356]).unwrap(), compress(9, &games[0][8356..]).unwrap(), vec![0; 7]].concat();
    conform(&Case::new("training.2.gz", Format::ChessGame, file, games, open));
}

#[test]
fn one_game_stored_plainly() {
    // Nothing guards plain bytes, so that a flip may pass for data.
    let games = vec![game(1, 1)];
    let case = Case::new("training.3.gz", Format::ChessGame, games[0].clone(), games, open);
    conform(&Case { guarded: false, ..case });
}

#[test]
fn a_tar_of_games_and_other_things() {
    let games = vec![game(2, 1), game(1, 2)];
    let mut tar = TarWriter::new(Vec::new());
    tar.directory("run").unwrap();
    tar.append("run/LICENSE", b"Open").unwrap();
    tar.append("run/training.1.gz", &compress(6, &games[0]).unwrap()).unwrap();
    tar.append("run/._training.1.gz", b"\0\x05\x16\x07").unwrap();
    tar.append("run/notes.txt", b"none").unwrap();
    tar.append(&format!("{}/training.2.gz", "long".repeat(30)), &compress(6, &games[1]).unwrap()).unwrap();
    conform(&Case::new("run.tar", Format::ChessTar, tar.finish().unwrap(), games, open));
}

#[test]
fn a_tar_with_names_in_pax_headers() {
    // Nothing guards the payload of a pax header: damage there may make a game look like something else.
    let games = vec![game(1, 1), game(1, 2)];
    let mut tar = TarWriter::new(Vec::new());
    for (i, game) in games.iter().enumerate() {
        tar.append(&format!("{}/training.{i}.gz", "long".repeat(60)), &compress(6, game).unwrap()).unwrap();
    }
    let case = Case::new("run.tar", Format::ChessTar, tar.finish().unwrap(), games, open);
    conform(&Case { guarded: false, ..case });
}

#[test]
fn a_file_of_pgn() {
    // Nothing guards text, and a flip may make another game.
    let file = b"[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[Event \"b\"]\n\n1. d4 1/2-1/2\n".to_vec();
    let games = gristmill_format::chess::pgn::source::PgnFile::open("", &file[..]).unwrap();
    let records = |i: usize| {
        let (span, mut out) = (games.locate(i).unwrap().0, Chunk::default());
        let bytes = &file[span.offset as usize..][..span.len as usize];
        games.decode(i, bytes, &Limits::default(), &mut out).unwrap();
        out.records().to_vec()
    };
    let chunks = vec![records(0), records(1)];
    let case = Case::new("games.pgn", Format::Pgn, file.clone(), chunks, open);
    conform(&Case { guarded: false, ..case });
}

#[test]
fn a_chunk_file_of_packed_games() {
    let games = vec![game(3, 1), game(1, 2)];
    let (mut file, mut index) = (MAGIC.to_vec(), ChunkFileWriter::new(CODEC));
    for (game, name) in games.iter().zip(["run.tar/training.1.gz", "training.2.gz"]) {
        let start = file.len();
        Packer::default().pack(Version::V6, game, &mut file).unwrap();
        index.add(name, (game.len() / 8356) as u32, &file[start..]).unwrap();
    }
    file.extend(index.finish());
    conform(&Case::new("games-00000.chunks", Format::Chunks, file, games, open));
}

#[test]
fn a_binpack() {
    // Nothing guards moves and scores, and a flip may make another chain.
    let (file, chunks) = crate::binpack::file();
    let case = Case::new("games.binpack", Format::Binpack, file, chunks, open);
    conform(&Case { guarded: false, ..case });
}

#[test]
fn a_chunk_file_of_chains() {
    let (mut file, mut index) = (MAGIC.to_vec(), ChunkFileWriter::new(binpack::CODEC));
    let (_, chunks) = crate::binpack::file();
    for (i, records) in chunks.iter().enumerate() {
        index.add(&format!("games.binpack/{i}"), (records.len() / 33) as u32, records).unwrap();
        file.extend(records);
    }
    file.extend(index.finish());
    conform(&Case::new("games-00000.chunks", Format::Chunks, file, chunks, open));
}

#[test]
fn a_file_of_boards() {
    // Nothing guards scores and results, and a flip may make another board.
    let board = |score| Board::of(&[(4, 5), (60, 13)], score, 2).unwrap().bytes().to_vec();
    let chunks = vec![[board(255), board(-5)].concat()];
    let case = Case::new("boards.bf", Format::Bullet, chunks[0].clone(), chunks, open);
    conform(&Case { guarded: false, ..case });
}

#[test]
fn a_chunk_file_of_boards() {
    let board = |score| Board::of(&[(0, 5), (63, 13)], score, 0).unwrap().bytes().to_vec();
    let chunks = vec![[board(1), board(2)].concat(), board(3)];
    let (mut file, mut index) = (MAGIC.to_vec(), ChunkFileWriter::new(bullet::CODEC));
    for (i, records) in chunks.iter().enumerate() {
        index.add(&format!("boards.bf/{i}"), (records.len() / 32) as u32, records).unwrap();
        file.extend(records);
    }
    file.extend(index.finish());
    conform(&Case::new("games-00000.chunks", Format::Chunks, file, chunks, open));
}

#[test]
fn a_chunk_file_of_packed_trajectories() {
    let fields = [("acts", Scalar::I64, &[][..]), ("dones", Scalar::Bool, &[]), ("obs", Scalar::U8, &[2, 9, 9])];
    let layout = Arc::new(layout(fields.into_iter()).unwrap());
    let about = About { layout: layout.clone(), form: "demo.shard".into(), facts: Vec::new(), metadata: None };
    // Pictures of which each is in two steps, so that pieces are shared.
    let trajectory = |frames: u8, mark: u8| {
        let mut records = vec![0; usize::from(frames) * layout.size()];
        for (t, record) in (0..frames).zip(records.chunks_exact_mut(layout.size())) {
            for field in layout.fields() {
                let value = &mut record[field.offset..][..field.bytes()];
                match field.name.as_str() {
                    "obs" => (0..2).for_each(|k| value[81 * k..][..81].fill(mark + t + k as u8)),
                    "dones" => value[0] = u8::from(t + 1 == frames),
                    _ => value[0] = t,
                }
            }
        }
        records
    };
    let chunks = vec![trajectory(3, 1), trajectory(5, 100), trajectory(1, 7)];
    let (mut file, mut index) = (MAGIC.to_vec(), ChunkFileWriter::new(demo::CODEC));
    for (i, records) in chunks.iter().enumerate() {
        let mut packed = Vec::new();
        let extras = BTreeMap::from([("infos".to_owned(), vec![(0, Extra::Json("{\"t\":0}".into()))])]);
        let end = if i == 0 { End::Truncated } else { End::Terminated };
        let trajectory = Trajectory { about: &about, records, extras: &extras, end };
        demo::pack(&trajectory, Blocks::default(), &mut packed).unwrap();
        index.add(&format!("demos/{i}"), (records.len() / layout.size()) as u32, &packed).unwrap();
        file.extend(packed);
    }
    file.extend(index.finish());
    conform(&Case::new("games-00000.chunks", Format::Chunks, file, chunks, open));
}

#[test]
fn a_file_of_records() {
    let (file, chunks) = crate::records::file();
    conform(&Case::new("games-000000.records", Format::Records, file, chunks, open));
}

#[test]
fn a_chunk_file_of_rows_of_katago() {
    let (file, chunks) = crate::katago::chunk_file();
    conform(&Case::new("games-00000.chunks", Format::Chunks, file, chunks, open));
}

#[test]
fn a_chunk_file_of_records() {
    let (file, chunks) = crate::records::chunk_file();
    conform(&Case::new("games-00000.chunks", Format::Chunks, file, chunks, open));
}

#[test]
fn a_log_of_steps() {
    let step = |i: u32| {
        format!(
            r#"{{"seed":5,"step_index":{i},"max_rank":1,"move":"left","board":[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,{}]}}"#,
            i % 2
        )
    };
    let rows = |steps: std::ops::Range<u32>| {
        let mut rows = Vec::new();
        for i in steps {
            let row = StepRow {
                step_index: i,
                board: 0x0100_0000_0000_0000 | u64::from(i % 2),
                board_eval: if i % 2 == 0 { -18 } else { -66 },
                move_dir: 2,
                max_rank: 1,
                seed: 5,
                ..StepRow::default()
            };
            rows.extend(row.to_aligned());
        }
        rows
    };
    let lines: Vec<String> = (0..600).map(step).collect();
    let text = lines.join("\n");
    let (one, two) = text.as_bytes().split_at(40_000);
    let file = [compress(6, one).unwrap(), compress(1, two).unwrap(), vec![0; 3]].concat();
    conform(&Case::new("g.jsonl.gz", Format::G2048Log, file, vec![rows(0..600)], open));
}

#[test]
fn names_and_first_bytes_tell_the_format() {
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    for (name, head, format) in [
        ("a/training.1.gz", &b""[..], Some(Format::ChessGame)),
        ("a/TRAINING.GZ", b"", Some(Format::ChessGame)),
        ("a/b.tar", b"\x1f\x8b", Some(Format::ChessTar)),
        ("a/b.pgn", b"", Some(Format::Pgn)),
        ("a/b.PGN.gz", b"", Some(Format::PackedPgn)),
        ("a/b.pgn.zst", b"", Some(Format::PackedPgn)),
        ("noname", b"\xef\xbb\xbf\n[Event \"a\"]", Some(Format::Pgn)),
        ("noname", b"\x1f\x8b\x08", Some(Format::ChessGame)),
        ("noname", b"\x06\0\0\0\x01", Some(Format::ChessGame)),
        ("noname", &tar, Some(Format::ChessTar)),
        ("a/b.BINPACK", b"", Some(Format::Binpack)),
        ("noname", b"BINP\x10\0\0\0", Some(Format::Binpack)),
        ("games-00000.chunks", b"", Some(Format::Chunks)),
        ("noname", b"GMCHUNK1", Some(Format::Chunks)),
        ("noname", b"PK", None),
        ("noname", b"", None),
        ("a/._training.1.gz", b"", None),
        ("a/.training.1.gz", b"\x1f\x8b", None),
        ("LICENSE", b"\x06\0\0\0", None),
        ("a/depth06_worker00_seed0272350805_game000000.jsonl.gz", b"", Some(Format::G2048Log)),
        ("a/G.JSONL.GZ", b"", Some(Format::G2048Log)),
        ("a/g.meta.json.gz", b"\x1f\x8b", None),
        ("a/g.meta.json", b"{", None),
        ("a.tar.gz", b"", Some(Format::Demonstrations)),
        ("A.TGZ", b"", Some(Format::Demonstrations)),
        ("a.tar.zst", b"", Some(Format::Demonstrations)),
        ("a.pkl.gz", b"", Some(Format::Demonstrations)),
        ("a.npz", b"PK", Some(Format::Demonstrations)),
        ("a/.part.npz", b"PK", None),
    ] {
        assert_eq!(detect(name, head).unwrap(), format, "{name}");
    }
    for name in ["a.tar.xz", "a.tbz2", "A.TAR.XZ"] {
        let e = detect(name, b"").unwrap_err();
        assert_eq!(e.kind().name(), "unsupported");
        assert!(e.detail().contains("unpack"), "{e}");
    }
}

#[test]
fn a_single_game_is_not_touched_before_it_is_decoded() {
    struct Unreadable;
    impl gristmill_format::source::ReadAt for Unreadable {
        fn len(&self) -> gristmill_format::Result<u64> {
            unreachable!("the length is not needed")
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> gristmill_format::Result<usize> {
            unreachable!("no byte is read")
        }
    }
    assert_eq!(open(Format::ChessGame, "training.1.gz", &Unreadable).unwrap().len(), 1);
}

#[test]
fn a_file_that_is_no_tar_is_refused_at_once() {
    for bytes in [&b"hello"[..], &[7; 4096], b""] {
        let e = open(Format::ChessTar, "a.tar", &Bytes(bytes)).unwrap_err();
        assert_eq!(e.place().offset, Some(0), "{e}");
    }
    assert!(open(Format::ChessTar, "a.tar", &Bytes(&[0; 1024])).unwrap().is_empty());
}

/// Borrowed bytes as a sized `ReadAt`, which a trait object needs.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl gristmill_format::source::ReadAt for Bytes<'_> {
    fn len(&self) -> gristmill_format::Result<u64> {
        Ok(self.0.len() as u64)
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> gristmill_format::Result<usize> {
        self.0.read_at(offset, buf)
    }
}
