//! Heads of games that the side index knows: whatever byte changes and however much is wanted, what is decoded is a true
//! beginning of the game, or nothing.

use std::sync::Arc;

use gristmill_engine::facts::Facts;
use gristmill_engine::stage::load::Source;
use gristmill_engine::store::MemoryStore;
use gristmill_format::chess::{FrameMut, InputFormat, Version};
use gristmill_format::container::gzip;
use gristmill_format::source::{Chunk, Limits};

use crate::facts_index::restart;

/// Frames of the game.
const FRAMES: usize = 5;

/// A game whose every byte of policy and planes is another.
fn game(version: Version) -> Vec<u8> {
    let mut bytes = vec![0; FRAMES * version.bytes()];
    for (i, record) in bytes.chunks_exact_mut(version.bytes()).enumerate() {
        FrameMut::blank(record, InputFormat::Classical).unwrap();
        for (k, byte) in record[8..8272].iter_mut().enumerate().filter(|(k, _)| k % 97 < 2) {
            *byte = (i * 31 + k * k / 7) as u8;
        }
    }
    gzip::compress(6, &bytes).unwrap()
}

/// The one source of a store with this file.
fn source(bytes: &[u8], facts: &Arc<Facts>) -> Arc<Source> {
    let store = Arc::new(MemoryStore::new());
    store.write("training.1.gz", bytes.to_vec());
    Arc::clone(&restart(&store, Some(facts)).0[0])
}

#[test]
fn whatever_byte_changes_a_head_is_true_or_refused() {
    let (folder, limits) = (tempfile::tempdir().unwrap(), Limits::default());
    let facts = Arc::new(Facts::open(folder.path(), folder.path()).unwrap());
    for version in [Version::V6, Version::V7] {
        let stored = game(version);
        let source = source(&stored, &facts);
        let (mut whole, mut out) = (Chunk::default(), Chunk::default());
        source.decode(0, &stored, &limits, &mut whole).unwrap();
        assert!(!source.decode_head(0, (1, FRAMES), &stored, &limits, &mut out).unwrap(), "nothing is known of it");
        source.learn(0, &stored, &whole);
        let head = source.chunks.head(0, &stored, &whole).unwrap();
        let mut alone = 0;
        for first in 1..=FRAMES {
            if source.decode_head(0, (first, FRAMES), &stored, &limits, &mut out).unwrap() {
                assert_eq!((out.frames, out.records()), (first, &whole.records()[..first * version.bytes()]));
                alone += 1;
            }
            assert!(!source.decode_head(0, (first, FRAMES + 1), &stored, &limits, &mut out).unwrap(), "another length");
        }
        assert!(alone >= FRAMES / 2, "{alone} of {FRAMES} heads were had alone");
        let (mut refused, mut true_anyway) = (0, 0);
        for at in 0..stored.len() {
            let mut bad = stored.clone();
            bad[at] ^= 1 << (at % 8);
            for first in 1..=FRAMES {
                let known = source.decode_head(0, (first, FRAMES), &bad, &limits, &mut out).unwrap();
                assert!(!known, "byte {at}: these are not the bytes that were sound");
                // The sums of what is inside hold by themselves.
                if source.chunks.decode_head(0, (first, &head), &bad, &limits, &mut out).unwrap() {
                    assert_eq!(out.records(), &whole.records()[..first * version.bytes()], "byte {at}, {first} frames");
                    true_anyway += 1;
                } else {
                    refused += 1;
                }
            }
            if let Err(e) = source.decode(0, &bad, &limits, &mut out) {
                assert!(e.detail().contains("it was damaged since"), "{e}");
                assert!(e.place().offset.is_some() && e.place().source.is_some(), "{e}");
            } else {
                assert_eq!(out.records(), whole.records(), "byte {at}: of a header that nothing hangs on");
            }
        }
        assert!(refused > stored.len() && true_anyway > 0, "{refused} refused, {true_anyway} before the damage");
    }
}

#[test]
fn sums_of_heads_are_kept_for_the_state_of_the_file_they_were_found_in() {
    let folder = tempfile::tempdir().unwrap();
    let stored = game(Version::V6);
    let open = || Arc::new(Facts::open(folder.path(), folder.path()).unwrap());
    let facts = open();
    let first = source(&stored, &facts);
    let (mut whole, limits) = (Chunk::default(), Limits::default());
    first.decode(0, &stored, &limits, &mut whole).unwrap();
    first.learn(0, &stored, &whole);
    let (file, head) = (first.file(), first.chunks.head(0, &stored, &whole));
    assert_eq!(facts.head(&file, 0), head);
    drop((first, facts));
    let facts = open();
    assert_eq!((facts.head(&file, 0), facts.head(&file, 1)), (head, None));
    assert_eq!(facts.frames(&file, 0), Some(FRAMES as u32));
    let changes = [
        gristmill_engine::store::FileStat { mtime_ns: file.mtime_ns + 1, ..file.clone() },
        gristmill_engine::store::FileStat { inode: file.inode + 1, ..file.clone() },
        gristmill_engine::store::FileStat { size: file.size + 1, ..file.clone() },
        gristmill_engine::store::FileStat { name: "other.gz".into(), ..file.clone() },
    ];
    for other in changes {
        assert_eq!((facts.head(&other, 0), facts.frames(&other, 0)), (None, None), "{other:?}");
    }
    let size = std::fs::metadata(facts.path()).unwrap().len();
    let again = source(&stored, &facts);
    again.learn(0, &stored, &whole);
    facts.flush();
    assert_eq!(std::fs::metadata(facts.path()).unwrap().len(), size, "what is known is not written again");
}
