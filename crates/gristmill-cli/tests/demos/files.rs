//! Files of demonstrations, made here: shards frame by frame, a Procgen pickle, an `.npz` of imitation. And how they read.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::demos::open_demos;
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::container::pickle::PickleWriter;
use gristmill_format::container::zstd;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::pickled::{json_pickle, made_with};
use gristmill_format::demo::shard::{Members, ShardWriter, metadata};
use gristmill_format::demo::space::Space;
use gristmill_format::layout::{DType, Order, Scalar};

/// Sides of a picture.
const SIDE: usize = 6;

/// A step, as it is to be written.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) obs: u8,
    pub(crate) next_obs: u8,
    pub(crate) act: i64,
    pub(crate) done: bool,
    pub(crate) truncated: Option<bool>,
    pub(crate) rew: f64,
}

/// Steps of trajectories of these lengths: each observation has a number of its own.
pub(crate) fn steps(lengths: &[usize]) -> Vec<Step> {
    let mut all = Vec::new();
    for (i, length) in lengths.iter().enumerate() {
        for t in 0..*length {
            let obs = (i * 40 + t) as u8;
            let (done, rew) = (t + 1 == *length, i as f64 + 0.5);
            let act = ((i + t) % 5) as i64;
            all.push(Step { obs, next_obs: obs + 1, act, done, truncated: None, rew });
        }
    }
    all
}

fn pickled(write: impl FnOnce(&mut PickleWriter) -> gristmill_format::Result<()>) -> Vec<u8> {
    let mut writer = PickleWriter::new(1 << 24);
    write(&mut writer).unwrap();
    writer.finish()
}

fn space(space: &Space) -> (&'static str, Vec<u8>) {
    made_with(space).unwrap()
}

/// Metadata of six actions and pictures of three channels.
pub(crate) fn meta() -> Vec<u8> {
    let cfg = serde_json::json!({"benchmark_name": "procgen", "task_name": "coinrun"});
    let n = 3 * SIDE * SIDE;
    let (low, high) = (vec![0.0; n], vec![255.0; n]);
    let obs = space(&Space::Box { dtype: Scalar::U8, shape: vec![3, SIDE, SIDE], low, high });
    let act = space(&Space::Discrete { n: 6, start: 0 });
    metadata(&json_pickle(&cfg).unwrap(), (act.0, &act.1), (obs.0, &obs.1), "RGB").unwrap()
}

/// A shard of these steps at `path`; packed where its name says so.
pub(crate) fn shard(path: &Path, steps: &[Step]) -> PathBuf {
    let picture = |value: u8| pickled(|to| to.array(Scalar::U8, &[3, SIDE, SIDE], &[value; 3 * SIDE * SIDE]));
    let mut tar = ShardWriter::new(Vec::new(), &meta(), Members::Pickle).unwrap();
    for (t, step) in steps.iter().enumerate() {
        let flag = |value: bool| pickled(|to| to.numpy_scalar(Scalar::Bool, &[u8::from(value)]));
        let mut fields = vec![
            ("obs".to_owned(), picture(step.obs)),
            ("next_obs".to_owned(), picture(step.next_obs)),
            ("acts".to_owned(), pickled(|to| to.numpy_scalar(Scalar::I64, &step.act.to_le_bytes()))),
            ("dones".to_owned(), flag(step.done)),
            ("rews".to_owned(), pickled(|to| to.numpy_scalar(Scalar::F64, &step.rew.to_le_bytes()))),
            ("infos".to_owned(), json_pickle(&serde_json::json!({"t": t, "name": "größe"})).unwrap()),
        ];
        fields.extend(step.truncated.map(|value| ("truncated".to_owned(), flag(value))));
        tar.frame(&fields).unwrap();
    }
    let tar = tar.finish().unwrap();
    let bytes = if path.extension().is_some_and(|e| e == "zst") { zstd::compress(1, &tar).unwrap() } else { tar };
    fs::write(path, bytes).unwrap();
    path.to_owned()
}

