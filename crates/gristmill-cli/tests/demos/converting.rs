//! Native files to shards, shards to shards, shards to arrays: what is read again is what was there.

use std::fs;

use gristmill_engine::demos::open_demos;
use gristmill_format::container::npy::{Header, ObjectHeader};
use gristmill_format::container::npz::Npz;
use gristmill_format::container::pickle::{PickleLimits, parse};
use gristmill_format::demo::form::ReadOptions;

use super::files::{imitation, names, procgen, read, shard, steps, trajectories};
use crate::command::{run, text};

#[test]
fn native_files_become_shards_of_every_packing() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("demo_coinrun.pickle");
    procgen(&from, &[4, 3]);
    let native = open_demos(&from, &ReadOptions { frame_stack: 2, ..ReadOptions::default() }).unwrap();
    for name in ["a.tar.zst", "a.tgz", "a.tar.gz", "a.tar"] {
        let to = folder.path().join(name);
        let of = ["--benchmark", "procgen", "--task", "coinrun", "--frame-stack", "2", "--json"];
        let done = run(&[&["convert", text(&from), text(&to)], &of[..]].concat()).ok().json();
        assert_eq!((&done["from"], &done["to"]), (&"demo.procgen".into(), &"shards".into()));
        assert_eq!((&done["trajectories"], &done["frames"], &done["unended"]), (&2.into(), &7.into(), &0.into()));
        let back = read(&to);
        assert_eq!(trajectories(&back), trajectories(&native), "{name}");
        let meta = back.meta().unwrap();
        assert_eq!(meta.env_cfg, r#"{"benchmark_name":"procgen","procgen_frame_stack":2,"task_name":"coinrun"}"#);
        assert_eq!(meta.observation_space.to_string(), "Box(0, 255, [6, 4, 4], u1)");
        assert_eq!((meta.action_space.to_string().as_str(), meta.color_space.as_str()), ("Discrete(15)", "RGB"));
        run(&["verify", text(&to)]).ok();
    }
    let to = folder.path().join("compat.tar");
    let of = ["--benchmark", "procgen", "--task", "coinrun", "--compat"];
    run(&[&["convert", text(&from), text(&to)], &of[..]].concat()).ok();
    let layout = read(&to).trajectories().layout().unwrap().clone();
    assert!(layout.field("truncated").is_none() && layout.field("rews").is_some());
}

#[test]
fn a_configuration_says_where_files_lie_and_loaders_find_the_shard() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("demos")).unwrap();
    procgen(&folder.path().join("demos/mine.pickle"), &[4, 3]);
    let config = folder.path().join("demos.toml");
    let groups = "[env_cfg]\nbenchmark_name = \"procgen\"\ntask_name = \"mine\"\n\
                  [env_data.procgen_demo_paths]\nmine = \"demos/*.pickle\"\n";
    fs::write(&config, groups).unwrap();
    let out = folder.path().join("root");
    let words = ["convert", text(folder.path()), text(&out), "--config", text(&config), "--json"];
    let done = run(&words).ok().json();
    let there = out.join("data/processed/demos/procgen/mine/demos.tar.zst");
    assert_eq!(done["output"][0], text(&there));
    assert_eq!(read(&there).trajectories().frames(), 7);
    let said = run(&["convert", text(&there), text(&out.join("x.tgz"))]).ok();
    assert!(said.out.contains("2 trajectories of 7 frames, from demo.shard"), "{}", said.out);
}

#[test]
fn several_files_are_as_one_and_choices_follow_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let (many, out) = (folder.path().join("many"), folder.path().join("out"));
    fs::create_dir_all(&many).unwrap();
    imitation(&many.join("2.npz"), &[4, 2, 3], 0.0);
    imitation(&many.join("10.npz"), &[5, 1], 1000.0);
    let convert = |from: &std::path::Path, name: &str, more: &[&str]| {
        let to = out.join(name);
        let done = run(&[&["convert", text(from), text(&to), "--json"], more].concat()).ok().json();
        (done, to)
    };
    let of = ["--benchmark", "gymnasium", "--task", "CartPole-v1"];
    let (done, all) = convert(&many, "all.tar", &of);
    assert_eq!((&done["trajectories"], &done["truncated"]), (&5.into(), &2.into()));
    assert_eq!(done["remarks"].as_array().unwrap().len(), 2, "{done}");
    let known: Vec<_> = ["2.npz", "10.npz"].iter().flat_map(|name| trajectories(&read(&many.join(name)))).collect();
    assert_eq!(trajectories(&read(&all)), known);
    // From one file, which stays in memory, the same bytes as from several, which do not; and packing changes nothing.
    let (_, packed) = convert(&all, "packed.tar.zst", &["--level", "3"]);
    let (_, again) = convert(&packed, "again.tar", &[]);
    assert_eq!(fs::read(&again).unwrap(), fs::read(&all).unwrap());
    // First ones, drawn ones, shuffled ones.
    let part = |name: &str, more: &[&str]| trajectories(&read(&convert(&all, name, more).1));
    assert_eq!(part("first.tar", &["--n-traj", "2"]), known[..2]);
    let two = ["--n-traj", "2", "--sample", "--seed", "797821"];
    let drawn = part("drawn.tar", &two);
    assert_eq!(drawn, part("drawn2.tar", &two));
    let places: Vec<usize> = drawn.iter().map(|one| known.iter().position(|k| k == one).unwrap()).collect();
    assert!(places.len() == 2 && places[0] < places[1] && places != [0, 1], "{places:?}");
    let shuffled = part("shuffled.tar", &["--shuffle", "--seed", "3"]);
    assert_ne!(shuffled, known);
    assert_eq!(
        trajectories(&read(&convert(&many, "shuffled2.tar", &[&of[..], &["--shuffle", "--seed", "3"]].concat()).1)),
        shuffled
    );
    let sorted = |mut all: Vec<Vec<Vec<u8>>>| {
        all.sort();
        all
    };
    assert_eq!(sorted(shuffled), sorted(known.clone()));
    let (done, _) = convert(&all, "told.tar", &["--shuffle"]);
    assert!(done["seed"].is_u64(), "a drawn seed is reported: {done}");
    // Several shards, and back.
    let (done, _) = convert(&all, "cut/demos.tar.zst", &["--max-frames", "4"]);
    assert_eq!(done["output"].as_array().unwrap().len(), 4);
    assert_eq!(names(&out.join("cut")), [0, 1, 2, 3].map(|n| format!("demos-00000{n}.tar.zst")));
    assert_eq!(part("joined.tar", &[]), known);
    assert_eq!(fs::read(convert(&out.join("cut"), "whole.tar", &[]).1).unwrap(), fs::read(&all).unwrap());
}

