//! A conversion that is killed leaves nothing under the name of its output; the same command then writes it, and
//! packing resumes.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::layout::{DType, Order, Scalar};

use super::files::names;
use crate::command::{gristmill, run, text};

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// An `.npz` of imitation's trajectories of `length` steps: `frames` in all, of `size` numbers of a simple generator each.
fn noise(path: &Path, frames: u64, size: u64, length: u64) {
    let many = frames / length;
    let mut state = 1u64;
    let noise: Vec<u8> = (0..(frames + many) * size)
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
    array("obs", Scalar::U64, &[frames + many, size], &noise);
    array("acts", Scalar::I64, &[frames], &vec![0; 8 * frames as usize]);
    let indices: Vec<u8> = (1..many).flat_map(|i| (i * length).to_le_bytes()).collect();
    array("indices", Scalar::I64, &[many - 1], &indices);
    array("terminal", Scalar::Bool, &[many], &vec![1; many as usize]);
    fs::write(path, npz.finish().unwrap()).unwrap();
}

#[test]
fn a_killed_conversion_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let (from, out) = (folder.path().join("i.npz"), folder.path().join("out"));
    // What cannot be compressed, so that it takes a while: 8 MiB.
    noise(&from, 64, 1 << 14, 64);
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

#[test]
fn packing_that_is_killed_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [demos, pack, whole] = ["demos", "pack", "whole"].map(|name| folder.path().join(name));
    fs::create_dir(&demos).unwrap();
    // 24 MiB that cannot be compressed, in trajectories of four steps.
    noise(&demos.join("i.npz"), 96, 1 << 15, 4);
    let base = ["pack", "--input", text(&demos), "--threads", "1", "--shard-rows", "4", "--output"];
    run(&[&base[..], &[text(&whole)]].concat()).ok();
    let staged = || {
        let hidden = names(&pack).into_iter().filter(|name| name.starts_with('.'));
        let within = hidden.filter(|name| pack.join(name).is_dir()).flat_map(|name| names(&pack.join(name)));
        within.filter(|name| name.ends_with(".chunks")).count()
    };
    for (kill, until) in [3, 6, 10].into_iter().enumerate() {
        let more = if kill == 0 { vec![text(&pack)] } else { vec![text(&pack), "--resume"] };
        let words = [&base[..], &more].concat();
        let mut child = gristmill(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while !pack.is_dir() || staged() < until {
            assert!(start.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "it never came so far");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!pack.join("manifest.json").exists(), "it was whole before it could be killed");
    }
    let done = run(&[&base[..], &[text(&pack), "--resume", "--json"]].concat()).ok().json();
    assert!(done["resumed"].as_u64().unwrap() >= 9, "{done}");
    assert_eq!(names(&pack), names(&whole));
    for name in names(&whole).iter().filter(|name| *name != "metadata.db") {
        assert!(fs::read(pack.join(name)).unwrap() == fs::read(whole.join(name)).unwrap(), "{name}");
    }
    run(&["verify", text(&pack)]).ok();
}
