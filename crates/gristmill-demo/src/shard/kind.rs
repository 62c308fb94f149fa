//! A tar -> whether its members are samples of a shard, or games: by the names of the first members that tell.
//! Reads headers alone. Names are all there is to go by: both kinds of tar may hold texts about themselves.

use gristmill_bytes::container::tar::{Entry, Members, TarLimits, Windows};
use gristmill_bytes::error::{Kind, Result};
use gristmill_bytes::source::ReadAt;

use super::group::{METADATA, PLAIN_METADATA, split};

/// Maximum number of members whose headers are read.
const MOST: usize = 4096;

/// Bytes read at a time where payloads are passed over.
const GLANCE: usize = 4096;

/// What members of samples are called, and games never.
const TELLING: [&str; 17] = [
    "pickle", "pyd", "pkl", "npy", "npz", "cls", "cls2", "msgpack", "mp", "cbor", "png", "jpg", "jpeg", "pth", "ten",
    "tb", "inx",
];

/// Whether the members of a tar are samples, where `is_game` says which are games. A tar without members that tell is one of games, unless it has others whose names
/// have a suffix.
///
/// Errors: `Io`. A tar that is damaged is judged by what lies before the damage.
pub fn is_shard(from: &(impl ReadAt + ?Sized), is_game: impl Fn(Entry<'_>) -> bool) -> Result<bool> {
    let mut members = Members::new(Windows::new(from, GLANCE)?, TarLimits::default());
    let mut samples = false;
    for _ in 0..MOST {
        let member = match members.following() {
            Ok(Some(member)) => member,
            Ok(None) => break,
            Err(e) if matches!(e.kind(), Kind::Io(_)) => return Err(e),
            Err(_) => break,
        };
        if member.name.rsplit('/').next() == Some(PLAIN_METADATA) {
            return Ok(true);
        }
        let parts = split(&member.name);
        if let Some((key, suffix)) = parts {
            let suffix = suffix.to_ascii_lowercase();
            let inner = suffix.strip_suffix(".gz").unwrap_or(&suffix);
            let last = inner.rsplit('.').next().unwrap_or(inner);
            if key.rsplit('/').next() == Some(METADATA) || TELLING.contains(&last) {
                return Ok(true);
            }
        }
        if is_game(Entry { offset: member.offset, len: member.len, name: &member.name }) {
            return Ok(false);
        }
        samples |= parts.is_some();
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_bytes::container::tar::TarWriter;

    fn told(members: &[(&str, usize)]) -> bool {
        let mut tar = TarWriter::new(Vec::new());
        for (name, len) in members {
            tar.append(name, &vec![1; *len]).unwrap();
        }
        let is_game =
            |member: Entry<'_>| member.name.ends_with(".gz") || member.len > 0 && member.len.is_multiple_of(8308);
        is_shard(tar.finish().unwrap().as_slice(), is_game).unwrap()
    }

    #[test]
    fn members_tell_the_kind() {
        assert!(told(&[("_metadata.meta.pickle", 4), ("frame_000.obs.pickle", 4)]));
        assert!(told(&[("__gristmill__", 4)]));
        assert!(told(&[("sample000000.obs.pyd", 4)]));
        assert!(told(&[("README.txt", 4), ("a/000.obs.npy.gz", 4)]));
        assert!(told(&[("000.json", 4), ("001.json", 4)]));
        assert!(told(&[("000.wav", 4)]));
        assert!(!told(&[("LICENSE", 4), ("README.txt", 4), ("training.12.gz", 40)]));
        assert!(!told(&[("index.json", 4), ("game_1", 8308)]));
        assert!(!told(&[("plain.records", 2 * 8308)]));
        assert!(!told(&[("LICENSE", 4)]));
        assert!(!told(&[]));
    }
}
