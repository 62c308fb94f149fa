//! Rows that a mark selects: what each row of the table takes in memory and in the file, and how long it takes to find the
//! `i`th one; beside them a list of numbers, a plain bit vector and a Roaring bitmap, of the same rows at the same time.
//! `cargo bench --bench marks [ROWS]`: of 100 000 000 rows by default.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use std::hint::black_box;
use std::time::Instant;

use gristmill_engine::marks;
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_engine::runtime::seed::Key;
use gristmill_format::container::marks::{Mark, Origin};

/// Lookups of what answers at once, and of what has to search.
const MANY: u64 = 2_000_000;
const FEW: u64 = 200;

/// Bytes that the process holds.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

/// What `make` gives, and the bytes that it takes.
fn weighed<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let before = resident();
    let made = make();
    (made, resident().saturating_sub(before))
}

/// Nanoseconds that `find` takes for a place, over the same places for everyone.
fn timed(lookups: u64, len: u64, mut find: impl FnMut(u64) -> u64) -> f64 {
    let key = Key::new(1, "places");
    let places: Vec<u64> = (0..lookups).map(|i| key.at(i).below(len)).collect();
    let start = Instant::now();
    places.iter().for_each(|i| _ = black_box(find(*i)));
    start.elapsed().as_secs_f64() * 1e9 / lookups as f64
}

/// The `i`th row of a bit vector that has nothing beside it.
fn scanned(words: &[u64], mut i: u64) -> u64 {
    for (at, word) in (0..).zip(words) {
        let ones = u64::from(word.count_ones());
        if i < ones {
            let mut rest = *word;
            (0..i).for_each(|_| rest &= rest - 1);
            return at * 64 + u64::from(rest.trailing_zeros());
        }
        i -= ones;
    }
    unreachable!("the pack has that row")
}

fn measure(name: &str, total: u64, is_in: impl Fn(u64) -> bool) {
    let rows = || (0..total).filter(|row| is_in(*row));
    let (ours, our_bytes) = weighed(|| {
        let mut ours = Intervals::default();
        rows().for_each(|row| ours.push(row, row + 1));
        ours
    });
    let len = ours.len();
    let list: Vec<u64> = rows().collect();
    let mut words = vec![0u64; total.div_ceil(64) as usize];
    list.iter().for_each(|row| words[(row / 64) as usize] |= 1 << (row % 64));
    let (bitmap, roaring_bytes) = weighed(|| marks::bitmap(&ours));
    let mark = Mark { origin: Origin::Given, rule: String::new(), frames: total, identity: 0, rows: bitmap };
    let file = mark.to_bytes().expect("bytes").len() as u64;
    let wanted = timed(FEW, len, |i| {
        let row = list[i as usize];
        assert_eq!((ours.row(i), scanned(&words, i), mark.rows.select(i)), (row, row, Some(row)));
        row
    });
    black_box(wanted);
    let bits = |bytes: u64| bytes as f64 * 8.0 / total as f64;
    println!("{name}: {len} of {total} rows, {:.4} bits a row in the mark file", bits(file));
    let said = |what: &str, bits: f64, ns: f64| println!("  {what:14} {bits:8.3} bits a row  {ns:12.1} ns row()");
    said("selection", bits(our_bytes), timed(MANY, len, |i| ours.row(i)));
    said("list", bits(len * 8), timed(MANY, len, |i| list[i as usize]));
    said("bit vector", bits(words.len() as u64 * 8), timed(FEW, len, |i| scanned(&words, i)));
    said("Roaring", bits(roaring_bytes), timed(FEW, len, |i| mark.rows.select(i).unwrap_or_default()));
}

fn main() {
    let total: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(100_000_000);
    let key = Key::new(7, "rows");
    let dice = |number: u64, of: u64| key.at(number).below(of) == 0;
    measure("one in three, without pattern", total, |row| dice(row, 3));
    measure("half of the games, of 60 rows each", total, |row| dice(row / 60, 2));
    measure("one in a thousand", total, |row| dice(row, 1000));
}
