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
        .filter_map(|name| {
            let candidate = fold(name);
            let distance = strsim::damerau_levenshtein(&folded, &candidate);
            // An abbreviation (`desc`) or a longer word (`integer`) is further away than any typing mistake.
            let is_part = folded.len().min(candidate.len()) >= 3 && (candidate.starts_with(&folded) || folded.starts_with(&candidate));
            if distance <= allowed { Some((distance, name)) } else { is_part.then_some((allowed + distance, name)) }
        })
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
            ("pass", Some("pass-output")),
            ("identifier", None),
            ("dependencies", None),
            ("", None),
            ("xy", None),
        ] {
            assert_eq!(nearest(wanted, known), found, "{wanted}");
        }
    }
}
