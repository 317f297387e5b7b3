//! The arguments of tools: each is described once, for the schema, for the check and for the page in `docs/`.

use proctor_recall::Word;
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

use super::answer::Refusal;

/// The most bytes of one text.
pub(super) const LONGEST_TEXT: usize = 8 * 1024;
/// The most items of one list, and the most bytes of one of them.
const LONGEST_LIST: usize = 50;
const LONGEST_ITEM: usize = 1024;

/// An argument of a tool.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) about: &'static str,
}

/// What an argument may be.
#[derive(Debug)]
pub(super) enum Shape {
    /// A text.
    Text,
    /// A word from a list.
    Word(fn() -> Vec<&'static str>),
    /// A list of texts.
    Texts,
    /// A whole number, and what counts without one, where that is one number.
    Number { least: u64, most: u64, otherwise: Option<u64> },
}

/// Whether a call has to have an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Must,
    May,
}

/// The arguments of one tool.
pub(super) type Fields = &'static [(&'static Field, Need)];

/// The words of a closed list of records.
pub(super) fn words<T: Word>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

impl Field {
    pub(super) const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, shape, about }
    }

    fn schema(&self) -> Value {
        let text = |most: usize| json!({ "type": "string", "maxLength": most });
        let mut schema = match self.shape {
            Shape::Text => text(LONGEST_TEXT),
            Shape::Word(words) => json!({ "type": "string", "enum": words() }),
            Shape::Texts => json!({ "type": "array", "items": text(LONGEST_ITEM), "maxItems": LONGEST_LIST }),
            Shape::Number { least, most, otherwise } => {
                let mut number = json!({ "type": "integer", "minimum": least, "maximum": most });
                if let Some(otherwise) = otherwise {
                    number["default"] = otherwise.into();
                }
                number
            }
        };
        schema["description"] = self.about.into();
        schema
    }

    /// Says what is wrong with a value.
    fn check(&self, value: &Value) -> Result<(), Refusal> {
        let name = self.name;
        let not = |what: &str| Refusal::new(format!("`{name}` is not {what}"));
        match self.shape {
            Shape::Text => check_text(name, value.as_str().ok_or_else(|| not("a text"))?, LONGEST_TEXT),
            Shape::Word(words) => {
                let said = value.as_str().ok_or_else(|| not("a word"))?;
                if words().contains(&said) { Ok(()) } else { Err(not(&format!("one of {}", words().join(", ")))) }
            }
            Shape::Texts => {
                let items = value.as_array().ok_or_else(|| not("a list of texts"))?;
                if items.len() > LONGEST_LIST {
                    return Err(Refusal::new(format!("`{name}` has {} items; at most {LONGEST_LIST} are taken", items.len())));
                }
                items.iter().try_for_each(|item| check_text(name, item.as_str().ok_or_else(|| not("a list of texts"))?, LONGEST_ITEM))
            }
            Shape::Number { least, most, .. } => {
                let number = value.as_u64().filter(|number| (least..=most).contains(number));
                number.map(|_| ()).ok_or_else(|| not(&format!("a whole number from {least} to {most}")))
            }
        }
    }
}

fn check_text(name: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::new(format!("`{name}` has {} bytes; at most {most} are taken", text.len())));
    }
    if text.contains('\0') { Err(Refusal::new(format!("`{name}` has a null character"))) } else { Ok(()) }
}

