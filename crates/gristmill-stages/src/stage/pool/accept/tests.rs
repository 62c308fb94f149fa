//! Frequencies against the formula, use counts, the cache's hits, and taking decisions back.

use super::*;

fn accept(chance: Chance) -> Accept {
    Accept::new(Key::new(12, "pool"), chance, None)
}

fn at(draw: u64, place: u64) -> Candidate {
    Candidate { draw, place, floor: 0 }
}

fn taken(decision: &Decision) -> bool {
    matches!(decision, Decision::Taken { .. })
}

/// Decides on `n` draws of each chunk in turn and compares how often each was taken with its chance.
fn chi_square(mut accept: Accept, weights: &[f32], chance: impl Fn(f64) -> f64, n: u64) -> f64 {
    for (place, &weight) in (0..).zip(weights) {
        accept.learn(place, Contents { frames: 0, weight });
    }
    let chunks = weights.len() as u64;
    // The first round meets the largest weight, on which the others' chances depend.
    (0..chunks).for_each(|draw| _ = accept.decide(at(draw, draw)));
    let mut counts = vec![0u64; weights.len()];
    for draw in chunks..chunks * (n + 1) {
        let place = draw % chunks;
        counts[place as usize] += u64::from(taken(&accept.decide(at(draw, place))));
    }
    let term = |(&count, &weight): (&u64, &f32)| {
        let (p, n) = (chance(f64::from(weight)), n as f64);
        let off = count as f64 - n * p;
        if p >= 1.0 { off.abs() * 1e9 } else { off * off / (n * p * (1.0 - p)) }
    };
    counts.iter().zip(weights).map(term).sum()
}

const WEIGHTS: [f32; 10] = [1.0, 8.0, 20.0, 33.0, 47.0, 60.0, 81.0, 100.0, 120.0, 160.0];

/// 10 degrees of freedom at most, p = 0.001.
const CRITICAL: f64 = 29.6;

#[test]
fn the_length_form_takes_chunks_as_often_as_its_formula_says() {
    for gamma in [1.0, 0.5, 2.0] {
        let chance = Chance::Length { threshold: 80, gamma };
        let chi = chi_square(accept(chance), &WEIGHTS, |n| (n / 80.0).min(1.0).powf(gamma), 20_000);
        assert!(chi < CRITICAL, "gamma {gamma}: {chi}");
    }
}

#[test]
fn the_weight_form_takes_chunks_as_often_as_its_formula_says() {
    for gamma in [1.0, 0.5, 2.0] {
        let chi = chi_square(accept(Chance::Weight { gamma }), &WEIGHTS, |w| (w / 160.0).powf(gamma), 20_000);
        assert!(chi < CRITICAL, "gamma {gamma}: {chi}");
    }
}

#[test]
fn another_law_would_be_noticed() {
    let chi = chi_square(accept(Chance::Weight { gamma: 1.0 }), &WEIGHTS, |w| (w / 160.0).powf(1.1), 20_000);
    assert!(chi > 10.0 * CRITICAL, "{chi}");
}

#[test]
fn the_largest_weight_is_that_of_the_draws_so_far() {
    let mut accept = accept(Chance::Weight { gamma: 50.0 });
    [10.0, 5.0, 20.0]
        .iter()
        .zip(0..)
        .for_each(|(&weight, place)| _ = accept.learn(place, Contents { frames: 0, weight }));
    let found: Vec<bool> = [0, 1, 0, 2, 0, 2].iter().zip(0..).map(|(&p, d)| taken(&accept.decide(at(d, p)))).collect();
    assert_eq!(found, [true, false, true, true, false, true]);
}

#[test]
fn weightless_chunks_are_all_taken_until_one_weighs_something() {
    let mut accept = accept(Chance::Weight { gamma: 1.0 });
    accept.learn(0, Contents { frames: 3, weight: 0.0 });
    accept.learn(1, Contents { frames: 3, weight: 1.0 });
    assert!(accept.waits_for(2) && !accept.waits_for(0));
    let found: Vec<bool> = [0, 0, 1, 0, 0].iter().zip(0..).map(|(&p, d)| taken(&accept.decide(at(d, p)))).collect();
    assert_eq!(found, [true, true, true, false, false]);
}

#[test]
fn only_chunks_that_are_handed_out_count_as_used() {
    let mut accept = accept(Chance::Length { threshold: 100, gamma: 1.0 });
    accept.learn(0, Contents { frames: 30, weight: 30.0 });
    let mut expected = 0;
    for draw in 0..400 {
        if let Decision::Taken { use_count, .. } = accept.decide(at(draw, 0)) {
            assert_eq!(use_count, expected, "reported before it is increased");
            expected += 1;
        }
    }
    let AcceptCounts { taken, rejected, .. } = accept.counts();
    assert_eq!((taken, taken + rejected), (u64::from(expected), 400));
    assert!((80..160).contains(&expected), "{expected}");
}

