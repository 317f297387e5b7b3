//! What the text of a setting means, wherever the text comes from.

use std::path::PathBuf;
use std::str::FromStr;

use proctor_cards::Layout;
use proctor_domain::CardDuration;
use proctor_domain::procedure::Records;
use proctor_domain::session::{EngineName, InvalidEngineName};
use proctor_engine::agent::Permission;
use proctor_process::confine::{Confine, Net};

use super::{LayoutRule, NameList, RecordsRule};

pub(super) fn layout(text: &str) -> Result<LayoutRule, String> {
    match text {
        "auto" => Ok(LayoutRule::Find),
        "proctor" => Ok(LayoutRule::Fixed(Layout::Proctor)),
        "beebox" => Ok(LayoutRule::Fixed(Layout::BeeBox)),
        other => Err(format!("`{other}` is none of auto, proctor, beebox")),
    }
}

pub(super) fn records(text: &str) -> Result<RecordsRule, String> {
    match text {
        "auto" => Ok(RecordsRule::ByLayout),
        "state" => Ok(RecordsRule::Fixed(Records::State)),
        "git" => Ok(RecordsRule::Fixed(Records::Git)),
        other => Err(format!("`{other}` is none of auto, state, git")),
    }
}

/// A limit for `whose` work.
pub(super) fn limit(text: &str, whose: &str) -> Result<CardDuration, String> {
    let duration: CardDuration = text.parse().map_err(|error: proctor_domain::duration::InvalidDuration| error.to_string())?;
    if duration.millis() == 0 { Err(format!("no {whose} can finish in no time")) } else { Ok(duration) }
}

pub(super) fn state_dir(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(format!("`{text}` is not an absolute path")) }
}

pub(super) fn engine(text: &str) -> Result<EngineName, String> {
    text.parse().map_err(|error: InvalidEngineName| error.to_string())
}

pub(super) fn confine(text: &str) -> Result<Confine, String> {
    Confine::from_str(text).map_err(|_| format!("`{text}` is none of auto, bwrap, landlock, container, none"))
}

pub(super) fn net(text: &str) -> Result<Net, String> {
    Net::from_str(text).map_err(|_| format!("`{text}` is none of all, none"))
}

/// An image; what begins with a dash would be read as an option.
pub(super) fn image(text: &str) -> Result<String, String> {
    let is_odd = text.is_empty() || text.starts_with('-') || text.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    if is_odd { Err(format!("`{text}` is no name of an image")) } else { Ok(text.to_owned()) }
}

pub(super) fn permission(text: &str) -> Result<Permission, String> {
    match text {
        "ask" => Ok(Permission::Ask),
        "bypass" => Ok(Permission::Bypass),
        other => Err(format!("`{other}` is none of ask, bypass")),
    }
}

/// A variable that an engine gets.
pub(super) fn variable(name: &str, value: &str) -> Result<(), String> {
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match () {
        () if !is_name => Err(format!("`{name}` is no name of a variable")),
        () if value.contains('\0') => Err("a value holds no zero byte".to_owned()),
        () if name.starts_with("PROCTOR_") => Err(format!("`{name}` is Proctor's own")),
        () => Ok(()),
    }
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("`{text}` is none of true, false"))
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') { Err(format!("`{text}` is no path")) } else { Ok(PathBuf::from(text)) }
}

/// A model as its engine calls it; what begins with a dash would be read as an option.
pub(super) fn model(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.starts_with('-') && !text.contains(|letter: char| letter.is_whitespace() || letter == '\0');
    if is_name { Ok(text.to_owned()) } else { Err(format!("`{text}` is no model's name")) }
}

/// Names separated by commas.
pub(super) fn names(list: NameList, text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.iter().try_for_each(|name| check_name(list, name))?;
    Ok(names)
}

/// Whether `name` can be in `list`.
pub(super) fn check_name(list: NameList, name: &str) -> Result<(), String> {
    match list {
        NameList::PassEnv | NameList::Secrets => check_variable(name),
        NameList::Linger => check_program(name),
    }
}

fn check_variable(name: &str) -> Result<(), String> {
    let starts_well = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if starts_well && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Ok(());
    }
    Err(format!("`{name}` is no name of an environment variable"))
}

fn check_program(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['/', '\0']) {
        return Err(format!("`{name}` is no program's name: give the name without its folder"));
    }
    Ok(())
}
