//! Body for files of records and packed games: what is read comes back, and is refused with its place.

use gristmill_format::records::pack::{PackedGame, pack};
use gristmill_format::records::{RecordFile, Schema, log};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

use super::mended;

/// A file of records is its games, one by one; a packed game is what was packed.
pub fn records(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(schema) = Schema::parse(text)
    {
        assert!(Schema::parse(schema.text()).expect("its own text") == schema);
        let records = vec![0; schema.layout().size()];
        assert!(schema.values(&records, "").expect("no facts").len() == schema.names().count());
    }
    if let Ok(game) = PackedGame::new(data) {
        let _ = game.parse().and_then(|schema| schema.facts(game.facts()).map(drop));
    }
    file(data);
    file(&mended::records(data, |text| Schema::parse(text).ok().map(|schema| schema.layout().size())));
}

/// Games of a file come back as they lie there.
fn file(data: &[u8]) {
    let Ok(file) = RecordFile::open("fuzz.records", data) else { return };
    let (mut stored, mut chunk, mut again) = (Vec::new(), Chunk::default(), log::begin(file.schema()));
    let limits = Limits { max_chunk_bytes: 1 << 20 };
    for i in 0..file.len() {
        let (span, _) = file.locate(i).expect("a game that there is");
        read_span(data, span, data.len() as u64, &mut stored).expect("within the file");
        if file.decode(i, &stored, &limits, &mut chunk).is_err() {
            continue;
        }
        assert!(Some(chunk.frames) == file.frames(i));
        let facts = chunk.said("facts").unwrap_or_default().to_owned();
        let entry = log::entry(file.schema(), chunk.records(), &facts).expect("a game that was read");
        assert!(entry == stored, "a game changes");
        again.extend_from_slice(&entry);
        let mut packed = Vec::new();
        pack(&chunk, &mut packed).expect("a game that was read");
        let game = PackedGame::new(&packed).expect("a game that was packed");
        assert!(game.records() == chunk.records() && game.facts() == facts && game.frames() == chunk.frames);
    }
    let torn = file.torn(data).expect("bytes in memory");
    assert!(torn.is_none_or(|at| at <= data.len() as u64));
    assert!(RecordFile::open("again", again.as_slice()).expect("written").faults().is_empty());
}
