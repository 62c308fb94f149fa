//! Numbers -> short texts for a table: rates with SI suffixes, totals with separators, times. Prints nothing.

/// What stands where nothing is known.
pub const UNKNOWN: &str = "--";

/// A number with one decimal and a suffix from a thousand on: `41.2`, `12.3k`.
pub fn short(value: f64) -> String {
    let mut value = value;
    for suffix in ["", "k", "M", "G", "T"] {
        // 999.95 would be rounded to 1000.0.
        if value < 999.95 || suffix == "T" {
            return format!("{value:.1}{suffix}");
        }
        value /= 1000.0;
    }
    unreachable!("the last suffix takes every number")
}

/// A rate, or `--`.
pub fn rate(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.to_owned(), short)
}

/// A count of items, exact below ten thousand and short from there on: `4096`, `50.0k`.
pub fn brief(value: u64) -> String {
    if value < 10_000 { value.to_string() } else { short(value as f64) }
}

/// A total with apostrophes between thousands, from ten thousand on: `9999`, `1'234'567`.
pub fn total(value: u64) -> String {
    let digits = value.to_string();
    if value < 10_000 {
        return digits;
    }
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\'');
        }
        text.push(digit);
    }
    text
}

/// Values over time, a cell each, of the last `room` of them: the highest is a full cell, zero the lowest mark.
pub fn sparkline(values: &[f64], room: usize) -> String {
    const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(room)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let mark = |value: &f64| MARKS[((value / most * 7.0).ceil().clamp(0.0, 7.0)) as usize];
    shown.iter().map(|value| if most > 0.0 { mark(value) } else { MARKS[0] }).collect()
}

/// Seconds as `12:34:56`, with days in front where there are some: `3d 12:34:56`.
pub fn time(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e15) as u64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days}d {clock}") } else { clock }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_lie_by_a_digit() {
        for (value, text) in [(0.0, "0.0"), (0.04, "0.0"), (41.25, "41.2"), (999.94, "999.9"), (999.96, "1.0k")] {
            assert_eq!(short(value), text);
        }
        for (value, text) in [(12_345.0, "12.3k"), (2.5e6, "2.5M"), (3e9, "3.0G"), (4e12, "4.0T"), (5e15, "5000.0T")] {
            assert_eq!(short(value), text);
        }
        assert_eq!((rate(None), rate(Some(0.0))), ("--".into(), "0.0".into()));
        for (value, text) in [(0, "0"), (9999, "9999"), (10_000, "10'000"), (1_234_567, "1'234'567")] {
            assert_eq!(total(value), text);
        }
        assert_eq!(total(u64::MAX), "18'446'744'073'709'551'615");
        assert_eq!((brief(4096), brief(50_000)), ("4096".into(), "50.0k".into()));
        for (seconds, text) in
            [(0.9, "00:00:00"), (45_296.0, "12:34:56"), (304_496.0, "3d 12:34:56"), (-1.0, "00:00:00")]
        {
            assert_eq!(time(seconds), text);
        }
        assert_eq!(sparkline(&[9.0, 0.0, 1.0, 4.0, 8.0], 4), "▁▂▅█");
        assert_eq!((sparkline(&[], 4), sparkline(&[0.0, 0.0], 4)), (String::new(), "▁▁".into()));
        assert!(time(f64::NAN) == "00:00:00" && time(f64::INFINITY).ends_with("40"));
    }
}
