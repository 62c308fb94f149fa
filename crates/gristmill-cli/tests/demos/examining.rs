//! `doctor` over demonstrations: pictures, ends, fields and scales that are wrong, each made on purpose.

use std::fs;
use std::path::Path;

use super::files::{Step, imitation, meta, shard, steps};
use crate::command::{run, text};
use crate::doctor::{findings, healthy, names};

fn changed(lengths: &[usize], change: impl Fn(usize, &mut Step)) -> Vec<Step> {
    let mut all = steps(lengths);
    all.iter_mut().enumerate().for_each(|(i, step)| change(i, step));
    all
}

fn of(folder: &Path, steps: &[Step]) -> Vec<String> {
    let path = shard(&folder.join("one.tar.zst"), steps);
    names(&path)
}

#[test]
fn sound_trajectories_are_healthy() {
    let folder = tempfile::tempdir().unwrap();
    shard(&folder.path().join("a.tar.zst"), &steps(&[12, 9]));
    shard(&folder.path().join("b.tar.zst"), &changed(&[14], |_, step| step.rew += 7.0));
    let found = healthy(folder.path());
    assert_eq!((found["chunks"].as_u64(), found["frames"].as_u64()), (Some(3), Some(35)));
    assert_eq!(found["games"]["different"], 3);
    assert!(found["sizes"]["packed"].as_u64().unwrap() > 0);
    let pack = folder.path().join("pack");
    run(&["pack", text(&folder.path().join("a.tar.zst")), text(&pack)]).ok();
    let packed = healthy(&pack);
    assert_eq!((packed["frames"].as_u64(), packed["formats"]["demo.chunks"].as_u64()), (Some(21), Some(1)));
}

#[test]
fn pictures_that_show_nothing_or_never_change_are_signs() {
    let folder = tempfile::tempdir().unwrap();
    let black = changed(&[12], |_, step| (step.obs, step.next_obs) = (0, 0));
    assert_eq!(of(folder.path(), &black), ["black"]);
    let frozen = changed(&[12], |_, step| (step.obs, step.next_obs) = (9, 9));
    assert_eq!(of(folder.path(), &frozen), ["frozen_frames"]);
    let short = changed(&[3], |_, step| (step.obs, step.next_obs) = (9, 9));
    healthy(&shard(&folder.path().join("short.tar"), &short));
    let stuck = changed(&[35, 35], |_, step| (step.act, step.rew) = (3, 0.0));
    let path = shard(&folder.path().join("stuck.tar"), &stuck);
    let found = findings(&[text(&path)]);
    let first = found["frozen_values"]["first"].as_array().unwrap();
    let details: Vec<&str> = first.iter().map(|one| one["detail"].as_str().unwrap()).collect();
    assert_eq!(details, ["`acts` is 3 in all 70 frames that have it", "`rews` is 0 in all 70 frames that have it"]);
    healthy(&shard(&folder.path().join("lasting.tar"), &changed(&[35, 35], |_, step| step.rew = 1.0)));
}

#[test]
fn ends_order_actions_and_fields_have_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let endless = changed(&[12], |_, step| step.done = false);
    assert_eq!(of(folder.path(), &endless), ["no_end"]);
    let torn = changed(&[12], |i, step| step.next_obs += u8::from(i == 4));
    let found = findings(&[text(&shard(&folder.path().join("torn.tar"), &torn))]);
    assert_eq!(found["order"]["of"]["next_obs"], 1);
    assert_eq!(found["order"]["first"][0]["frame"], 4);
    assert_eq!(of(folder.path(), &changed(&[12], |i, step| step.act += 90 * i64::from(i == 2))), ["illegal_move"]);
    let odd = folder.path().join("odd.npz");
    imitation(&odd, &[9, 8], f32::NAN);
    assert_eq!(findings(&[text(&odd)])["numbers"]["of"]["finite"], 2);
    let file = folder.path().join("lacking.tar");
    let mut tar = gristmill_format::demo::shard::ShardWriter::new(
        Vec::new(),
        &meta(),
        gristmill_format::demo::shard::Members::Pickle,
    )
    .unwrap();
    let mut number = gristmill_format::container::pickle::PickleWriter::new(1 << 10);
    number.numpy_scalar(gristmill_format::layout::Scalar::I64, &1i64.to_le_bytes()).unwrap();
    tar.frame(&[("acts".to_owned(), number.finish())]).unwrap();
    fs::write(&file, tar.finish().unwrap()).unwrap();
    assert!(names(&file).contains(&"spaces".to_owned()));
}

#[test]
fn files_that_drift_and_trajectories_that_repeat_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("fields")).unwrap();
    shard(&at("fields").join("a.tar"), &steps(&[9]));
    shard(&at("fields").join("b.tar"), &changed(&[10], |_, step| (step.truncated, step.obs) = (Some(false), step.obs)));
    let found = findings(&[text(&at("fields"))]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["drift_fields"]);
    assert!(found["drift_fields"]["first"][0]["file"].as_str().unwrap().ends_with("b.tar"));
    fs::create_dir(at("scales")).unwrap();
    imitation(&at("scales").join("a.npz"), &[9, 8], 0.0);
    imitation(&at("scales").join("b.npz"), &[9, 7], 100_000.0);
    let found = findings(&[text(&at("scales"))]);
    assert!(found["drift_scale"]["first"][0]["detail"].as_str().unwrap().contains("`obs` reaches"), "{found:?}");
    fs::create_dir(at("twice")).unwrap();
    shard(&at("twice").join("a.tar"), &steps(&[9, 11]));
    shard(&at("twice").join("b.tar.zst"), &steps(&[9]));
    let found = findings(&[text(&at("twice"))]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["duplicates"]);
    assert!(found["duplicates"]["first"][0]["detail"].as_str().unwrap().contains("chunk 0 of"));
}
