//! Finds what an expression refers to, before minijinja sees it.

use std::ops::Range;

use super::LONGEST_EXPRESSION;
use crate::finding::shown;
use crate::nearest::nearest;

/// What an expression refers to, what is wrong with it, and the form in which minijinja reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Every input and output, in the order of the text.
    pub references: Vec<Reference>,
    /// Everything that keeps it from being evaluated.
    pub problems: Vec<Problem>,
    pub(super) rewritten: String,
    tokens: usize,
}

impl Scan {
    pub(super) fn failed(problem: Problem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// The same scan of an expression that stands at this byte of a longer text.
    pub(super) fn shifted(mut self, by: usize) -> Self {
        let ranges = self.references.iter_mut().map(|reference| &mut reference.range);
        for range in ranges.chain(self.problems.iter_mut().map(|problem| &mut problem.range)) {
            *range = range.start + by..range.end + by;
        }
        self
    }

    /// The reference that the expression is, when it is nothing else.
    pub fn single(&self) -> Option<&Target> {
        match self.references.as_slice() {
            [only] if self.tokens == 1 => Some(&only.target),
            _ => None,
        }
    }
}

/// One input or output in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The bytes of the expression where it stands.
    pub range: Range<usize>,
    /// What it names.
    pub target: Target,
    /// What it is compared with as it stands, where that is written out. A text never equals a number, and their
    /// order has nothing to do with what the text says.
    pub compared_with: Option<Literal>,
}

/// A value that is written out in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    /// `3`
    Number,
    /// `'3'`
    Text,
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `inputs.NAME`.
    Input(String),
    /// `steps.ID.outputs.NAME`.
    Output {
        /// The step's id.
        step: String,
        /// The output's name.
        name: String,
    },
}

/// Something wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The bytes of the expression that it is about.
    pub range: Range<usize>,
    /// One sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text that stays as it is.
    Text(Range<usize>),
    /// A `${{ … }}`.
    Expression {
        /// With its braces.
        whole: Range<usize>,
        /// Without them.
        inner: Range<usize>,
    },
    /// A `${{` without its end.
    Unclosed(Range<usize>),
}

/// Splits a template. Braces and quotes inside an expression are followed, so that `}}` in a text or
/// at the end of nested maps does not end it.
pub fn parts(template: &str) -> Parts<'_> {
    Parts { template, next: 0 }
}

/// The pieces of a template, in order.
#[derive(Debug, Clone)]
pub struct Parts<'t> {
    template: &'t str,
    next: usize,
}

impl Iterator for Parts<'_> {
    type Item = TemplatePart;

    fn next(&mut self) -> Option<TemplatePart> {
        let start = self.next;
        let rest = self.template.get(start..).filter(|rest| !rest.is_empty())?;
        let Some(after) = rest.strip_prefix("${{") else {
            self.next = start + rest.find("${{").unwrap_or(rest.len());
            return Some(TemplatePart::Text(start..self.next));
        };
        let Some(length) = expression_end(after) else {
            self.next = self.template.len();
            return Some(TemplatePart::Unclosed(start..start + 3));
        };
        let inner = start + 3..start + 3 + length;
        self.next = inner.end + 2;
        Some(TemplatePart::Expression { whole: start..self.next, inner })
    }
}

fn expression_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut position = 0;
    while position < bytes.len() {
        match bytes[position] {
            quote @ (b'\'' | b'"') => position += string_length(&bytes[position..], quote)?,
            b'{' => {
                depth += 1;
                position += 1;
            }
            b'}' if depth == 0 && bytes.get(position + 1) == Some(&b'}') => return Some(position),
            b'}' => {
                depth = depth.saturating_sub(1);
                position += 1;
            }
            _ => position += 1,
        }
    }
    None
}

/// The length of the string literal at the start of `bytes`, with its quotes.
fn string_length(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut position = 1;
    while position < bytes.len() {
        match bytes[position] {
            b'\\' => position += 2,
            byte if byte == quote => return Some(position + 1),
            _ => position += 1,
        }
    }
    None
}

