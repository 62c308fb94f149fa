//! Files of boards say nothing of their chunks, which lie in the same places in all files of one length: a run that resumes tells
//! such files by some of their bytes, and journals of older versions by the places alone.

use std::fs;
use std::path::Path;

use gristmill_engine::config::EncoderConfig;
use gristmill_engine::preset::Lc0Preset;
use xxhash_rust::xxh3::xxh3_64;

use super::games::{hashes, loader, preset, without_checksum};

/// Boards of both kings, each with a score of its own.
fn boards(of: u16) -> Vec<u8> {
    let board = |n: u16| {
        let mut board = [0; 32];
        board[..8].copy_from_slice(&(1u64 << 4 | 1 << 60).to_le_bytes());
        board[8] = 0xD5;
        board[24..26].copy_from_slice(&(of + n).to_le_bytes());
        (board[27], board[28]) = (4, 60 ^ 56);
        board
    };
    (0..600).flat_map(board).collect()
}

fn run(folder: &Path) -> Lc0Preset {
    let encoder = EncoderConfig::Of("bullet".into());
    Lc0Preset { pool: 6, encoder, tensors: Vec::new(), ..preset(folder) }
}

/// The digest of such a file in what older versions wrote: that of the places of its chunks, and of no identity.
fn older(file: &[u8]) -> String {
    let mut said = 0u64.to_le_bytes().to_vec();
    for (i, chunk) in file.chunks(256 * 32).enumerate() {
        said.extend((i as u64 * 256 * 32).to_le_bytes());
        said.extend((chunk.len() as u64).to_le_bytes());
        said.push(0);
    }
    format!("{:016x}", xxh3_64(&said))
}

/// The same state as older versions wrote it, with another digest of each file.
fn with_digests(state: &str, digest: &str) -> String {
    let mut parts = state.split("\"bytes\":\"");
    let first = parts.next().unwrap().to_owned();
    let of = |part: &str| format!("\"bytes\":\"{digest}{}", &part[16..]);
    let rest: Vec<String> = parts.map(of).collect();
    assert!(!rest.is_empty(), "{state}");
    without_checksum(&(first + &rest.concat()))
}

#[test]
fn boards_that_were_written_over_with_as_many_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.bf"), folder.path().join("two.bf"));
    fs::write(&one, boards(0)).unwrap();
    fs::write(&two, boards(1000)).unwrap();
    let time = fs::metadata(&one).unwrap().modified().unwrap();
    let original = loader(&run(folder.path()));
    let seen = hashes(&original, "", 20);
    let state = original.state().unwrap();
    let rest = hashes(&original, "", 20);
    original.stop();
    let of_older = with_digests(&state, &older(&boards(0)));
    let again = |state: &str| {
        let loader = loader(&run(folder.path()));
        loader.restore(state).unwrap();
        loader
    };
    // Written again as it is, with another time.
    fs::write(&one, boards(0)).unwrap();
    for state in [&state, &of_older] {
        assert_eq!(hashes(&again(state), "", 20), rest);
    }
    assert_ne!(seen, rest);
    fs::write(&one, boards(3000)).unwrap();
    let refused = || {
        let error = again(&state).start().unwrap_err().to_string();
        assert!(error.contains("`one.bf` was written over with as many bytes"), "{error}");
    };
    refused();
    // Of the same time, too: nothing is read before the file is opened.
    fs::File::options().write(true).open(&one).unwrap().set_modified(time).unwrap();
    refused();
    // An older version wrote nothing of its bytes.
    again(&of_older).start().unwrap();
}
