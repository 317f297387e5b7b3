//! The words of a command line that says what it means.
//!
//! Quotes, escapes, comments and continued lines are understood. Whatever the shell would work out (expansions, patterns, pipes,
//! redirections, control) makes the whole line one that is not understood.

/// One command: its words, and what leads to the next one.
pub(super) type Words = Vec<String>;

/// The commands of a line; `None` in any doubt.
pub(super) fn commands(line: &str) -> Option<Vec<Words>> {
    let mut reader = Reader { letters: line.chars().collect(), position: 0, commands: vec![Vec::new()], word: None };
    while let Some(letter) = reader.next() {
        reader.take(letter)?;
    }
    reader.end_command();
    Some(reader.commands.into_iter().filter(|words| !words.is_empty()).collect())
}

struct Reader {
    letters: Vec<char>,
    position: usize,
    commands: Vec<Words>,
    /// The word that is being read; an empty one is a word too, if it is quoted.
    word: Option<String>,
}

impl Reader {
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.get(self.position).copied();
        self.position += 1;
        letter
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.position).copied()
    }

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn end_word(&mut self) {
        if let (Some(word), Some(command)) = (self.word.take(), self.commands.last_mut()) {
            command.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.commands.push(Vec::new());
    }

    fn take(&mut self, letter: char) -> Option<()> {
        match letter {
            ' ' | '\t' => self.end_word(),
            '\n' | ';' => self.end_command(),
            '&' if self.peek() == Some('&') => {
                self.position += 1;
                self.end_command();
            }
            '#' if self.word.is_none() => {
                while self.peek().is_some_and(|next| next != '\n') {
                    self.position += 1;
                }
            }
            '~' if self.word.is_none() => return None,
            '&' | '|' | '<' | '>' | '$' | '`' | '*' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '!' | '\r' | '\0' => return None,
            '\\' => match self.next()? {
                '\n' => {}
                escaped => self.push(escaped),
            },
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            other => self.push(other),
        }
        Some(())
    }

    fn single_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.next()? {
                '\'' => return Some(()),
                letter => self.push(letter),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.next()? {
                '"' => return Some(()),
                '$' | '`' => return None,
                '\\' => match self.next()? {
                    '\n' => {}
                    escaped @ ('"' | '\\' | '$' | '`') => self.push(escaped),
                    other => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                letter => self.push(letter),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_shell_makes_of_them() {
        for (line, expected) in [
            ("cat a b", vec![vec!["cat", "a", "b"]]),
            ("cat 'a b' \"c d\" e\\ f", vec![vec!["cat", "a b", "c d", "e f"]]),
            ("cat 'a'\"b\"c ''", vec![vec!["cat", "abc", ""]]),
            ("cat \"a\\\"b\\n\"", vec![vec!["cat", "a\"b\\n"]]),
            ("cd x && cat a; ls\ncat b", vec![vec!["cd", "x"], vec!["cat", "a"], vec!["ls"], vec!["cat", "b"]]),
            ("cat \\\n a # the > rest | is $said\n", vec![vec!["cat", "a"]]),
            ("cat a#b '$x' 'a|b'", vec![vec!["cat", "a#b", "$x", "a|b"]]),
            (" ;\n; ", vec![]),
        ] {
            assert_eq!(commands(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn what_a_shell_would_work_out_is_not_understood() {
        for line in [
            "cat a | head",
            "cat > a",
            "cat < a",
            "cat $x",
            "cat \"$x\"",
            "cat `x`",
            "cat *.rs",
            "cat a?",
            "cat [ab]",
            "cat {a,b}",
            "(cat a)",
            "cat a &",
            "cat a || b",
            "! cat a",
            "cat ~/a",
            "cat 'a",
            "cat \"a",
            "cat a\\",
            "cat $(x)",
            "cat a\r\n",
            "cat <<E\na\nE",
        ] {
            assert_eq!(commands(line), None, "{line:?}");
        }
    }
}
