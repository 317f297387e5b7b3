//! The forms in which a secret value turns up in output.

use super::SHORTEST;

/// The value itself, escaped as JSON writes it (also within a string of JSON in JSON), in Base64 as part of anything,
/// and as in a URL. Some may be equal, or too short to be searched for.
pub(super) fn of(value: &[u8]) -> Vec<Vec<u8>> {
    // A backslash at its end may, in a line of JSON, belong to the quote that follows.
    let end = value.iter().rposition(|byte| *byte != b'\\').map_or(0, |last| last + 1);
    let bare = if end < SHORTEST { value } else { &value[..end] };
    let mut forms = vec![bare.to_vec()];
    // Writers differ in what they leave as it is: nothing, slashes, or all that has a meaning in a URL.
    forms.extend(["", "/", ";,/?:@&=+$!*'()#"].map(|plain| percent(value, plain)));
    if let Ok(text) = std::str::from_utf8(value) {
        for escape in [json as fn(&str) -> String, json_ascii] {
            let once = escape(text);
            forms.push(escape(&once).into_bytes());
            forms.push(once.into_bytes());
        }
    }
    for alphabet in [STANDARD, URL_SAFE] {
        forms.extend((0..3).map(|offset| base64_inside(value, offset, alphabet)));
    }
    forms
}

fn json(text: &str) -> String {
    // A string can always be written; were it not, the value itself would still be searched for.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).to_owned()
}

/// As writers do that put nothing but ASCII into JSON.
fn json_ascii(text: &str) -> String {
    let mut units = [0; 2];
    json(text).chars().fold(String::new(), |mut escaped, character| {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            escaped.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
        escaped
    })
}

fn percent(value: &[u8], plain: &str) -> Vec<u8> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || plain.as_bytes().contains(&byte);
    value.iter().flat_map(|byte| if is_plain(*byte) { vec![*byte] } else { format!("%{byte:02X}").into_bytes() }).collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The characters of Base64 that are the same whatever is around the value, when it begins `offset` bytes behind a
/// multiple of three.
fn base64_inside(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bit = |index: usize| (value[index / 8] >> (7 - index % 8)) & 1;
    // The first character that holds no bit of what is before.
    let skipped = (offset * 8).div_ceil(6) * 6 - offset * 8;
    let bits: Vec<u8> = (skipped..value.len() * 8).map(bit).collect();
    let sextets = bits.chunks_exact(6);
    sextets.map(|sextet| alphabet[usize::from(sextet.iter().fold(0, |sum, bit| sum << 1 | bit))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_wherever_the_value_is_in_what_is_encoded() {
        // `printf 'user:pässword!' | base64`, and with one and two characters more before it.
        for (offset, encoded) in [(0, "cMOkc3N3b3JkIQ=="), (1, "OnDDpHNzd29yZCE="), (2, "cjpww6Rzc3dvcmQh")] {
            let inside = String::from_utf8(base64_inside("pässword!".as_bytes(), offset, STANDARD)).unwrap();

            assert!(encoded.contains(&inside) && inside.len() >= 12, "{offset}: {inside}");
        }
    }

    #[test]
    fn a_value_in_a_url_is_known_whatever_its_writer_leaves_as_it_is() {
        let forms = of(b"a/b c?d=e&f!");

        for form in ["a%2Fb%20c%3Fd%3De%26f%21", "a/b%20c%3Fd%3De%26f%21", "a/b%20c?d=e&f!"] {
            assert!(forms.contains(&form.as_bytes().to_vec()), "{form}");
        }
    }

    #[test]
    fn a_value_that_json_escapes_is_known_escaped_once_and_twice() {
        let forms = of("a\"b\\c\né".as_bytes());

        for form in ["a\"b\\c\né", "a\\\"b\\\\c\\né", "a\\\"b\\\\c\\n\\u00e9", "a\\\\\\\"b\\\\\\\\c\\\\né", "a%22b%5Cc%0A%C3%A9"] {
            assert!(forms.contains(&form.as_bytes().to_vec()), "{form}");
        }
    }
}
