//! A text -> every text with a byte changed, cut off after a byte, or with a hole.

/// Calls `try_it` with each, and with where that is.
pub(crate) fn every_damage(text: &[u8], holes: &[usize], try_it: &mut dyn FnMut(&str, &[u8])) {
    for at in 0..text.len() {
        for byte in [text[at] ^ 1, b'7', b' ', b'"', b'\n'].into_iter().filter(|byte| *byte != text[at]) {
            let mut damaged = text.to_vec();
            damaged[at] = byte;
            try_it(&format!("byte {at} is {byte}"), &damaged);
        }
        for hole in holes.iter().filter(|hole| at + **hole < text.len()) {
            let damaged = [&text[..at], &text[at + hole..]].concat();
            // What remains may be a beginning, which is a cut.
            if !text.starts_with(&damaged) {
                try_it(&format!("hole of {hole} at {at}"), &damaged);
            }
        }
    }
}
