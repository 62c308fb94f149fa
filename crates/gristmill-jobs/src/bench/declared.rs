//! The usual graph over files of a kind whose fields streams have to declare -> the same with those fields, as the first file has
//! them, and with room for such files. Any other graph stays as it is.

use gristmill_engine::config::{DataLoaderConfig, MemorySize, StageKind};
use gristmill_engine::error::Result;
use gristmill_engine::kinds;
use gristmill_format::source::Chunk;

use crate::files::{self, Found};
use crate::work::Opened;

/// Bytes of records in a reservoir whose size nobody gave.
const RESERVOIR: usize = 128 << 20;

/// Room for files that are larger than the first, in bytes.
const ROOM: u64 = 64 << 20;

/// Declares the fields of the data of `config`, where their kind needs that. Leaves the tensors as they are where the user
/// chose them (`chosen`), and the reservoir where the user gave its size (`sized`).
///
/// Errors: what opening the first file says.
pub fn declare(config: &mut DataLoaderConfig, chosen: bool, sized: bool) -> Result<()> {
    let folders = config.stage.iter().filter_map(|stage| match stage.kind() {
        Ok(StageKind::FilePathProvider(files)) => Some(files.directory.clone()),
        _ => None,
    });
    let Some(listing) = folders.filter_map(|folder| files::list(&folder).ok()).find(|found| !found.files.is_empty())
    else {
        return Ok(());
    };
    let opened =
        listing.files.iter().find_map(|closed| if let Found::File(file) = closed.open() { Some(file) } else { None });
    let Some(file) = opened else { return Ok(()) };
    let kind = kinds::of(file.kind.name())?;
    let Some(layout) = first(&file).and_then(|chunk| chunk.layout) else { return Ok(()) };
    let fields = kind.declares(&layout);
    if fields.is_empty() {
        return Ok(());
    }
    for stage in &mut config.stage {
        if let Some(generator) = &mut stage.tensor_generator {
            generator.encoder = kind.encoder();
            if !chosen {
                generator.tensors = fields.clone();
            }
        }
        if let Some(sampler) = stage.shuffling_frame_sampler.as_mut().filter(|_| !sized) {
            let most = (RESERVOIR / layout.size().max(1)).max(1);
            sampler.reservoir_size_per_thread = sampler.reservoir_size_per_thread.min(most);
        }
    }
    let frames: usize = (0..file.source.len()).filter_map(|i| frames(&file, i)).sum();
    let whole = file.size.max((frames * layout.size()) as u64);
    // One trajectory can fill its file.
    let room = MemorySize(whole.saturating_mul(2).saturating_add(ROOM));
    config.max_solid_bytes.get_or_insert(room);
    config.max_chunk_bytes.get_or_insert(room);
    Ok(())
}

fn first(file: &Opened) -> Option<Chunk> {
    let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
    file.fetch(0, &mut stored).and_then(|()| file.decode(0, &stored, &mut chunk)).ok()?;
    Some(chunk)
}

fn frames(file: &Opened, i: usize) -> Option<usize> {
    match &file.demo {
        Some(demo) => demo.trajectories().span(i).map(|span| span.len()),
        None => file.source.frames(i),
    }
}
