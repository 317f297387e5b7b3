//! Which known name a mistyped one was meant to be.

/// The known name that is most like `wanted`, when one is like enough to be worth a hint.
///
/// Separators and case don't count, so `max_turns` finds `max-turns` however long the names are.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name this long is no typing mistake, and comparing takes time that grows with the square.
    if wanted.len() > 128 {
        return None;
    }
    let folded = fold(wanted);
    let allowed = (folded.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn fold(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_mistyped_name_finds_the_one_that_was_meant() {
        let known = ["shells", "agents", "max-turns", "pass-output", "id"];
        for (wanted, found) in [
            ("shell", Some("shells")),
            ("max_turns", Some("max-turns")),
            ("maxTurns", Some("max-turns")),
            ("passoutput", Some("pass-output")),
            ("ID", Some("id")),
            ("dependencies", None),
            ("", None),
            ("xy", None),
        ] {
            assert_eq!(nearest(wanted, known), found, "{wanted}");
        }
    }
}