#[test]
fn a_million_rejections_in_a_row_are_called_hopeless() {
    let mut accept = accept(Chance::Length { threshold: u64::MAX, gamma: 1.0 });
    accept.learn(0, Contents { frames: 1, weight: 1.0 });
    let last = (0..HOPELESS).map(|draw| accept.decide(at(draw, 0))).enumerate().find(|(_, d)| *d != Decision::Rejected);
    assert_eq!(last, Some((HOPELESS as usize - 1, Decision::Hopeless)));
}

fn cached() -> Accept {
    let rules = CacheRules { size: 40, window: 20, prefetch: 4, lookahead: 3, compat: false };
    Accept::new(Key::new(12, "pool"), Chance::Length { threshold: 80, gamma: 1.0 }, Some(rules))
}

#[test]
fn a_hit_is_the_use_that_the_miss_foresaw() {
    let mut accept = Accept::new(
        Key::new(1, "pool"),
        Chance::Always,
        Some(CacheRules { size: 40, window: 20, prefetch: 4, lookahead: 3, compat: false }),
    );
    let first = accept.decide(at(0, 7));
    assert_eq!(first, Decision::Taken { use_count: 0, cached: false, keep: 2, lost: Vec::new() });
    let uses: Vec<_> =
        [(3, 7), (4, 7), (5, 7), (6, 7)].iter().map(|&(draw, place)| accept.decide(at(draw, place))).collect();
    let hit = |use_count| Decision::Taken { use_count, cached: true, keep: 0, lost: Vec::new() };
    assert_eq!(uses[..2], [hit(1), hit(2)]);
    assert_eq!(uses[2], Decision::Taken { use_count: 3, cached: false, keep: 2, lost: Vec::new() });
    let lost = vec![Lost { place: 7, first: 4, left: 2 }];
    assert_eq!(uses[3], Decision::Taken { use_count: 4, cached: false, keep: 2, lost }, "within the lookahead");
    let gone = accept.decide(Candidate { draw: 7, place: 30, floor: 8 });
    let lost = vec![Lost { place: 7, first: 5, left: 2 }];
    assert_eq!(gone, Decision::Taken { use_count: 0, cached: false, keep: 2, lost });
    let counts = accept.counts();
    assert_eq!((counts.cache_hits, counts.cache_misses, counts.mismatched_use_counts), (2, 4, 1));
    assert_eq!((counts.newly_cached, counts.dropped_cache_positions, counts.chunk_source_not_found), (8, 8, 1));
    assert_eq!(accept.cached(), 2);
}

#[test]
fn a_restored_one_has_no_memory_for_places_long_gone() {
    let mut restored = accept(Chance::Weight { gamma: 1.0 });
    let start = 1 << 60;
    let state = AcceptState { largest: 5.0, since: u64::MAX, start, uses: vec![3, 4], cache: None };
    restored.restore(&state).unwrap();
    restored.learn(start + 1, Contents { frames: 5, weight: 5.0 });
    let decision = restored.decide(Candidate { draw: 0, place: start + 1, floor: start });
    assert_eq!(decision, Decision::Taken { use_count: 4, cached: false, keep: 0, lost: Vec::new() });
}

#[test]
fn it_goes_on_from_before_any_draw_that_is_not_forgotten() {
    let candidate = |draw: u64| Candidate { draw, place: draw / 40 + draw * 13 % 20, floor: draw / 40 };
    let learn = |accept: &mut Accept| {
        (0..60).for_each(|place| _ = accept.learn(place, Contents { frames: 0, weight: (place * 7 % 100) as f32 }));
    };
    let mut original = cached();
    learn(&mut original);
    let mut states = Vec::new();
    for draw in 0..800 {
        states.push(original.state_before(draw));
        original.decide(candidate(draw));
    }
    original.forget_before(300);
    for from in (300..800).step_by(7) {
        let text = serde_json::to_string(&original.state_before(from)).unwrap();
        let mut restored = cached();
        restored.restore(&serde_json::from_str(&text).unwrap()).unwrap();
        learn(&mut restored);
        let mut straight = cached();
        straight.restore(&states[from as usize]).unwrap();
        learn(&mut straight);
        for draw in from..800 {
            assert_eq!(restored.decide(candidate(draw)), straight.decide(candidate(draw)), "{draw} after {from}");
        }
        assert_eq!(restored.state_before(800).cache, original.state_before(800).cache);
        assert_eq!(restored.state_before(800).largest, original.state_before(800).largest);
    }
    assert!(original.log.len() <= 500 * 6, "what was forgotten is gone");
    assert!(accept(Chance::Always).restore(&states[500]).is_none(), "a state with a cache needs one");
}
