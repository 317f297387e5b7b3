//! When a limit is over, where a provider only tells that as it shows it to people: `try again at 3:05 PM`, by the clock on
//! their wall, or `resets 3am (Europe/Berlin)`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ZonedDateTime};
use proctor_domain::Timestamp;

/// What is shown is cut off to the minute, in the course of which the limit is over.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// The moment that a text names. `since` is one shortly before it was said, and `zone` that of whoever said it.
pub(crate) fn moment(text: &str, since: Option<Timestamp>, zone: &TimeZone) -> Option<Timestamp> {
    let since = since.and_then(|since| jiff::Timestamp::from_millisecond(since.0).ok());
    let at = if let Some(told) = after(text, "try again at ") {
        shown(told, since, zone)?
    } else if let Some(told) = after(text, "try again in ") {
        since?.checked_add(duration(told)?).ok()?
    } else {
        let (told, zone) = after(text, "resets ")?.split_once('(')?;
        shown(told, since, &TimeZone::get(zone.split(')').next()?.trim()).ok()?)?
    };
    Some(Timestamp(at.as_millisecond()))
}

/// What follows these words, however they are capitalised.
fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let at = text.to_ascii_lowercase().find(words)?;
    text.get(at + words.len()..)
}

/// The end of the minute that is shown: `3:05 PM`, `3am`, `Jan 2 at 12:30am`, `Dec 3rd, 2026 3:05 PM`.
fn shown(told: &str, since: Option<jiff::Timestamp>, zone: &TimeZone) -> Option<jiff::Timestamp> {
    let mut words = told.split([' ', ',']).map(|word| word.trim_end_matches(['.', ')', ';'])).filter(|word| !matches!(*word, "" | "at"));
    let first = words.next()?;
    let begun = since.map(|since| since.to_zoned_datetime(zone.clone()));
    if !first.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        let (time, today) = (time(first, words.next())?, begun.as_ref()?.date());
        return soonest([Some(today), today.tomorrow().ok()], time, begun.as_ref(), zone);
    }
    let day = words.next()?.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let of_year = |year: i16| Date::strptime("%b %d %Y", format!("{first} {day} {year:04}")).ok();
    let word = words.next()?;
    if let Some(year) = word.parse().ok().filter(|_| word.len() == 4) {
        return over(of_year(year)?.to_datetime(time(words.next()?, words.next())?), zone);
    }
    let (time, year) = (time(word, words.next())?, begun.as_ref()?.date().year());
    soonest([of_year(year), of_year(year.checked_add(1)?)], time, begun.as_ref(), zone)
}

/// `3am`, or `3:05` and then `PM`.
fn time(word: &str, next: Option<&str>) -> Option<Time> {
    let digits = word.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(word.len());
    let (time, half) = word.split_at(digits);
    let half = if half.is_empty() { next? } else { half };
    let minutes = if time.contains(':') { "" } else { ":00" };
    Time::strptime("%I:%M %p", format!("{time}{minutes} {half}")).ok()
}

/// On the first of these days on which that is not over: the session may have gone on past midnight before it was said.
fn soonest(days: [Option<Date>; 2], time: Time, since: Option<&ZonedDateTime>, zone: &TimeZone) -> Option<jiff::Timestamp> {
    let since = since?.timestamp();
    days.into_iter().flatten().filter_map(|day| over(day.to_datetime(time), zone)).find(|over| *over >= since)
}

/// The end of a minute. Of an hour that there is twice, the second; of one that there is not, what clocks show instead. One
/// that is too late costs a wait, one that is too early a refusal.
fn over(local: DateTime, zone: &TimeZone) -> Option<jiff::Timestamp> {
    zone.to_ambiguous_zoned_datetime(local).later().ok()?.timestamp().checked_add(MINUTE).ok()
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
    fn a_zone_that_is_told_with_a_moment_counts_more_than_that_of_the_machine() {
        let check = |text: &str, since: &str, expected: &str| check(text, since, "America/New_York", expected);

        check("hit your limit · resets May 18, 2033, 3:33am (UTC)", "2026-12-01T10:00:00Z", "2033-05-18T03:34:00Z");
        check("hit your limit · resets 3pm (Europe/Berlin)", "2026-12-01T10:00:00Z", "2026-12-01T14:01:00Z");
        check("hit your limit · resets 3am (Europe/Berlin)", "2026-12-01T10:00:00Z", "2026-12-02T02:01:00Z");
        check("limit · resets Jan 2 at 12:30am (UTC)", "2026-12-30T10:00:00Z", "2027-01-02T00:31:00Z");
        check("limit · resets Dec 31, 11pm (UTC)", "2026-12-30T10:00:00Z", "2026-12-31T23:01:00Z");
        check("limit · resets 2:30am (Europe/Berlin)", "2026-10-24T23:00:00Z", "2026-10-25T01:31:00Z");
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
            "it resets soon",
            "resets 3am",
            "resets 3am (Mars/Base)",
            "resets 25pm (UTC)",
            "resets Foo 3, 2033, 3am (UTC)",
            "resets (UTC)",
            "",
        ] {
            assert_eq!(at(text, "2026-12-01T10:00:00Z", "UTC"), None, "{text}");
        }
        for text in ["Try again at 3:05 PM.", "resets 3am (UTC)", "try again in 2s"] {
            assert_eq!(moment(text, None, &TimeZone::UTC), None, "{text}");
        }
        assert!(moment("Try again at Dec 3rd, 2026 3:05 PM.", None, &TimeZone::UTC).is_some());
    }
}
