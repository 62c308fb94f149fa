//! Native demonstrations: real files where the folder of data is at hand, and pickles of our own for what they do not show.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::PathBuf;

use gristmill_bytes::Kind;
use gristmill_bytes::container::gzip::Inflater;
use gristmill_bytes::container::npz_write::NpzWriter;
use gristmill_bytes::container::pickle::{PickleLimits, parse};
use gristmill_bytes::layout::{DType, Order, Scalar};
use gristmill_demo::frames::Frames;
use gristmill_demo::native::{Magical, Semantics, imitation, imitation_npz, magical, minecraft, procgen};
use gristmill_demo::trajectory::{End, Trajectories};

const MAX: usize = 1 << 30;

#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn shared(name: &str) -> Option<Vec<u8>> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from);
    let read = std::fs::read(shared.join("data/demos").join(name));
    if read.is_err() {
        eprintln!("skipped: there is no {name} under {}; set GRISTMILL_SHARED", shared.display());
    }
    read.ok()
}

fn flags(all: &Trajectories, field: &str) -> Vec<bool> {
    (0..all.frames()).map(|i| all.field(i, field).unwrap() != [0]).collect()
}

#[test]
fn rollouts_of_the_imitation_library() {
    let Some(pickled) = shared("imit_cartpole_final.pkl") else { return };
    let all = imitation(&pickled, Semantics::Strict, MAX).unwrap();
    assert_eq!(all.ends().len(), 56);
    let npz = shared("imit_cartpole_final.npz").unwrap();
    let all = imitation_npz(&npz, Semantics::Strict, MAX).unwrap();
    assert_eq!((all.ends().len(), all.frames()), (57, 26964));
    assert_eq!(all.layout().unwrap().field("obs").unwrap().shape, [4]);
    for i in 0..all.ends().len() {
        let span = all.span(i).unwrap();
        for t in span.start..span.end - 1 {
            assert_eq!(all.field(t, "next_obs"), all.field(t + 1, "obs"));
        }
    }
    assert_eq!(flags(&all, "dones").iter().filter(|done| **done).count(), 57);
    for cut in [npz.len() / 2, npz.len() - 1] {
        assert!(imitation_npz(&npz[..cut], Semantics::Strict, MAX).is_err());
    }
}

#[test]
fn a_real_demonstration_of_magical() {
    let Some(packed) = shared("magical-MoveToRegion.pkl.gz") else { return };
    let mut bytes = Vec::new();
    Inflater::default().inflate(&packed, MAX, &mut bytes).unwrap();
    let (all, about) = magical(&bytes, Magical::LoResChw4E, false, Semantics::Strict, MAX).unwrap();
    assert_eq!((all.frames(), about.env_name.starts_with("MoveToRegion-")), (40, true));
    assert_eq!(all.layout().unwrap().field("obs").unwrap().shape, [12, 96, 96]);
    // The mean of each square of 4 x 4 of the raw picture, halves to even, from the pickle itself.
    let pickle = parse(&bytes, &PickleLimits::default()).unwrap();
    let (raw, _) = magical(&bytes, Magical::Raw, false, Semantics::Strict, MAX).unwrap();
    assert!(pickle.len() > 100 && raw.frames() == 40);
    for t in [0, 7, 39] {
        let stack = all.field(t, "obs").unwrap();
        for (k, from) in (t as i64 - 3..=t as i64).enumerate() {
            let picture = raw.field(from.max(0) as usize, "obs.ego").unwrap();
            for (c, y, x) in [(0, 0, 0), (1, 50, 31), (2, 95, 95), (0, 20, 77)] {
                let sum: u32 =
                    (0..16).map(|i| u32::from(picture[((4 * y + i / 4) * 384 + 4 * x + i % 4) * 3 + c])).sum();
                let even = (f64::from(sum) / 16.0).round_ties_even() as u8;
                assert_eq!(stack[((k * 3 + c) * 96 + y) * 96 + x], even, "step {t}, frame {k}, channel {c}, {y}, {x}");
            }
        }
    }
    for t in 0..39 {
        assert_eq!(all.field(t, "next_obs"), all.field(t + 1, "obs"));
    }
    let done = |all: &Trajectories| flags(all, "dones").iter().filter(|done| **done).count();
    assert_eq!((done(&all), all.ends().len()), (1, 1));

    // The last action of real files is 0: leaving it out loses the end, unless it moves to the step before.
    let (kept, _) = magical(&bytes, Magical::LoResChw4E, true, Semantics::Strict, MAX).unwrap();
    let (lost, _) = magical(&bytes, Magical::LoResChw4E, true, Semantics::Compat, MAX).unwrap();
    assert_eq!((done(&kept), done(&lost)), (1, 0));
    assert!(kept.frames() == lost.frames() && kept.frames() < 40);
    assert!(lost.layout().unwrap().field("truncated").is_none());
}