/// Words of the language that are no names.
const WORDS: [&str; 13] = ["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];

/// Filters that an expression may use: those that make sense for texts and numbers, and whose result is not
/// out of proportion to what goes in.
const FILTERS: [&str; 25] = [
    "abs",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "first",
    "float",
    "int",
    "join",
    "last",
    "length",
    "lines",
    "lower",
    "max",
    "min",
    "replace",
    "round",
    "sort",
    "split",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
];

/// Tests that may stand after `is`.
const TESTS: [&str; 27] = [
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "le",
    "lessthan",
    "lower",
    "lt",
    "ne",
    "none",
    "number",
    "odd",
    "startingwith",
    "string",
    "true",
    "undefined",
];

/// Reads `expression` token by token.
pub(super) fn scan(expression: &str) -> Scan {
    let mut scan = Scan::default();
    if expression.len() > LONGEST_EXPRESSION {
        let message = format!("an expression of more than {LONGEST_EXPRESSION} bytes is not read");
        scan.problems.push(Problem { range: 0..expression.len(), message, hint: None });
        return scan;
    }
    if expression.trim().is_empty() {
        scan.problems.push(Problem { range: 0..expression.len(), message: "the expression is empty".to_owned(), hint: None });
        return scan;
    }
    Scanner { text: expression, position: 0, before: Before::Nothing, scan: &mut scan }.run();
    scan
}

/// What the token before says about a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Dot,
    Pipe,
    Is,
    IsNot,
}

struct Scanner<'t, 's> {
    text: &'t str,
    position: usize,
    before: Before,
    scan: &'s mut Scan,
}

