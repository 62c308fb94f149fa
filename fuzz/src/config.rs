//! Body of the `config` fuzz target: arbitrary bytes as TOML, JSON, protobuf text, protobuf and a saved state;
//! panics when a promise breaks.
//! Included, as source, by the target and by the replay of its corpus in the engine's tests.

use gristmill_engine::DataLoader;
use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::pipeline::ControlRequest;
use gristmill_engine::preset::{Lc0Preset, lc0};

/// What reads as a config must write and read back the same; checking, lowering and restoring never panic.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let forms = [
        DataLoaderConfig::from_toml(&text),
        DataLoaderConfig::from_json(&text),
        DataLoaderConfig::from_textproto(&text),
        DataLoaderConfig::from_proto_bytes(data),
    ];
    for read in forms.into_iter().flatten() {
        if let Ok(written) = read.to_textproto() {
            let again = DataLoaderConfig::from_textproto(&written).expect("what was written can be read");
            assert_eq!(again.to_proto_bytes().ok(), read.to_proto_bytes().ok());
        }
        if let Ok(written) = read.to_toml() {
            let again = DataLoaderConfig::from_toml(&written).expect("what was written can be read");
            assert_eq!(again.to_toml().ok().as_deref(), Some(written.as_str()));
        }
        if let Ok(loader) = DataLoader::new(read) {
            assert!(!format!("{:?}", loader.outputs()).is_empty());
            let _ = loader.restore(&text);
        }
    }
    let _ = ControlRequest::from_message(data);
    if let Ok(preset) = Lc0Preset::from_json(&text) {
        let _ = lc0(&preset);
    }
}