/// Two Procgen trajectories of two steps in frames of one pixel, as a protocol 0 pickle of NumPy arrays.
fn two_procgen_trajectories() -> Vec<u8> {
    let array = |dtype: &str, shape: &[usize], data: &[u8]| {
        let data: String = data.iter().map(|b| format!("\\u{b:04x}")).collect();
        let shape: String = shape.iter().map(|dim| format!("I{dim}\n")).collect();
        format!(
            "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntc_codecs\nencode\n(Vb\nVlatin1\ntRtR(I1\n({shape}t\
             cnumpy\ndtype\n(V{dtype}\nI00\nI01\ntR(I3\nV<\nNNNI-1\nI-1\nI0\ntbI00\nc_codecs\nencode\n(V{data}\nVlatin1\ntRtb"
        )
    };
    let list = |name: &str, one: String, two: String| format!("V{name}\n(l{one}a{two}as");
    let obs = |first: u8| array("u1", &[3, 1, 1, 1], &[first, first + 1, first + 2]);
    let acts = array("u1", &[2], &[1, 2]);
    let rews = array("f4", &[2], &[0; 8]);
    let dones = array("b1", &[2], &[0, 1]);
    let columns = [
        list("obs", obs(10), obs(20)),
        list("acts", acts.clone(), acts),
        list("rews", rews.clone(), rews),
        list("dones", dones.clone(), dones),
    ];
    format!("(d{}.", columns.concat()).into_bytes()
}

#[test]
fn procgen_stacks_and_next_observations_stay_within_their_trajectory() {
    let bytes = two_procgen_trajectories();
    let all = procgen(&bytes, 2, Semantics::Strict, MAX).unwrap();
    let column = |all: &Trajectories, name: &str| -> Vec<Vec<u8>> {
        (0..all.frames()).map(|t| all.field(t, name).unwrap().to_vec()).collect()
    };
    assert_eq!(all.ends(), [(2, End::Terminated), (4, End::Terminated)]);
    assert_eq!(column(&all, "obs"), [[0, 10], [10, 11], [0, 20], [20, 21]]);
    assert_eq!(column(&all, "next_obs"), [[10, 11], [11, 12], [20, 21], [21, 22]]);

    let old = procgen(&bytes, 2, Semantics::Compat, MAX).unwrap();
    // As the originals had it: all frames in one row, the stack of a new trajectory reaching into the one before.
    assert_eq!(column(&old, "obs")[..4], [[0, 10], [10, 11], [11, 12], [12, 20]]);
    assert_eq!(column(&old, "next_obs")[0], [0, 11]);
    assert!(old.layout().unwrap().field("truncated").is_none());
}

#[test]
fn what_is_no_demonstration_is_refused_with_what_is_missing() {
    let e = procgen(b"(dVobs\n(ls.", 4, Semantics::Strict, MAX).unwrap_err();
    assert_eq!(e.kind(), Kind::Missing);
    assert!(e.detail().contains("acts"), "{e}");
    assert_eq!(imitation(b"(l.", Semantics::Strict, MAX).unwrap_err().kind(), Kind::Empty);
    assert_eq!(imitation(b"cos\nsystem\n.", Semantics::Strict, MAX).unwrap_err().kind(), Kind::Forbidden);
    assert!(Magical::parse("LoResCHW5E").unwrap_err().detail().contains("LoResCHW4E"));
}

