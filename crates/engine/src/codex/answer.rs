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
/// are a call and nothing else. Once the provider tells what answers used, that alone says where one ends.
#[derive(Debug)]
pub(super) struct Answer {
    told: Told,
    is_over: bool,
    /// Answers are told apart by what they used.
    are_counted: bool,
}

/// What was told of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Something,
    /// Words, perhaps among other things.
    Words,
}

impl Default for Answer {
    /// Before the first one.
    fn default() -> Self {
        Self { told: Told::Nothing, is_over: true, are_counted: false }
    }
}

impl Answer {
    /// Takes in a part. Whether an answer begins with it.
    pub(super) fn begins_with(&mut self, part: Part) -> bool {
        let has_said = self.told == Told::Words;
        let begins = self.is_over || (!self.are_counted && has_said && part != Part::Call);
        self.told = if part == Part::Words || (has_said && !begins) { Told::Words } else { Told::Something };
        self.is_over = false;
        begins
    }

    /// What it called has answered.
    pub(super) fn has_been_answered(&mut self) {
        self.is_over |= !self.are_counted;
    }

    /// It is told what it used. Whether that is all that is told of it.
    pub(super) fn is_counted(&mut self) -> bool {
        let is_all = self.told == Told::Nothing;
        self.end();
        self.are_counted = true;
        is_all
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        *self = Self { are_counted: self.are_counted, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many answers these are: a thought, words, a call, `.` where what was called has answered, and `$` where it was told
    /// what one used.
    fn answers(parts: &str) -> usize {
        let mut answer = Answer::default();
        let mut count = 0;
        for letter in parts.chars() {
            match letter {
                't' => count += usize::from(answer.begins_with(Part::Thought)),
                'w' => count += usize::from(answer.begins_with(Part::Words)),
                'c' => count += usize::from(answer.begins_with(Part::Call)),
                '$' => count += usize::from(answer.is_counted()),
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

    #[test]
    fn where_it_is_told_what_answers_used_that_alone_tells_them_apart() {
        let cases = [("w$w$", 2), ("tc.$c.c.c.$w$", 3), ("$$w$", 3), ("c.$wc.tw$", 2), ("c.c.$w", 3)];

        for (parts, expected) in cases {
            assert_eq!(answers(parts), expected, "{parts}");
        }
    }
}
