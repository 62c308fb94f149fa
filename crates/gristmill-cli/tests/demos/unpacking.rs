//! Packs of trajectories back to shards, arrays and sides: what was packed comes out to the bit.

use std::fs;
use std::path::Path;

use gristmill_engine::demos::{DemosOptions, open, open_demos};
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::value::Extra;

use crate::command::{run, text};
use crate::demos::files::{imitation, names, read, shard, steps, trajectories};

/// Makes the pack `to` of what lies in `from`.
fn pack(from: &Path, to: &Path) {
    run(&["pack", "--input", text(from), "--output", text(to), "--shard-rows", "8"]).ok();
}

fn infos(file: &DemoFile) -> Vec<(usize, Extra)> {
    file.trajectories().extras().get("infos").cloned().unwrap_or_default()
}

#[test]
fn packs_become_the_shards_and_arrays_that_they_were_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let [demos, packed, back] = ["demos", "pack", "back"].map(|name| folder.path().join(name));
    fs::create_dir(&demos).unwrap();
    let all = steps(&[5, 7, 2, 6]);
    shard(&demos.join("demos-0.tar.zst"), &all[..8]);
    shard(&demos.join("demos-1.tar"), &all[8..]);
    pack(&demos, &packed);
    for name in ["a.tar", "a.tar.zst", "a.tgz"] {
        let to = back.join(name);
        let done = run(&["convert", text(&packed), text(&to), "--json"]).ok().json();
        assert_eq!(
            (&done["from"], &done["trajectories"], &done["frames"]),
            (&"demo.chunks".into(), &4.into(), &20.into())
        );
        let (one, two) = (read(&demos), read(&to));
        assert_eq!(trajectories(&two), trajectories(&one), "{name}");
        assert_eq!((infos(&two), &two.meta().unwrap().pickle), (infos(&one), &one.meta().unwrap().pickle));
        run(&["verify", text(&to)]).ok();
    }
    // The same bytes as from the shards themselves; and a pack of those gives them again.
    let [from_shards, arrays, direct] = ["b.tar", "a.npz", "b.npz"].map(|name| back.join(name));
    run(&["convert", text(&demos), text(&from_shards)]).ok();
    assert!(fs::read(&from_shards).unwrap() == fs::read(back.join("a.tar")).unwrap());
    let [again, once_more] = ["again", "c.tar"].map(|name| folder.path().join(name));
    pack(&from_shards, &again);
    run(&["convert", text(&again), text(&once_more)]).ok();
    assert!(fs::read(&once_more).unwrap() == fs::read(&from_shards).unwrap());
    run(&["convert", text(&packed), text(&arrays)]).ok();
    run(&["convert", text(&demos), text(&direct)]).ok();
    assert!(fs::read(&arrays).unwrap() == fs::read(&direct).unwrap());
    // Choices are those of shards, and a folder of data sets gets the shard where loaders look for it.
    let root = back.join("root");
    run(&["convert", text(&packed), text(&root), "--n-traj", "2", "--shuffle", "--seed", "3"]).ok();
    let there = root.join("data/processed/demos/procgen/coinrun/demos.tar.zst");
    assert_eq!(read(&there).trajectories().ends().len(), 2);
    let refused = run(&["convert", text(&packed), text(&back.join("c.tar")), "--task", "coinrun"]);
    assert!(refused.code == 2 && refused.err.contains("say themselves what they are of"), "{refused:?}");
}

#[test]
fn packs_of_native_files_become_shards_once_it_is_said_what_they_are_of() {
    let folder = tempfile::tempdir().unwrap();
    let [demos, packed] = ["demos", "pack"].map(|name| folder.path().join(name));
    fs::create_dir(&demos).unwrap();
    imitation(&demos.join("i.npz"), &[4, 2, 3], 0.0);
    pack(&demos, &packed);
    let [one, two] = ["one.tar", "two.tar"].map(|name| folder.path().join(name));
    let refused = run(&["convert", text(&packed), text(&two)]);
    assert!(refused.code == 2 && refused.err.contains("name the benchmark and the task"), "{refused:?}");
    for (from, to) in [(&demos, &one), (&packed, &two)] {
        run(&["convert", text(from), text(to), "--benchmark", "gymnasium", "--task", "CartPole-v1"]).ok();
    }
    assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap());
}

