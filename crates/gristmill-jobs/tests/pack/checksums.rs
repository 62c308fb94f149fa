//! The checksums beside rows: what the files say, what `checksum` and `verify` make of them.

use std::fs;
use std::path::Path;

use gristmill_format::g2048::RowForm;
use gristmill_jobs::checksum::{ChecksumOptions, checksum};
use gristmill_jobs::pack::{Existing, PackOptions};
use gristmill_jobs::verify::{Verification, VerifyOptions, verify};
use xxhash_rust::xxh3::xxh3_64;

use crate::drops::*;

fn verified(pack: &Path) -> Verification {
    // The steps of these games contradict one another, so `verify` lists a fault for each; faults of checksums follow them.
    let options = VerifyOptions { max_faults: 100_000, ..VerifyOptions::new(vec![pack.to_owned()]) };
    verify(&options, &mut |_, _| {}).unwrap()
}

/// Byte by byte what `docs/format/pack.md` says.
#[test]
fn the_file_beside_is_what_the_page_says() {
    let (drop, out) = (drop_of(0), tempfile::tempdir().unwrap());
    game(drop.path(), "long", &text(1000));
    for (layout, shard_rows, bytes) in [(RowForm::Aligned, None, 48), (RowForm::Packed, Some(600), 46)] {
        let target = out.path().join(bytes.to_string());
        packed(&PackOptions { layout: Some(layout), shard_rows, ..options(drop.path(), &target) });
        for (name, file) in files(&target).into_iter().filter(|(name, _)| name.ends_with(".npy")) {
            let (header, rows) = file.split_at(384);
            let numbers = [(rows.len() / bytes) as u64, 384, xxh3_64(header)];
            let blocks = rows.chunks(256 * bytes).map(xxh3_64);
            let words = numbers.into_iter().chain(blocks).flat_map(u64::to_le_bytes);
            let head = [&b"GMXXH301"[..], &256u32.to_le_bytes(), &(bytes as u32).to_le_bytes()].concat();
            let expected: Vec<u8> = head.into_iter().chain(words).collect();
            assert!(fs::read(target.join(format!("{name}.xxh3"))).unwrap() == expected, "{name}");
        }
        let found = verified(&target);
        assert_eq!(found.checks["checksum"], 0, "{found:?}");
    }
}

#[test]
fn appending_keeps_them_true_and_verify_tells_damaged_blocks() {
    let (drop, out) = (drop_of(3), tempfile::tempdir().unwrap());
    game(drop.path(), "long", &text(1000));
    let target = out.path().join("pack");
    packed(&PackOptions { shard_rows: Some(700), ..options(drop.path(), &target) });
    game(drop.path(), "more", &text(900));
    packed(&PackOptions { existing: Existing::Append, ..options(drop.path(), &target) });
    let before = files(&target);
    assert_eq!(verified(&target).checks["checksum"], 0);
    for (name, _) in before.iter().filter(|(name, _)| name.ends_with(".xxh3")) {
        fs::remove_file(target.join(name)).unwrap();
    }
    let made =
        checksum(&ChecksumOptions { pack: target.clone(), overwrite: false, dry_run: false }, &mut |_, _| Ok(()))
            .unwrap();
    assert!(made.known && made.made.len() == 3, "{made:?}");
    assert!(files(&target) == before, "made once for a pack that has none, they are the same");

    let path = target.join("steps-00001.npy");
    let mut damaged = fs::read(&path).unwrap();
    for row in [3, 300, 301] {
        damaged[384 + 48 * row + 29] ^= 1;
    }
    fs::write(&path, damaged).unwrap();
    let found = verified(&target);
    assert_eq!(found.checks["checksum"], 2, "{found:?}");
    let told: Vec<_> = found.faults.iter().filter(|fault| fault.rule == Some("checksum")).collect();
    assert!(told[0].detail.contains("rows 0 to 255") && told[1].detail.contains("rows 256 to 511"), "{told:?}");
    assert!(
        checksum(&ChecksumOptions { pack: target.clone(), overwrite: true, dry_run: false }, &mut |_, _| Ok(()))
            .unwrap_err()
            .to_string()
            .contains("damaged")
    );
}