/// The JSON schema of a tool's arguments.
pub(super) fn schema(fields: Fields) -> JsonObject {
    let properties: JsonObject = fields.iter().map(|(field, _)| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|(_, need)| *need == Need::Must).map(|(field, _)| field.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// The arguments of a call, each of which is what its field says.
#[derive(Debug)]
pub(super) struct Given(JsonObject);

impl Given {
    /// Checks what a call was given. An argument that is null or blank counts as left out.
    ///
    /// # Errors
    /// One is missing, unknown, too long or of another kind.
    pub(super) fn read(fields: Fields, arguments: Option<JsonObject>) -> Result<Self, Refusal> {
        let is_blank = |value: &Value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
        let arguments: JsonObject = arguments.unwrap_or_default();
        for name in arguments.keys() {
            if !fields.iter().any(|(field, _)| field.name == name) {
                let names: Vec<&str> = fields.iter().map(|(field, _)| field.name).collect();
                let name: String = name.chars().take(60).collect();
                return Err(Refusal::new(format!("there is no argument `{name}`; there are {}", names.join(", "))));
            }
        }
        for (field, need) in fields {
            match arguments.get(field.name) {
                Some(value) if !is_blank(value) => field.check(value)?,
                Some(_) if *need == Need::Must => return Err(Refusal::new(format!("`{}` is empty: {}", field.name, field.about))),
                None if *need == Need::Must => return Err(Refusal::new(format!("`{}` is missing: {}", field.name, field.about))),
                Some(_) | None => {}
            }
        }
        Ok(Self(arguments.into_iter().filter(|(_, value)| !is_blank(value)).collect()))
    }

    /// A text or a word, without white space around it.
    pub(super) fn text(&self, field: &Field) -> Option<&str> {
        self.0.get(field.name).and_then(Value::as_str).map(str::trim)
    }

    /// Every text of a list that is not blank.
    pub(super) fn texts(&self, field: &Field) -> Vec<&str> {
        let items = self.0.get(field.name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).collect()
    }

    /// A number that was given.
    pub(super) fn chosen(&self, field: &Field) -> Option<usize> {
        self.0.get(field.name).and_then(Value::as_u64).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// A number, or what counts without one.
    pub(super) fn number(&self, field: &Field) -> usize {
        let otherwise = match field.shape {
            Shape::Number { otherwise, .. } => otherwise.unwrap_or(0),
            Shape::Text | Shape::Word(_) | Shape::Texts => 0,
        };
        self.chosen(field).unwrap_or_else(|| usize::try_from(otherwise).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ROUTE: Field = Field::new("route", Shape::Text, "What was done");
    static KIND: Field = Field::new("kind", Shape::Word(|| vec!["a", "b"]), "Which");
    static FILES: Field = Field::new("files", Shape::Texts, "Files");
    static LIMIT: Field = Field::new("limit", Shape::Number { least: 1, most: 20, otherwise: Some(5) }, "How many");
    const FIELDS: Fields = &[(&ROUTE, Need::Must), (&KIND, Need::May), (&FILES, Need::May), (&LIMIT, Need::May)];

    fn read(arguments: Value) -> Result<Given, String> {
        Given::read(FIELDS, arguments.as_object().cloned()).map_err(|refusal| refusal.text)
    }

    #[test]
    fn each_argument_that_is_not_what_it_should_be_is_refused_by_its_name() {
        let long = "é".repeat(LONGEST_TEXT / 2 + 1);
        for (arguments, refusal) in [
            (json!(null), "`route` is missing: What was done"),
            (json!({ "route": " \n" }), "`route` is empty: What was done"),
            (json!({ "route": 3 }), "`route` is not a text"),
            (json!({ "route": long }), "`route` has 8194 bytes; at most 8192 are taken"),
            (json!({ "route": "r\u{0}" }), "`route` has a null character"),
            (json!({ "route": "r", "kind": "c" }), "`kind` is not one of a, b"),
            (json!({ "route": "r", "files": "f" }), "`files` is not a list of texts"),
            (json!({ "route": "r", "files": vec!["f"; 51] }), "`files` has 51 items; at most 50 are taken"),
            (json!({ "route": "r", "files": ["f".repeat(1025)] }), "`files` has 1025 bytes; at most 1024 are taken"),
            (json!({ "route": "r", "limit": 0 }), "`limit` is not a whole number from 1 to 20"),
            (json!({ "route": "r", "limit": -1 }), "`limit` is not a whole number from 1 to 20"),
            (json!({ "route": "r", "other": 1 }), "there is no argument `other`; there are route, kind, files, limit"),
        ] {
            assert_eq!(read(arguments).map(|_| ()), Err(refusal.to_owned()));
        }
    }

    #[test]
    fn what_is_left_out_null_or_blank_is_the_same() {
        let given = read(json!({ "route": " r ", "kind": "", "files": null })).unwrap();

        assert_eq!((given.text(&ROUTE), given.text(&KIND), given.texts(&FILES).len(), given.number(&LIMIT)), (Some("r"), None, 0, 5));
        assert_eq!(read(json!({ "route": "r", "limit": 7, "files": ["a", " "] })).map(|given| given.number(&LIMIT)), Ok(7));
    }
}
