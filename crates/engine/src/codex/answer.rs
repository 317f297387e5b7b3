//! Where one answer of the model ends and the next begins. Codex does not say: it prints what an answer is made of.

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A summary of what it thought.
    Thought,
    /// What it said.
    Words,
    /// What it called.
    Call,
}

/// The answer that is being given. A model thinks, speaks and calls in this order, and answers anew when what it called
/// has answered. Calls of one answer that come one after the other are counted as answers of their own, since many answers
/// are a call and nothing else.
#[derive(Debug)]
pub(super) struct Answer {
    has_said: bool,
    is_over: bool,
}

impl Default for Answer {
    /// Before the first one.
    fn default() -> Self {
        Self { has_said: false, is_over: true }
    }
}

impl Answer {
    /// Takes in a part. Whether an answer begins with it.
    pub(super) fn begins_with(&mut self, part: Part) -> bool {
        let begins = self.is_over || (self.has_said && part != Part::Call);
        self.has_said = part == Part::Words || (self.has_said && !begins);
        self.is_over = false;
        begins
    }

    /// What it called has answered.
    pub(super) fn has_been_answered(&mut self) {
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many answers these are: a thought, words, a call, and `.` where what was called has answered.
    fn answers(parts: &str) -> usize {
        let mut answer = Answer::default();
        let mut count = 0;
        for letter in parts.chars() {
            match letter {
                't' => count += usize::from(answer.begins_with(Part::Thought)),
                'w' => count += usize::from(answer.begins_with(Part::Words)),
                'c' => count += usize::from(answer.begins_with(Part::Call)),
                _ => answer.has_been_answered(),
            }
        }
        count
    }

    #[test]
    fn an_answer_goes_on_until_a_tool_or_a_further_word() {
        let cases =
            [("", 0), ("w", 1), ("twc.w", 2), ("twcc..w", 2), ("c.c.c.w", 4), ("ww", 2), ("wc.tw", 2), ("ttw", 1), ("wt", 2), ("cw", 1)];

        for (parts, expected) in cases {
            assert_eq!(answers(parts), expected, "{parts}");
        }
    }
}
