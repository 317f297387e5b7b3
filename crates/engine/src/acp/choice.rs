//! The mode and the model of a session, where its agent lets them be chosen.
//!
//! The protocol gives modes no meaning, only ids. So those of the agents that we know are listed here; an agent that has none
//! of them stays in its own, and what it asks about is answered by the session's access all the same.

use super::answer::{ConfigOption, Named, Session};
use crate::agent::{Access, Permission, TIERS, Tier};

/// Modes that ask before they change anything, the strictest first.
const READING: [&str; 4] = ["read-only", "default", "ask", "plan"];
/// Modes that ask before they change much.
const ASKING: [&str; 3] = ["default", "workspace-write", "ask"];
/// Modes that ask about nothing, since the box is what limits them.
const FREE: [&str; 3] = ["bypassPermissions", "agent-full-access", "yolo"];

/// How many names are told of those that could be chosen.
const TOLD: usize = 12;

/// Something to be set before the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Setting { option: String, value: String },
    Mode(String),
    Model(String),
}

/// The mode that fits best, where it is one of those that are known, and whether it is another one than the current.
pub(super) fn mode(session: &Session, access: Access, permission: Permission) -> Option<(Choice, bool)> {
    let wanted: &[&str] = match (access, permission) {
        (Access::ReadOnly, _) => &READING,
        (Access::Full, Permission::Ask) => &ASKING,
        (Access::Full, Permission::Bypass) => &FREE,
    };
    let fitting = |offered: &[Named]| wanted.iter().find(|id| offered.iter().any(|one| one.id == **id)).map(|id| (*id).to_owned());
    if let Some(option) = option(session, "mode") {
        let value = fitting(&option.values())?;
        let is_another = value != option.current_value;
        return Some((Choice::Setting { option: option.id.clone(), value }, is_another));
    }
    let modes = session.modes.as_ref()?;
    let id = fitting(&modes.available_modes)?;
    let is_another = id != modes.current_mode_id;
    Some((Choice::Mode(id), is_another))
}

/// The model to be set, if another one than the current is asked for. The error is a sentence.
pub(super) fn model(session: &Session, asked: Option<&str>) -> Result<Option<Choice>, String> {
    let Some(asked) = asked else { return Ok(None) };
    let (offered, current) = match (option(session, "model"), &session.models) {
        (Some(option), _) => (option.values(), option.current_value.as_str()),
        (None, Some(models)) => (models.available_models.clone(), models.current_model_id.as_str()),
        (None, None) if Tier::named(asked).is_some() => return Ok(None),
        (None, None) => return Err(format!("the agent lets nobody choose its model, and `{asked}` is asked for")),
    };
    let id = match (matching(&offered, current, asked).or_else(|| of_tier(&offered, current, asked)), Tier::named(asked)) {
        (Some(id), _) => id,
        // What an agent has for a tier, only the settings can say. Without a word the agent's own choice holds.
        (None, Some(_)) => return Ok(None),
        (None, None) => return Err(no_such_model(asked, &offered)),
    };
    Ok((id != current).then(|| match option(session, "model") {
        Some(option) => Choice::Setting { option: option.id.clone(), value: id },
        None => Choice::Model(id),
    }))
}

impl Choice {
    /// What it is set to.
    pub(super) fn value(&self) -> &str {
        match self {
            Self::Setting { value, .. } => value,
            Self::Mode(id) | Self::Model(id) => id,
        }
    }
}

/// The model that answers, by the agent's name for it.
pub(super) fn current_model(session: &Session) -> Option<String> {
    let chosen = option(session, "model").map(|option| &option.current_value);
    chosen.or(session.models.as_ref().map(|models| &models.current_model_id)).filter(|id| !id.is_empty()).cloned()
}

fn option<'a>(session: &'a Session, category: &str) -> Option<&'a ConfigOption> {
    session.config_options.iter().find(|option| option.category.as_deref() == Some(category))
}

/// Some agents have each model once for each effort, as `model[effort]`: the current effort stays.
fn matching(offered: &[Named], current: &str, asked: &str) -> Option<String> {
    if current == asked {
        return Some(asked.to_owned());
    }
    let effort = current.find('[').map_or("", |at| &current[at..]);
    let with_effort = format!("{asked}{effort}");
    let find = |wanted: &dyn Fn(&Named) -> bool| offered.iter().find(|one| wanted(one)).map(|one| one.id.clone());
    find(&|one| one.id == asked).or_else(|| find(&|one| one.id == with_effort)).or_else(|| find(&|one| one.name == asked))
}

