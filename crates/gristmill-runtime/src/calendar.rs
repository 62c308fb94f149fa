//! Days and nanoseconds since 1970 -> dates and times of day, in UTC. Reads no clock.

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// Year, month and day of the day this many days after the first of January 1970.
pub fn date(days: i64) -> (i64, u32, u32) {
    // Years begin in March, so that a leap day is the last of one; 400 of them have the same number of days.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month as u32, of_month as u32)
}

/// A moment, to the second: `2026-11-23T20:15:00Z`.
pub fn utc(nanoseconds: i64) -> String {
    let seconds = nanoseconds.div_euclid(SECOND);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other_through_leap_years_and_centuries() {
        assert_eq!([date(0), date(-1), date(20_454)], [(1970, 1, 1), (1969, 12, 31), (2026, 1, 1)]);
        let mut before = date(-800_000);
        for days in -799_999..800_000 {
            let (year, month, day) = date(days);
            let next = match before {
                (y, 12, 31) => (y + 1, 1, 1),
                (y, m, d) if (month, day) == (m, d + 1) => (y, m, d + 1),
                (y, m, d) => {
                    let leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
                    let last = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][m as usize - 1];
                    assert_eq!(d, last, "{before:?}");
                    (y, m + 1, 1)
                }
            };
            assert_eq!((year, month, day), next);
            before = next;
        }
    }

    #[test]
    fn a_moment_is_a_date_and_a_time() {
        assert_eq!(utc(1_763_712_000_123_456_789), "2025-11-21T08:00:00Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59Z");
        assert_eq!(utc(i64::MAX), "2262-04-11T23:47:16Z");
    }
}