/// Pickled Procgen demonstrations of these lengths.
pub(crate) fn procgen(path: &Path, lengths: &[usize]) {
    let column = |to: &mut PickleWriter, name: &str, scalar: Scalar, shape: &[usize], more: usize| {
        to.text(name)?;
        to.begin_list();
        for (i, length) in lengths.iter().enumerate() {
            let n = length + more;
            let shape: Vec<usize> = std::iter::once(n).chain(shape.iter().copied()).collect();
            let count: usize = shape.iter().product();
            let bytes: Vec<u8> = (0..count * scalar.size())
                .map(|at| match scalar {
                    // The last `dones` alone is true, actions and rewards are small.
                    Scalar::Bool => u8::from(at + 1 == count),
                    Scalar::U8 => ((at / 48) * 7 + i * 50) as u8,
                    _ if at % 8 == 0 => ((at / 8 + i) % 15) as u8,
                    _ => 0,
                })
                .collect();
            to.array(scalar, &shape, &bytes)?;
        }
        to.end_list();
        Ok::<(), gristmill_format::Error>(())
    };
    let bytes = pickled(|to| {
        to.dict();
        to.mark();
        column(to, "obs", Scalar::U8, &[4, 4, 3], 1)?;
        column(to, "acts", Scalar::I64, &[], 0)?;
        column(to, "rews", Scalar::F64, &[], 0)?;
        column(to, "dones", Scalar::Bool, &[], 0)?;
        to.set_items();
        Ok(())
    });
    fs::write(path, bytes).unwrap();
}

/// An `.npz` of imitation's trajectories: lengths, and whether the last is over.
pub(crate) fn imitation(path: &Path, lengths: &[usize], first: f32) {
    let total: usize = lengths.iter().sum();
    let mut npz = NpzWriter::new(Vec::new(), 6);
    let mut array = |name: &str, scalar: Scalar, shape: &[u64], bytes: &[u8]| {
        let dtype = DType::Scalar(scalar, Order::Little);
        npz.array(name, &dtype, shape, &mut |to| Ok(to.write_all(bytes)?)).unwrap();
    };
    let obs: Vec<u8> = (0..(total + lengths.len()) * 4).flat_map(|n| (first + n as f32).to_le_bytes()).collect();
    array("obs", Scalar::F32, &[(total + lengths.len()) as u64, 4], &obs);
    let acts: Vec<u8> = (0..total as i64).flat_map(|n| (n % 2).to_le_bytes()).collect();
    array("acts", Scalar::I64, &[total as u64], &acts);
    let mut ends: Vec<i64> = lengths
        .iter()
        .scan(0, |sum, n| {
            Some({
                *sum += *n as i64;
                *sum
            })
        })
        .collect();
    ends.pop();
    let indices: Vec<u8> = ends.iter().flat_map(|n| n.to_le_bytes()).collect();
    array("indices", Scalar::I64, &[ends.len() as u64], &indices);
    let mut terminal = vec![1; lengths.len()];
    terminal[lengths.len() - 1] = 0;
    array("terminal", Scalar::Bool, &[lengths.len() as u64], &terminal);
    fs::write(path, npz.finish().unwrap()).unwrap();
}

/// What a file or folder holds, read as it is.
pub(crate) fn read(path: &Path) -> DemoFile {
    open_demos(path, &ReadOptions::default()).unwrap()
}

/// Trajectories as the bytes of their fields, in order of name and without the numbers of frames.
pub(crate) fn trajectories(file: &DemoFile) -> Vec<Vec<Vec<u8>>> {
    let all = file.trajectories();
    let layout = all.layout().unwrap();
    let mut names: Vec<&str> =
        layout.fields().iter().map(|f| f.name.as_str()).filter(|name| *name != "frame").collect();
    names.sort_unstable();
    let frame = |at: usize| names.iter().flat_map(|name| all.field(at, name).unwrap().to_vec()).collect();
    (0..all.ends().len()).map(|i| all.span(i).unwrap().map(frame).collect()).collect()
}

/// Names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