/// A recording: as many actions and rewards as steps, each action its number.
fn recording(steps: usize) -> Vec<u8> {
    let mut npz = NpzWriter::new(Vec::new(), 1);
    let mut array = |name: &str, scalar: Scalar, bytes: &[u8]| {
        let (dtype, shape) = (DType::Scalar(scalar, Order::Little), [steps as u64]);
        npz.array(name, &dtype, &shape, &mut |to| Ok(to.write_all(bytes)?)).unwrap();
    };
    array("reward", Scalar::F32, &vec![0; 4 * steps]);
    let numbers: Vec<u8> = (0..steps).flat_map(|t| (t as f64).to_le_bytes()).collect();
    array("action$vector", Scalar::F64, &numbers);
    npz.finish().unwrap()
}

/// Frames of 1 x 2 pixels, each of its number.
fn video(frames: usize) -> Frames {
    let bytes = (0..frames).flat_map(|t| [t as u8, (t >> 8) as u8, 0, 0, 0, 0]).collect();
    Frames::new(Scalar::U8, &[frames, 1, 2, 3], bytes).unwrap()
}

#[test]
fn what_was_filmed_before_the_first_action_is_left_out() {
    // Steps and frames of real recordings.
    for (steps, frames) in [(1792, 1833), (1840, 1867), (1746, 1785), (2215, 2508), (5, 6)] {
        let all = minecraft(&recording(steps), Some(&video(frames)), Semantics::Strict, MAX).unwrap();
        assert_eq!((all.frames(), all.ends()), (steps, &[(steps, End::Truncated)][..]));
        let number = |t: usize, name: &str| {
            let picture = all.field(t, name).unwrap();
            usize::from(picture[0]) + 256 * usize::from(picture[2])
        };
        let skipped = frames - (steps + 1);
        for t in [0, 1, steps / 2, steps - 1] {
            assert_eq!((number(t, "obs"), number(t, "next_obs")), (t + skipped, t + skipped + 1), "{steps}, {t}");
            assert_eq!(all.field(t, "acts"), Some(&(t as f64).to_le_bytes()[..]));
        }
    }
    let e = minecraft(&recording(5), Some(&video(4)), Semantics::Strict, MAX).unwrap_err();
    assert_eq!(e.kind(), Kind::WrongSize);
    assert!(e.detail().contains("4 frames of video"), "{e}");
}

#[test]
fn values_of_all_trajectories_have_one_bound() {
    let array = |dtype: &str, shape: &str, bytes: usize| {
        let data = "\\u0000".repeat(bytes);
        format!(
            "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntc_codecs\nencode\n(Vb\nVlatin1\ntRtR(I1\n({shape}t\
             cnumpy\ndtype\n(V{dtype}\nI00\nI01\ntR(I3\nV<\nNNNI-1\nI-1\nI0\ntbI00\nc_codecs\nencode\n(V{data}\nVlatin1\ntRtb"
        )
    };
    // A list of two of the list before, thirteen times: 40 kB once it is written by itself, and four steps have it.
    let laughs = (1..14).fold("(lp0\n".to_owned(), |all, n| format!("{all}0(lp{n}\ng{}\nag{}\na", n - 1, n - 1));
    let infos = "g13\na".repeat(4);
    let one = format!(
        "cimitation.data.types\nTrajectory\n)\u{81}}}(Vobs\n{}Vacts\n{}Vinfos\n(l{infos}ub",
        array("u1", "I5\nI1\n", 5),
        array("u1", "I4\n", 4)
    );
    let bytes: Vec<u8> = format!("{laughs}0(l{one}a.").chars().map(|c| c as u8).collect();
    let all = imitation(&bytes, Semantics::Strict, 1 << 20).unwrap();
    let each = all.extras()["infos"][0].1.len();
    assert!((20_000..100_000).contains(&each) && all.extras()["infos"].len() == 4, "{each}");
    let e = imitation(&bytes, Semantics::Strict, 3 * each).unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
    assert!(e.detail().starts_with("`infos`: "), "{e}");
}
