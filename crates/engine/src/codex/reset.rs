//! When a limit is over, by what Codex says about it. It says that in words only, by the clock on the wall.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ZonedDateTime};
use proctor_domain::Timestamp;

/// Told moments are whole minutes, cut off: the limit is over in the course of that minute.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// The moment of which a text says `try again at` or `try again in`. `since` is a moment shortly before it was said.
pub(super) fn moment(text: &str, since: Option<Timestamp>, zone: &TimeZone) -> Option<Timestamp> {
    let since = since.and_then(|since| jiff::Timestamp::from_millisecond(since.0).ok()).map(|since| since.to_zoned_datetime(zone.clone()));
    if let Some(told) = after(text, "try again at ") {
        return time_of_day_or_date(told, since.as_ref(), zone).and_then(|at| at.checked_add(MINUTE).ok()).map(millis);
    }
    let wait = after(text, "try again in ").and_then(duration)?;
    since?.timestamp().checked_add(wait).ok().map(millis)
}

fn millis(moment: jiff::Timestamp) -> Timestamp {
    Timestamp(moment.as_millisecond())
}

/// What follows these words, however they are capitalised.
fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let at = text.to_ascii_lowercase().find(words)?;
    text.get(at + words.len()..)
}

/// `3:05 PM`, of the day on which it is said, or `Dec 3rd, 2026 3:05 PM`.
fn time_of_day_or_date(told: &str, since: Option<&ZonedDateTime>, zone: &TimeZone) -> Option<jiff::Timestamp> {
    let words: Vec<&str> = told.split_whitespace().take(5).map(|word| word.trim_end_matches(['.', ',', ')', ';'])).collect();
    match words.as_slice() {
        [month, day, year, time, half] if month.starts_with(|first: char| first.is_ascii_alphabetic()) => {
            let day = day.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            let date = DateTime::strptime("%b %d %Y %I:%M %p", format!("{month} {day} {year} {time} {half}")).ok()?;
            later(date, zone)
        }
        [time, half, ..] => {
            let time = Time::strptime("%I:%M %p", format!("{time} {half}")).ok()?;
            let since = since?;
            let today = later(since.date().to_datetime(time), zone)?;
            // The session may have gone on past midnight before that was said.
            let has_passed = today.checked_add(MINUTE).is_ok_and(|over| over < since.timestamp());
            if has_passed { later(since.date().tomorrow().ok()?.to_datetime(time), zone) } else { Some(today) }
        }
        _ => None,
    }
}

/// Of an hour that there is twice, the second; of one that there is not, what clocks show instead. One that is too late
/// costs a wait, one that is too early a refusal.
fn later(local: DateTime, zone: &TimeZone) -> Option<jiff::Timestamp> {
    zone.to_ambiguous_zoned_datetime(local).later().ok().map(|zoned| zoned.timestamp())
}

/// `2.4s`, `35 seconds`, `1h2m`, `2 days 3 hours and 5 minutes`.
fn duration(told: &str) -> Option<SignedDuration> {
    let (mut rest, mut seconds) = (told, None);
    while let Some((amount, unit, after)) = amount(rest) {
        *seconds.get_or_insert(0.0) += amount * unit;
        rest = after.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    SignedDuration::try_from_secs_f64(f64::ceil(seconds?)).ok()
}

/// A number and the seconds of its unit, and what follows them.
fn amount(text: &str) -> Option<(f64, f64, &str)> {
    let digits = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(letters);
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some((number.parse().ok()?, seconds, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, since: &str, zone: &str) -> Option<String> {
        let zone = TimeZone::get(zone).unwrap();
        let since: jiff::Timestamp = since.parse().unwrap();
        let moment = moment(text, Some(Timestamp(since.as_millisecond())), &zone)?;
        Some(jiff::Timestamp::from_millisecond(moment.0).unwrap().to_string())
    }

    fn check(text: &str, since: &str, zone: &str, expected: &str) {
        assert_eq!(at(text, since, zone).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn a_time_of_day_is_the_next_one_in_the_zone_of_the_machine() {
        let text = "You’ve hit your usage limit. Upgrade to Pro or try again at 3:05 PM.";

        check(text, "2026-12-01T10:00:00Z", "UTC", "2026-12-01T15:06:00Z");
        check(text, "2026-12-01T10:00:00Z", "America/New_York", "2026-12-01T20:06:00Z");
        check("Try again at 12:10 AM.", "2026-12-01T23:50:00Z", "UTC", "2026-12-02T00:11:00Z");
        check("Try again at 12:10 PM.", "2026-12-01T12:10:30Z", "UTC", "2026-12-01T12:11:00Z");
    }

    #[test]
    fn a_date_is_read_with_its_ordinal() {
        let date = |day: &str| format!("or try again at Dec {day}, 2026 1:30 AM.");

        for (day, expected) in [("1st", "01"), ("2nd", "02"), ("3rd", "03"), ("11th", "11"), ("22nd", "22")] {
            check(&date(day), "2026-11-20T10:00:00Z", "Europe/Berlin", &format!("2026-12-{expected}T00:31:00Z"));
        }
    }

    #[test]
    fn an_hour_that_there_is_twice_is_the_second_and_one_that_is_not_is_the_one_after() {
        check("Try again at Oct 25th, 2026 2:30 AM.", "2026-10-20T00:00:00Z", "Europe/Berlin", "2026-10-25T01:31:00Z");
        check("Try again at 2:30 AM.", "2026-03-29T00:30:00Z", "Europe/Berlin", "2026-03-29T01:31:00Z");
        check("Try again at 4:00 AM.", "2026-03-28T23:30:00Z", "Europe/Berlin", "2026-03-29T02:01:00Z");
    }

    #[test]
    fn a_wait_counts_from_when_it_was_said() {
        let since = "2026-12-01T10:00:00Z";

        check("Please try again in 2.4s. Visit https://example.com", since, "UTC", "2026-12-01T10:00:03Z");
        check("Please try again in 750ms.", since, "UTC", "2026-12-01T10:00:01Z");
        check("try again in 35 seconds", since, "UTC", "2026-12-01T10:00:35Z");
        check("Try again in 1h2m", since, "UTC", "2026-12-01T11:02:00Z");
        check("Try again in 2 days 3 hours and 5 minutes.", since, "Europe/Berlin", "2026-12-03T13:05:00Z");
    }

    #[test]
    fn what_tells_no_moment_has_none() {
        for text in [
            "Try again later.",
            "try again at noon",
            "try again at 25:00 PM",
            "Try again in a while",
            "Try again at Foo 3rd, 2026 3:05 PM",
            "",
        ] {
            assert_eq!(at(text, "2026-12-01T10:00:00Z", "UTC"), None, "{text}");
        }
        assert_eq!(moment("Try again at 3:05 PM.", None, &TimeZone::UTC), None);
        assert!(moment("Try again at Dec 3rd, 2026 3:05 PM.", None, &TimeZone::UTC).is_some());
    }
}