impl Scanner<'_, '_> {
    fn run(mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.position) {
            let start = self.position;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.keep(1);
                    continue;
                }
                quote @ (b'\'' | b'"') => match string_length(&bytes[start..], quote) {
                    Some(length) => self.keep(length),
                    None => {
                        self.problem(start..self.text.len(), "a text in the expression has no closing quote", None);
                        return;
                    }
                },
                b'0'..=b'9' => self.keep(run_length(&bytes[start..], |byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')),
                byte if is_name_start(byte) => {
                    self.name(start);
                    self.scan.tokens += 1;
                    continue;
                }
                byte if byte.is_ascii() => self.keep(1),
                _ => {
                    let letter = self.text[start..].chars().next().unwrap_or(' ');
                    self.problem(start..start + letter.len_utf8(), "only texts in quotes can hold this character", None);
                    self.position += letter.len_utf8();
                }
            }
            self.scan.tokens += 1;
            self.before = match byte {
                b'.' => Before::Dot,
                b'|' => Before::Pipe,
                _ => Before::Nothing,
            };
        }
    }

    fn keep(&mut self, length: usize) {
        let end = (self.position + length).min(self.text.len());
        self.scan.rewritten.push_str(&self.text[self.position..end]);
        self.position = end;
    }

    fn problem(&mut self, range: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        self.scan.problems.push(Problem { range, message: message.into(), hint });
    }

    fn name(&mut self, start: usize) {
        let bytes = self.text.as_bytes();
        let length = run_length(&bytes[start..], |byte| is_name_start(byte) || byte.is_ascii_digit());
        let name = &self.text[start..start + length];
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        match before {
            Before::Pipe => self.known(start, name, "filter", &FILTERS),
            Before::Is if name == "not" => self.before = Before::IsNot,
            Before::Is | Before::IsNot => self.known(start, name, "test", &TESTS),
            // An attribute of something in parentheses.
            Before::Dot => {}
            Before::Nothing => match name {
                "inputs" => return self.input(start),
                "steps" => return self.output(start),
                "is" => self.before = Before::Is,
                name if WORDS.contains(&name) || self.is_argument_name(start + length) => {}
                name => {
                    let range = start..start + length;
                    let hint = "an expression sees `inputs.NAME` and `steps.ID.outputs.NAME`; a text needs quotes";
                    self.problem(range, format!("`{}` means nothing here", shown(name)), Some(hint.to_owned()));
                }
            },
        }
        self.keep(length);
    }

    /// Whether a `=` (and no `==`) follows: the name of an argument, as in `default(value='')`.
    fn is_argument_name(&self, end: usize) -> bool {
        let rest = self.text[end..].trim_start();
        rest.starts_with('=') && !rest.starts_with("==")
    }

    fn known(&mut self, start: usize, name: &str, what: &str, known: &[&'static str]) {
        if known.contains(&name) {
            return;
        }
        let hint = nearest(name, known.iter().copied())
            .map_or_else(|| format!("there are {}", known.join(", ")), |nearest| format!("did you mean `{nearest}`?"));
        self.problem(start..start + name.len(), format!("there is no {what} `{}`", shown(name)), Some(hint));
    }

    fn input(&mut self, start: usize) {
        let after = start + "inputs".len();
        match self.accessor(after) {
            Some((name, end)) => self.reference(start..end, Target::Input(name)),
            None => self.incomplete(start..after, "`inputs` is followed by the name of one, as in `inputs.version`"),
        }
    }

    fn output(&mut self, start: usize) {
        let after = start + "steps".len();
        let found = self.step_id(after).and_then(|(step, end)| {
            let rest = self.text[end..].strip_prefix(".outputs")?;
            let (name, end) = self.accessor(self.text.len() - rest.len())?;
            Some((step, name, end))
        });
        match found {
            Some((step, name, end)) => self.reference(start..end, Target::Output { step, name }),
            None => {
                self.incomplete(start..after, "`steps` is followed by an id and an output, as in `steps.build.outputs.tag`");
            }
        }
    }

    fn incomplete(&mut self, range: Range<usize>, message: &str) {
        let length = range.len();
        self.problem(range, message, None);
        self.keep(length);
    }

    fn reference(&mut self, range: Range<usize>, target: Target) {
        let rewritten = match &target {
            Target::Input(name) => format!("inputs[{}]", literal(name)),
            Target::Output { step, name } => format!("steps[{}].outputs[{}]", literal(step), literal(name)),
        };
        self.scan.rewritten.push_str(&rewritten);
        self.position = range.end;
        let (before, after) = (&self.text[..range.start], &self.text[range.end..]);
        let compared_with = literal_after(after).or_else(|| literal_before(before, after));
        self.scan.references.push(Reference { range, target, compared_with });
    }

    /// The step id after `steps`, which may itself hold dots: everything up to `.outputs`.
    fn step_id(&self, start: usize) -> Option<(String, usize)> {
        let rest = &self.text[start..];
        if !rest.starts_with('.') {
            return self.accessor(start);
        }
        let length = run_length(&rest.as_bytes()[1..], |byte| is_name_byte(byte) || byte == b'.');
        let run = &rest[1..=length];
        let end = run.find(".outputs").filter(|end| *end > 0)?;
        Some((run[..end].to_owned(), start + 1 + end))
    }

    /// `.name`, `['name']` or `["name"]` at `start`, and where it ends. A hyphen between letters or digits
    /// belongs to the name: inputs and outputs are named like that more often than they are subtracted.
    fn accessor(&self, start: usize) -> Option<(String, usize)> {
        let rest = &self.text[start..];
        if let Some(named) = rest.strip_prefix('.') {
            let length = run_length(named.as_bytes(), is_name_byte);
            let name = named[..length].trim_end_matches('-');
            return (!name.is_empty()).then(|| (name.to_owned(), start + 1 + name.len()));
        }
        let inside = rest.strip_prefix('[')?.trim_start();
        let quote = inside.bytes().next().filter(|byte| matches!(byte, b'\'' | b'"'))?;
        let length = string_length(inside.as_bytes(), quote)?;
        let name = &inside[1..length - 1];
        let closing = inside[length..].trim_start();
        let after = closing.strip_prefix(']')?;
        let plain = !name.is_empty() && !name.contains(['\\', '\'', '"']);
        plain.then(|| (name.to_owned(), self.text.len() - after.len()))
    }
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

fn literal_after(after: &str) -> Option<Literal> {
    let after = after.trim_start();
    let rest = COMPARISONS.iter().find_map(|comparison| after.strip_prefix(comparison))?.trim_start();
    match rest.trim_start_matches('-').chars().next()? {
        '\'' | '"' => Some(Literal::Text),
        letter => letter.is_ascii_digit().then_some(Literal::Number),
    }
}

fn literal_before(before: &str, after: &str) -> Option<Literal> {
    // A filter binds closer than a comparison: `3 < x | int` is fine.
    if after.trim_start().starts_with('|') {
        return None;
    }
    let before = before.trim_end();
    let rest = COMPARISONS.iter().find_map(|comparison| before.strip_suffix(comparison))?.trim_end();
    if rest.ends_with(['\'', '"']) {
        return Some(Literal::Text);
    }
    let word = rest.rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.').next()?;
    word.starts_with(|letter: char| letter.is_ascii_digit()).then_some(Literal::Number)
}

/// A string literal of the language. A reference holds neither backslash nor quote.
fn literal(name: &str) -> String {
    format!("'{name}'")
}

fn run_length(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| belongs(**byte)).count()
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn references(expression: &str) -> Vec<String> {
        scan(expression).references.iter().map(|reference| expression[reference.range.clone()].to_owned()).collect()
    }

    #[test]
    fn references_are_found_where_they_stand() {
        for (expression, expected) in [
            ("inputs.a and steps.b.outputs.c", &["inputs.a", "steps.b.outputs.c"][..]),
            ("inputs.dry-run or inputs.x - 1", &["inputs.dry-run", "inputs.x"]),
            ("steps.a-b.c.outputs['d e'] == 'inputs.no'", &["steps.a-b.c.outputs['d e']"]),
            ("[inputs[ \"a\" ]]", &["inputs[ \"a\" ]"]),
            ("(inputs.a | split(',')) | first", &["inputs.a"]),
        ] {
            assert_eq!(references(expression), expected, "{expression}");
        }
    }

    #[test]
    fn only_an_expression_that_is_a_reference_is_a_single_one() {
        assert_eq!(scan(" inputs.a-b ").single(), Some(&Target::Input("a-b".to_owned())));
        for expression in ["inputs.a | upper", "(inputs.a)", "inputs.a ~ inputs.b", "'inputs.a'", "-inputs.a"] {
            assert_eq!(scan(expression).single(), None, "{expression}");
        }
    }

    #[test]
    fn a_comparison_with_a_literal_is_noticed_on_both_sides() {
        for (expression, expected) in [
            ("inputs.a > 3", Some(Literal::Number)),
            ("inputs.a==-1.5", Some(Literal::Number)),
            ("3 <= inputs.a", Some(Literal::Number)),
            ("1.5 != inputs.a", Some(Literal::Number)),
            ("inputs.a > '3'", Some(Literal::Text)),
            ("\"3\" == inputs.a", Some(Literal::Text)),
            ("inputs.a | int > 3", None),
            ("3 < inputs.a | int", None),
            ("x3 == inputs.a", None),
            ("inputs.a == inputs.b", None),
            ("inputs.a", None),
        ] {
            assert_eq!(scan(expression).references[0].compared_with, expected, "{expression}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_and_split(text in r#"[a-z.'"\[\]{}$ |\\\-é=]{0,40}|(?s).{0,40}"#) {
            scan(&text);
            let whole: String = parts(&text).map(|part| match part {
                TemplatePart::Text(range) => text[range].to_owned(),
                TemplatePart::Expression { whole, .. } => text[whole].to_owned(),
                TemplatePart::Unclosed(range) => text[range.start..].to_owned(),
            }).collect();

            prop_assert_eq!(whole, text);
        }
    }
}
