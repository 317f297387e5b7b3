//! When a limit is over, where an agent only passes on what its provider shows to people: `resets 3am (Europe/Berlin)`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use proctor_domain::Timestamp;

/// What is shown is cut off to the minute, in the course of which the limit is over.
const MINUTE: i64 = 60_000;

/// The moment that this text names; `since` is one shortly before it was said.
pub(super) fn moment(text: &str, since: Option<Timestamp>) -> Option<Timestamp> {
    let (_, told) = text.split_once("resets ")?;
    let (when, zone) = told.split_once('(')?;
    let zone = TimeZone::get(zone.split(')').next()?.trim()).ok()?;
    let since = since.and_then(|since| jiff::Timestamp::from_millisecond(since.0).ok());
    let words: Vec<&str> = when.split([' ', ',']).filter(|word| !word.is_empty() && *word != "at").take(5).collect();
    let at = match words.as_slice() {
        [month, day, year, time] => later(date(month, day, year)?.to_datetime(of_day(time)?), &zone)?,
        [month, day, time] => {
            let (time, since) = (of_day(time)?, since?);
            let year = since.to_zoned_datetime(zone.clone()).date().year();
            let in_year = |year: i16| later(date(month, day, &year.to_string())?.to_datetime(time), &zone);
            in_year(year).filter(|at| !has_passed(*at, since)).or_else(|| in_year(year.checked_add(1)?))?
        }
        [time] => {
            let (time, since) = (of_day(time)?, since?);
            let today = since.to_zoned_datetime(zone.clone()).date();
            let on_day = |day: Date| later(day.to_datetime(time), &zone);
            on_day(today).filter(|at| !has_passed(*at, since)).or_else(|| on_day(today.tomorrow().ok()?))?
        }
        _ => return None,
    };
    at.as_millisecond().checked_add(MINUTE).map(Timestamp)
}

fn has_passed(at: jiff::Timestamp, since: jiff::Timestamp) -> bool {
    at.as_millisecond().saturating_add(MINUTE) < since.as_millisecond()
}

fn date(month: &str, day: &str, year: &str) -> Option<Date> {
    Date::strptime("%b %d %Y", format!("{month} {day} {year}")).ok()
}

/// `3am`, `3:33pm`.
fn of_day(word: &str) -> Option<Time> {
    let digits = word.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (time, half) = word.split_at(digits);
    let minutes = if time.contains(':') { "" } else { ":00" };
    Time::strptime("%I:%M %p", format!("{time}{minutes} {half}")).ok()
}

/// Of an hour that there is twice, the second: one that is too late costs a wait, one that is too early a refusal.
fn later(local: DateTime, zone: &TimeZone) -> Option<jiff::Timestamp> {
    zone.to_ambiguous_zoned_datetime(local).later().ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, since: Option<&str>) -> Option<String> {
        let since = since.map(|since| Timestamp(since.parse::<jiff::Timestamp>().unwrap().as_millisecond()));
        moment(text, since).map(|at| jiff::Timestamp::from_millisecond(at.0).unwrap().to_string())
    }

    fn check(text: &str, since: &str, expected: &str) {
        assert_eq!(at(text, Some(since)).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn a_moment_is_read_in_the_zone_that_is_told_with_it() {
        check("hit your limit · resets May 18, 2033, 3:33am (UTC)", "2026-12-01T10:00:00Z", "2033-05-18T03:34:00Z");
        check("hit your limit · resets 3pm (Europe/Berlin)", "2026-12-01T10:00:00Z", "2026-12-01T14:01:00Z");
        check("hit your limit · resets 3am (Europe/Berlin)", "2026-12-01T10:00:00Z", "2026-12-02T02:01:00Z");
        check("limit · resets Jan 2 at 12:30am (UTC)", "2026-12-30T10:00:00Z", "2027-01-02T00:31:00Z");
        check("limit · resets Dec 31, 11pm (UTC)", "2026-12-30T10:00:00Z", "2026-12-31T23:01:00Z");
        check("limit · resets 2:30am (Europe/Berlin)", "2026-10-24T23:00:00Z", "2026-10-25T01:31:00Z");
    }

    #[test]
    fn what_names_no_moment_has_none() {
        let since = Some("2026-12-01T10:00:00Z");

        for text in [
            "",
            "it resets soon",
            "resets 3am",
            "resets 3am (Mars/Base)",
            "resets 25pm (UTC)",
            "resets Foo 3, 2033, 3am (UTC)",
            "resets (UTC)",
        ] {
            assert_eq!(at(text, since), None, "{text}");
        }
        assert_eq!(at("resets 3am (UTC)", None), None);
    }
}
