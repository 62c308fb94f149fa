//! A.7: four real games in a tar made on macOS. Skipped, visibly, where the shared data is absent.

use std::path::PathBuf;

use gristmill_format::chess::source::GameTar;
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

use super::sha256;

fn shared() -> PathBuf {
    std::env::var_os("GRISTMILL_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from)
}

#[test]
fn four_games_and_nothing_else() {
    let path = shared().join("data/lc0/lc0-data-sample.tar");
    let Ok(tar) = std::fs::read(&path) else {
        println!("skipped: no real sample at {}; set GRISTMILL_SHARED", path.display());
        return;
    };
    let source = GameTar::open("lc0-data-sample.tar", &tar[..]).unwrap();
    let expected = [
        ("training.1387366601.gz", 5644, 26, "ba7e3dce2b572732"),
        ("training.1387366590.gz", 18521, 89, "cfe2401d8af4bf65"),
        ("training.1387368810.gz", 16774, 76, "2525474bf61f59c0"),
        ("training.1387357298.gz", 26248, 133, "9927d8b3796597f7"),
    ];
    assert_eq!(source.faults(), []);
    assert_eq!((source.len(), source.skipped()), (4, 7));
    let (mut bytes, mut chunk) = (Vec::new(), Chunk::default());
    for (i, (name, len, frames, hash)) in expected.into_iter().enumerate() {
        let (span, member) = source.locate(i).unwrap();
        assert_eq!((member, span.len), (Some(format!("lc0-data-sample/{name}").as_str()), len));
        read_span(&tar[..], span, 1 << 20, &mut bytes).unwrap();
        source.decode(i, &bytes, &Limits::default(), &mut chunk).unwrap();
        assert_eq!((chunk.frames, chunk.records().len()), (frames, frames * 8356));
        assert_eq!(sha256(chunk.records())[..16], *hash);
    }
}
