//! 2048, as the engine has to know it: tensors of steps, of logs and of rows. What packs of its rows are is in `pack`.

mod encoding;

use gristmill_format::g2048::KIND;
use gristmill_stages::config::{EncoderConfig, G2048EncoderConfig};

use super::{Held, Kind, Way};

pub use encoding::tokenizer;

/// Games of 2048.
#[derive(Debug)]
pub struct G2048;

impl Kind for G2048 {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "games of 2048"
    }

    fn files(&self) -> &'static str {
        "logs of 2048 (.jsonl.gz, which `pack` takes with a .meta.json or .meta.json.gz of the same name)"
    }

    fn way(&self) -> Option<Way> {
        Some(Way::Rows)
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::G2048(G2048EncoderConfig::default())
    }

    fn held(&self, held: &Held<'_>) -> String {
        format!(
            "holds {}: `gristmill pack` makes a pack of them, which gristmill.DataLoader(gristmill.open(PACK), encoder=...) \
             feeds in Python",
            held.files("the raw log of a 2048 game", "raw logs of 2048 games")
        )
    }
}
