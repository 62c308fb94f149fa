//! Binpacks of ours and of sfbinpack: each reads what the other wrote, and both are measured on the same file.
//! `agree SEED GAMES`, `golden SEED GAMES OUT`, `speed FILE`, `filter FILE ONE_IN`.

mod games;

use std::error::Error;
use std::fs;

use gristmill_format::binpack::record::{self, Position, Told};
use gristmill_format::binpack::source::Binpack;
use gristmill_format::binpack::write::Writer;
use gristmill_format::binpack::{BYTES, Men, Move, chain};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};
use sfbinpack::chess::color::Color;
use sfbinpack::chess::coords::Square;
use sfbinpack::chess::r#move::MoveType;
use sfbinpack::chess::piece::Piece;
use sfbinpack::{
    CompressedTrainingDataEntryReader as Reader, CompressedTrainingDataEntryWriter, TrainingDataEntry as Entry,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One of their positions as a record of ours, by their public face alone.
fn ours(entry: &Entry) -> Vec<u8> {
    let (pos, mut men) = (&entry.pos, Men::default());
    let rights = pos.fen().unwrap_or_default();
    let rights = rights.split(' ').nth(2).unwrap_or("-").to_owned();
    let mut count = 0;
    for at in 0..64u32 {
        let piece = pos.piece_at(Square::new(at));
        if piece == Piece::none() {
            continue;
        }
        let white = piece.color() == Color::White;
        let nibble = match (piece.id(), at) {
            (6 | 7, 0) if rights.contains('Q') && white => 13,
            (6 | 7, 7) if rights.contains('K') && white => 13,
            (6 | 7, 56) if rights.contains('q') && !white => 14,
            (6 | 7, 63) if rights.contains('k') && !white => 14,
            (0 | 1, at) if pos.ep_square().index() == (at ^ 8) => 12,
            (11, _) if pos.side_to_move() == Color::Black => 15,
            (id, _) => id,
        };
        men.occ |= 1 << at;
        men.pcs |= u128::from(nibble) << (4 * count);
        count += 1;
    }
    let mv = entry.mv;
    let becomes = match mv.mtype() {
        MoveType::Promotion => mv.promoted_piece().id() / 2 - 1,
        _ => 0,
    };
    let played = u16::from(mv.mtype().ordinal()) << 14
        | (mv.from().index() as u16) << 8
        | (mv.to().index() as u16) << 2
        | u16::from(becomes);
    let told = Told {
        played: Move(played),
        score: entry.score,
        ply: entry.ply,
        result: entry.result as i8,
        rule50: pos.rule50_counter() as u8,
    };
    let mut out = Vec::new();
    record::push(&mut out, &men, &told, 0);
    out
}

fn theirs(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut writer = CompressedTrainingDataEntryWriter::new_in_memory()?;
    for entry in entries {
        writer.write_entry(entry)?;
    }
    Ok(writer.into_bytes()?)
}

fn entries(bytes: &[u8]) -> Result<Vec<Entry>> {
    let (mut reader, mut all) = (Reader::from_slice(bytes)?, Vec::new());
    while reader.has_next() {
        all.push(reader.next());
    }
    Ok(all)
}

/// All positions of a file as we read it, and its chains.
fn records(bytes: &[u8]) -> Result<(Vec<u8>, usize)> {
    let source = Binpack::open("bench.binpack", bytes)?;
    if let Some(fault) = source.faults().first() {
        return Err(fault.to_string().into());
    }
    let (mut stored, mut chunk, mut all) = (Vec::new(), Chunk::default(), Vec::new());
    for i in 0..source.len() {
        let (span, _) = source.locate(i).ok_or("no such chain")?;
        read_span(bytes, span, u64::MAX, &mut stored)?;
        source.decode(i, &stored, &Limits { max_chunk_bytes: 64 << 20 }, &mut chunk)?;
        all.extend_from_slice(chunk.records());
    }
    Ok((all, source.len()))
}

fn differ(what: &str, ours: &[u8], theirs: &[Vec<u8>]) -> Result<()> {
    let mine: Vec<&[u8]> = ours.chunks(BYTES).collect();
    for (i, (a, b)) in mine.iter().zip(theirs).enumerate() {
        if a[..BYTES - 1] != b[..BYTES - 1] {
            return Err(format!("{what}: position {i} is {a:02x?}, expected {b:02x?}").into());
        }
    }
    if mine.len() == theirs.len() {
        Ok(())
    } else {
        Err(format!("{what}: {} positions, expected {}", mine.len(), theirs.len()).into())
    }
}

fn agree(seed: u64, count: usize) -> Result<()> {
    let all = games::games(seed, count);
    let expected: Vec<Vec<u8>> = all.iter().map(ours).collect();
    let written = theirs(&all)?;
    let (read, chains) = records(&written)?;
    differ("theirs, read by us", &read, &expected)?;
    let (mut writer, mut file) = (Writer::default(), Vec::new());
    for record in &expected {
        writer.add(&Position::new(record)?, &mut file);
    }
    let own_chains = writer.finish(&mut file);
    let back: Vec<Vec<u8>> = entries(&file)?.iter().map(ours).collect();
    differ("ours, read by them", &expected.concat(), &back)?;
    let (again, _) = records(&file)?;
    differ("ours, read by us", &again, &expected)?;
    println!(
        "{} positions agree; theirs {} bytes and {chains} chains, ours {} bytes and {own_chains} chains{}",
        all.len(),
        written.len(),
        file.len(),
        if written == file { ", the same bytes" } else { "" },
    );
    Ok(())
}

/// Writes a file with their writer, and says what their reader finds in it, as records of ours without what repeats.
fn golden(all: &[Entry], out: &str) -> Result<()> {
    let written = theirs(all)?;
    fs::write(out, &written)?;
    let back = entries(&written)?;
    let records = back.iter().flat_map(ours).collect::<Vec<u8>>();
    let of = |kind: MoveType| back.iter().filter(|entry| entry.mv.mtype() == kind).count();
    let (castling, passing) = (of(MoveType::Castle), of(MoveType::EnPassant));
    println!("{} promotions, {castling} castlings, {passing} en passant", of(MoveType::Promotion));
    println!("{} positions, xxh3 {:#018x}", records.len() / BYTES, xxhash_rust::xxh3::xxh3_64(&records));
    Ok(())
}

/// Seconds of processor time of this thread.
fn cpu() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn timed(what: &str, mut run: impl FnMut() -> Result<usize>) -> Result<()> {
    let mut best = f64::INFINITY;
    let mut count = 0;
    for _ in 0..5 {
        let before = cpu();
        count = run()?;
        best = best.min(cpu() - before);
    }
    println!("{what}: {:.2} M positions a CPU-second ({count} in {best:.3} s, best of 5)", count as f64 / best / 1e6);
    Ok(())
}

fn speed(path: &str) -> Result<()> {
    let bytes = fs::read(path)?;
    println!("{path}: {} bytes", bytes.len());
    timed("sfbinpack, each position", || {
        let (mut reader, mut count) = (Reader::from_slice(&bytes)?, 0);
        while reader.has_next() {
            std::hint::black_box(reader.next());
            count += 1;
        }
        Ok(count)
    })?;
    timed("gristmill, where chains lie", || {
        let source = Binpack::open("bench.binpack", &bytes[..])?;
        Ok((0..source.len()).filter_map(|i| source.frames(i)).sum())
    })?;
    let source = Binpack::open("bench.binpack", &bytes[..])?;
    let spans: Vec<_> = (0..source.len()).filter_map(|i| source.locate(i)).map(|(span, _)| span).collect();
    timed("gristmill, records of 33 bytes", || {
        let (mut chunk, mut count) = (Chunk::default(), 0);
        for (i, span) in spans.iter().enumerate() {
            let stored = &bytes[span.offset as usize..][..span.len as usize];
            source.decode(i, stored, &Limits::default(), &mut chunk)?;
            count += std::hint::black_box(chunk.frames);
        }
        Ok(count)
    })?;
    timed("gristmill, moves alone", || {
        let mut count = 0;
        for span in &spans {
            let stored = &bytes[span.offset as usize..][..span.len as usize];
            count += chain::play(stored, &mut |_, _| {})?.frames;
        }
        Ok(count)
    })
}

/// Measures a rule on the fly, for each position that it keeps: one in `one_in` of the quiet ones, as 32 bytes.
fn filter(path: &str, one_in: u64) -> Result<()> {
    let bytes = fs::read(path)?;
    let source = Binpack::open("bench.binpack", &bytes[..])?;
    let spans: Vec<_> = (0..source.len()).filter_map(|i| source.locate(i)).map(|(span, _)| span).collect();
    let mut all = 0;
    let mut kept = 0;
    timed("gristmill, filtered on the fly to boards, of all that it decodes", || {
        let (mut chunk, mut boards, mut quiet) = (Chunk::default(), Vec::new(), 0u64);
        (all, kept) = (0, 0);
        for (i, span) in spans.iter().enumerate() {
            let stored = &bytes[span.offset as usize..][..span.len as usize];
            source.decode(i, stored, &Limits::default(), &mut chunk)?;
            all += chunk.frames;
            for frame in 0..chunk.frames {
                let position = Position::new(chunk.record(frame))?;
                if position.told().ply < 16 || !position.has_score() || position.takes() || position.board().in_check()
                {
                    continue;
                }
                quiet += 1;
                if quiet.is_multiple_of(one_in) {
                    boards.extend_from_slice(&position.board_bytes());
                    kept += 1;
                }
            }
        }
        std::hint::black_box(&boards);
        Ok(all)
    })?;
    println!("kept {kept} of {all}: one in {:.0}", all as f64 / kept as f64);
    timed("sfbinpack, filtered on the fly, of all that it decodes", || {
        let (mut reader, mut quiet, mut found) = (Reader::from_slice(&bytes)?, 0u64, 0);
        let mut kept = Vec::new();
        while reader.has_next() {
            let entry = reader.next();
            found += 1;
            let side = entry.pos.side_to_move();
            let takes = entry.mv.mtype() == MoveType::EnPassant
                || (entry.mv.mtype() != MoveType::Castle && entry.pos.piece_at(entry.mv.to()) != Piece::none());
            if entry.ply < 16 || entry.score == record::NO_SCORE || takes || entry.pos.is_checked(side) {
                continue;
            }
            quiet += 1;
            if quiet.is_multiple_of(one_in) {
                kept.push(entry);
            }
        }
        std::hint::black_box(&kept);
        Ok(found)
    })
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["agree", seed, count] => agree(seed.parse()?, count.parse()?),
        ["golden", seed, count, out] => golden(&games::games(seed.parse()?, count.parse()?), out),
        ["speed", path] => speed(path),
        ["filter", path, one_in] => filter(path, one_in.parse()?),
        _ => Err("agree SEED GAMES, golden SEED GAMES OUT, speed FILE, or filter FILE ONE_IN".into()),
    }
}