/// Agents that know the models of Anthropic call them by the names that tiers may go by.
fn of_tier(offered: &[Named], current: &str, asked: &str) -> Option<String> {
    let row = TIERS.iter().find(|row| row.name == asked || row.alias == asked)?;
    matching(offered, current, row.alias)
}

fn no_such_model(asked: &str, offered: &[Named]) -> String {
    let mut names: Vec<&str> = offered.iter().map(|one| one.id.as_str()).take(TOLD).collect();
    if offered.len() > TOLD {
        names.push("…");
    }
    format!("the agent has no model `{asked}`; it offers {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::wire::parsed;
    use super::*;

    fn session(text: &str) -> Session {
        parsed(text).unwrap()
    }

    const MODES: &str =
        r#"{"modes":{"currentModeId":"auto","availableModes":[{"id":"default"},{"id":"plan"},{"id":"bypassPermissions"}]}}"#;
    const OPTIONS: &str = r#"{"configOptions":[
        {"id":"m","category":"mode","type":"select","currentValue":"agent","options":[
            {"group":"all","name":"All","options":[{"value":"read-only","name":"r"},{"value":"agent-full-access","name":"f"}]}]},
        {"id":"model","category":"model","type":"select","currentValue":"a[high]","options":[
            {"value":"a[high]","name":"A"},{"value":"b[low]","name":"B low"},{"value":"b[high]","name":"B"}, 7]}]}"#;

    #[test]
    fn the_mode_is_the_one_that_fits_the_access() {
        let chosen = |text, access, permission| mode(&session(text), access, permission);
        let by_mode = |id: &str| Some((Choice::Mode(id.to_owned()), true));
        let by_option = |value: &str| Some((Choice::Setting { option: "m".to_owned(), value: value.to_owned() }, true));
        let yolo = r#"{"modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo"}]}}"#;

        assert_eq!(chosen(MODES, Access::ReadOnly, Permission::Bypass), by_mode("default"));
        assert_eq!(chosen(MODES, Access::Full, Permission::Ask), by_mode("default"));
        assert_eq!(chosen(MODES, Access::Full, Permission::Bypass), by_mode("bypassPermissions"));
        assert_eq!(chosen(OPTIONS, Access::ReadOnly, Permission::Ask), by_option("read-only"));
        assert_eq!(chosen(OPTIONS, Access::Full, Permission::Bypass), by_option("agent-full-access"));
        assert_eq!(chosen(OPTIONS, Access::Full, Permission::Ask), None);
        assert_eq!(chosen("{}", Access::ReadOnly, Permission::Ask), None);
        assert_eq!(chosen(yolo, Access::Full, Permission::Bypass), Some((Choice::Mode("yolo".to_owned()), false)));
    }

    #[test]
    fn a_model_is_found_by_its_id_its_name_or_its_id_without_the_effort() {
        let chosen = |asked| model(&session(OPTIONS), Some(asked)).map(|choice| choice.map(|choice| format!("{choice:?}")));
        let set = |value: &str| Ok(Some(format!("{:?}", Choice::Setting { option: "model".to_owned(), value: value.to_owned() })));

        assert_eq!([chosen("b[low]"), chosen("b"), chosen("B low")], [set("b[low]"), set("b[high]"), set("b[low]")]);
        assert_eq!([chosen("a"), chosen("a[high]")], [Ok(None), Ok(None)]);
        assert_eq!(chosen("c"), Err("the agent has no model `c`; it offers a[high], b[low], b[high]".to_owned()));
        assert_eq!(model(&session(MODES), None), Ok(None));
        assert_eq!([chosen("balanced"), model(&session(MODES), Some("sonnet")).map(|_| None)], [Ok(None), Ok(None)]);
        assert!(model(&session(MODES), Some("a")).unwrap_err().contains("lets nobody choose"));
    }

    #[test]
    fn a_tier_is_the_model_that_goes_by_its_alias() {
        let claude =
            session(r#"{"configOptions":[{"id":"model","category":"model","currentValue":"default","options":[{"value":"sonnet"}]}]}"#);

        let choice = model(&claude, Some("balanced")).unwrap().unwrap();

        assert_eq!(choice.value(), "sonnet");
    }

    #[test]
    fn an_agent_with_the_older_list_of_models_is_asked_in_the_older_way() {
        let older =
            session(r#"{"models":{"currentModelId":"x","availableModels":[{"modelId":"x","name":"X"},{"modelId":"y","name":"Y"}]}}"#);

        assert_eq!(model(&older, Some("y")), Ok(Some(Choice::Model("y".to_owned()))));
        assert_eq!(current_model(&older), Some("x".to_owned()));
    }
}
