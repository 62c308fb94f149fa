//! A conversion that is killed leaves nothing under the name of its output; the same command then writes it.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::layout::{DType, Order, Scalar};

use super::files::names;
use crate::command::{gristmill, run, text};

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_killed_conversion_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let (from, out) = (folder.path().join("i.npz"), folder.path().join("out"));
    // What cannot be compressed, so that it takes a while: 8 MiB of a simple generator.
    let (frames, size) = (64u64, 1u64 << 14);
    let mut state = 1u64;
    let noise: Vec<u8> = (0..(frames + 1) * size)
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_le_bytes()
        })
        .collect();
    let mut npz = NpzWriter::new(Vec::new(), 0);
    let mut array = |name: &str, scalar: Scalar, shape: &[u64], bytes: &[u8]| {
        let dtype = DType::Scalar(scalar, Order::Little);
        npz.array(name, &dtype, shape, &mut |to| Ok(to.write_all(bytes)?)).unwrap();
    };
    array("obs", Scalar::U64, &[frames + 1, size], &noise);
    array("acts", Scalar::I64, &[frames], &vec![0; 8 * frames as usize]);
    array("indices", Scalar::I64, &[0], &[]);
    array("terminal", Scalar::Bool, &[1], &[1]);
    fs::write(&from, npz.finish().unwrap()).unwrap();
    for (name, level) in [("demos.tar.zst", "22"), ("demos.npz", "9")] {
        let to = out.join(name);
        let words = ["convert", text(&from), text(&to), "--benchmark", "gymnasium", "--task", "x", "--level", level];
        let mut child = gristmill(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        // Something hidden is there as soon as writing begins.
        while !out.is_dir() || !names(&out).iter().any(|name| name.starts_with('.')) {
            assert!(start.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "it never began to write");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!to.exists(), "{name} was whole before it could be killed");
        run(&words).ok();
        let whole = fs::read(&to).unwrap();
        assert!(!names(&out).iter().any(|name| name.starts_with('.')), "{:?}", names(&out));
        run(&[&words[..], &["--overwrite"]].concat()).ok();
        assert_eq!(fs::read(&to).unwrap(), whole);
    }
}