#[test]
fn each_trajectory_of_a_pack_goes_to_one_side_and_copies_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [demos, packed, sides] = ["demos", "pack", "sides"].map(|name| folder.path().join(name));
    fs::create_dir(&demos).unwrap();
    let all = steps(&[5, 3, 2, 6, 4, 2, 3, 5]);
    shard(&demos.join("demos.tar"), &[&all[..], &all[..5]].concat());
    pack(&demos, &packed);
    let words = ["split", text(&packed), text(&sides), "--into", "train:3,val:1", "--json"];
    let done = run(&words).ok().json();
    assert_eq!((&done["trajectories"], &done["frames"]), (&9.into(), &35.into()), "{done}");
    let of = |side: &str| trajectories(&read(&sides.join(side)));
    let (train, val) = (of("train"), of("val"));
    assert!(train.iter().all(|one| !val.contains(one)), "a copy is on the side of the first");
    let mut both = [train, val].concat();
    both.sort();
    let mut known = trajectories(&read(&demos));
    known.sort();
    assert_eq!(both, known);
}

#[test]
fn an_end_that_nothing_marks_is_refused_before_it_runs_into_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let [demos, packed, to] = ["demos", "pack", "a.tar"].map(|name| folder.path().join(name));
    for (name, lengths) in [("a", &[3, 4][..]), ("b", &[2])] {
        fs::create_dir_all(demos.join(name)).unwrap();
        let mut all = steps(lengths);
        all.last_mut().unwrap().done = name == "b";
        shard(&demos.join(name).join("demos.tar"), &all);
    }
    pack(&demos, &packed);
    let refused = run(&["convert", text(&packed), text(&to)]);
    assert!(refused.code == 2 && refused.err.contains("trajectory 1 of"), "{refused:?}");
    assert!(refused.err.contains("--n-traj 2") && !to.exists(), "{refused:?}");
    run(&["convert", text(&packed), text(&to), "--n-traj", "2"]).ok();
    assert_eq!(read(&to).trajectories().frames(), 5);
}

#[test]
fn a_pack_has_the_face_of_other_demonstrations_and_can_be_written_into_columns() {
    let folder = tempfile::tempdir().unwrap();
    let [demos, packed, columns] = ["demos", "pack", "columns"].map(|name| folder.path().join(name));
    fs::create_dir(&demos).unwrap();
    shard(&demos.join("demos.tar.zst"), &steps(&[5, 7, 2]));
    pack(&demos, &packed);
    let known = open_demos(&demos, &ReadOptions::default()).unwrap();
    let all = known.trajectories();
    let size = all.layout().unwrap().size();
    let mut records = vec![0; 14 * size];
    all.copy_records(0..14, &mut records).unwrap();
    let spill = DemosOptions { spill: Some(columns.clone()), ..DemosOptions::default() };
    for options in [DemosOptions::default(), spill.clone(), spill] {
        let face = open(&packed, &options, &mut || true).unwrap();
        assert_eq!((face.ends(), face.frames(), face.layout()), (all.ends(), 14, all.layout()));
        assert_eq!(face.meta().unwrap().pickle, known.meta().unwrap().pickle);
        let mut found = vec![0; 9 * size];
        face.records(3..12, &mut found).unwrap();
        assert!(found == records[3 * size..12 * size]);
        let mut acts = vec![0; 14 * 8];
        face.columns_into(&mut [("acts", &mut acts)]).unwrap();
        let act: Vec<u8> = (0..14).flat_map(|t| all.field(t, "acts").unwrap().to_vec()).collect();
        assert_eq!(acts, act);
        for (name, found) in face.extras(4..13).unwrap() {
            let known = all.extras()[&name].iter().filter(|(t, _)| (4..13).contains(t));
            assert_eq!(found, known.map(|(t, one)| (t - 4, one.clone())).collect::<Vec<_>>(), "{name}");
        }
        assert_eq!(face.extras(0..1).unwrap().len(), all.extras().len());
    }
    assert_eq!(names(&columns).len(), 1);
    let one = open(&packed.join("games-00000.chunks"), &DemosOptions::default(), &mut || true);
    assert!(one.unwrap_err().to_string().contains("name its folder"));
}