#[test]
fn a_trajectory_that_nothing_ended_goes_on_in_the_next_shard_and_stays_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    fs::create_dir_all(&parts).unwrap();
    let mut all = steps(&[3, 4, 2, 5, 6]);
    all.last_mut().unwrap().done = false;
    shard(&parts.join("demos-000000.tar"), &all[..5]);
    shard(&parts.join("demos-000001.tar.zst"), &all[5..]);
    let whole = folder.path().join("whole.tar");
    let done = run(&["convert", text(&parts), text(&whole), "--shuffle", "--seed", "1", "--json"]).ok().json();
    assert_eq!((&done["trajectories"], &done["unended"]), (&5.into(), &1.into()));
    let back = trajectories(&read(&whole));
    let lengths: Vec<usize> = back.iter().map(Vec::len).collect();
    assert_eq!((lengths.len(), lengths[4]), (5, 6));
    assert_ne!(lengths, [3, 4, 2, 5, 6]);
    let refused = run(&["convert", text(&parts), text(&folder.path().join("x.tar")), "--n-traj", "5"]);
    assert!(refused.code == 2 && refused.err.contains("4 trajectories have an end"), "{refused:?}");
}

#[test]
fn shards_become_arrays_that_need_no_pickle_but_infos() {
    let folder = tempfile::tempdir().unwrap();
    let from = shard(&folder.path().join("demos.tar.zst"), &steps(&[3, 2]));
    for level in ["0", "6"] {
        let to = folder.path().join(format!("demos{level}.npz"));
        let done = run(&["convert", text(&from), text(&to), "--level", level, "--json"]).ok().json();
        assert_eq!((&done["to"], &done["frames"]), (&"npz".into(), &5.into()));
        let bytes = fs::read(&to).unwrap();
        let (npz, mut file) = (Npz::open(&bytes).unwrap(), Vec::new());
        let mut there = npz.names().to_vec();
        there.sort();
        assert_eq!(there, ["acts", "dones", "infos", "next_obs", "obs", "rews"]);
        let demos = read(&from);
        for (name, shape) in [("obs", &[5, 3, 6, 6][..]), ("acts", &[5]), ("dones", &[5]), ("rews", &[5])] {
            npz.read(name, 1 << 20, &mut file).unwrap();
            let header = Header::read(&file[..]).unwrap();
            assert_eq!(header.shape(), shape, "{name}");
            let all = demos.trajectories();
            let column: Vec<u8> = (0..5).flat_map(|t| all.field(t, name).unwrap().to_vec()).collect();
            assert_eq!(file[header.data_offset() as usize..], column, "{name}");
        }
        npz.read("infos", 1 << 20, &mut file).unwrap();
        let start = ObjectHeader::parse(&file).unwrap().unwrap().data_offset as usize;
        let pickle = parse(&file[start..], &PickleLimits::default()).unwrap();
        assert_eq!(pickle.array(pickle.root()).unwrap().shape, [5]);
    }
    assert_eq!(names(folder.path()), ["demos.tar.zst", "demos0.npz", "demos6.npz"]);
    // And back: the same frames in the same bytes, under metadata that is said again.
    let (back, npz) = (folder.path().join("back.tar"), folder.path().join("demos6.npz"));
    run(&["verify", text(&npz)]).ok();
    let of = ["--benchmark", "procgen", "--task", "coinrun", "--n-actions", "6"];
    let done = run(&[&["convert", text(&npz), text(&back), "--json"], &of[..]].concat()).ok().json();
    assert_eq!((&done["from"], &done["trajectories"]), (&"demo.dictionary".into(), &2.into()));
    let (one, two) = (read(&from), read(&back));
    assert_eq!(trajectories(&two), trajectories(&one));
    let infos = |file: &gristmill_format::demo::form::DemoFile| file.trajectories().extras()["infos"].clone();
    assert_eq!((infos(&two), &two.meta().unwrap().action_space), (infos(&one), &one.meta().unwrap().action_space));
}
