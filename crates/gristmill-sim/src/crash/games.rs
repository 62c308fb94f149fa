//! A number -> a folder of games of 2048, each unlike any other: logs and sidecars, by docs/format/g2048.md. Few steps, so that a job
//! on them is short.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Steps of game `game`.
pub(super) fn steps(game: u32) -> u32 {
    3 + game * 5 % 7
}

/// Writes games `games` into a folder.
pub(super) fn write(folder: &Path, games: std::ops::Range<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for game in games {
        let text: String = (0..steps(game)).map(|step| line(game, step)).collect();
        let sidecar = format!(
            "{{\"seed\": {game}, \"num_moves\": {}, \"score\": {}, \"max_tile\": 8, \"depth\": 6}}",
            steps(game),
            100 + game
        );
        fs::write(folder.join(format!("game{game:03}.meta.json")), sidecar)?;
        fs::write(folder.join(format!("game{game:03}.jsonl.gz")), stored(text.as_bytes())?)?;
    }
    Ok(())
}

fn line(game: u32, step: u32) -> String {
    format!(
        "{{\"seed\":{game},\"step_index\":{step},\"max_rank\":3,\"move\":\"left\",\"valuation_type\":\"search\",\
         \"valuation\":0.{game:03}000,\"board\":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0],\
         \"branch_evs\":{{\"up\":null,\"left\":0.5{step:05},\"right\":0.250000,\"down\":-0.125000}}}}\n"
    )
}

/// Gzip with bytes as they are (RFC 1952, 1951).
fn stored(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let len = u16::try_from(text.len()).map_err(io::Error::other)?;
    out.push(1);
    out.write_all(&len.to_le_bytes())?;
    out.write_all(&(!len).to_le_bytes())?;
    out.extend(text);
    let mut sum = u32::MAX;
    for byte in text {
        sum ^= u32::from(*byte);
        (0..8).for_each(|_| sum = sum >> 1 ^ (0xEDB8_8320 & (sum & 1).wrapping_neg()));
    }
    out.extend((!sum).to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    Ok(out)
}
