//! Tiers of models, and what they are called by each engine.

use std::collections::BTreeMap;

use proctor_domain::session::EngineName;

use super::EngineKind;

/// How strong a model is asked for, whatever the engine calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Quick and cheap.
    Efficient,
    /// The usual one.
    Balanced,
    /// For hard work.
    Strong,
    /// The best there is.
    Strongest,
}

/// What is known of one tier: its name, another name that means the same, and the model of each engine.
#[derive(Debug, Clone, Copy)]
pub struct TierRow {
    /// The tier.
    pub tier: Tier,
    /// Its name in cards.
    pub name: &'static str,
    /// Another name that cards may use.
    pub alias: &'static str,
    /// What Claude Code calls its model; its own short names follow the newest one.
    pub claude: &'static str,
    /// What Codex calls its model.
    pub codex: &'static str,
    /// What OpenCode calls the model of that name at Anthropic; every provider that it knows has its own.
    pub opencode: &'static str,
}

/// The one table of tiers. The scripted engine has no models and takes the tier's name.
pub const TIERS: [TierRow; 4] = [
    TierRow {
        tier: Tier::Efficient,
        name: "efficient",
        alias: "haiku",
        claude: "haiku",
        codex: "gpt-6-luna",
        opencode: "anthropic/claude-haiku-4-5",
    },
    TierRow {
        tier: Tier::Balanced,
        name: "balanced",
        alias: "sonnet",
        claude: "sonnet",
        codex: "gpt-6.2-sol",
        opencode: "anthropic/claude-sonnet-5",
    },
    TierRow {
        tier: Tier::Strong,
        name: "strong",
        alias: "opus",
        claude: "opus",
        codex: "gpt-6.2-astra",
        opencode: "anthropic/claude-opus-5-5",
    },
    TierRow {
        tier: Tier::Strongest,
        name: "strongest",
        alias: "fable",
        claude: "fable",
        codex: "gpt-6.2-astra",
        opencode: "anthropic/claude-fable-5-1",
    },
];

/// Tiers as they are to be read here: the table, with what the settings say over it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelTable {
    /// By engine and tier.
    pub overrides: BTreeMap<(EngineName, Tier), String>,
}

impl Tier {
    /// The tier of this name or alias.
    pub fn named(word: &str) -> Option<Self> {
        TIERS.iter().find(|row| row.name == word || row.alias == word).map(|row| row.tier)
    }
}

impl ModelTable {
    /// What the engine of this name and kind calls the model that a card asks for: a tier, its alias, or a model's own name.
    pub fn model(&self, name: &EngineName, kind: EngineKind, asked: &str) -> String {
        let Some(row) = TIERS.iter().find(|row| row.name == asked || row.alias == asked) else { return asked.to_owned() };
        if let Some(model) = self.overrides.get(&(name.clone(), row.tier)) {
            return model.clone();
        }
        match kind {
            EngineKind::Claude => row.claude,
            EngineKind::Codex => row.codex,
            EngineKind::OpenCode => row.opencode,
            // What an agent calls its models is known when it has been asked.
            EngineKind::Acp | EngineKind::Command | EngineKind::Scripted => row.name,
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_its_alias_and_a_model_of_its_own_find_their_names() {
        let mut table = ModelTable::default();
        let claude = EngineKind::Claude.engine_name();
        table.overrides.insert((claude.clone(), Tier::Strong), "claude-opus-9".to_owned());

        let names =
            ["efficient", "haiku", "strong", "opus", "claude-sonnet-4-5"].map(|asked| table.model(&claude, EngineKind::Claude, asked));

        assert_eq!(names, ["haiku", "haiku", "claude-opus-9", "claude-opus-9", "claude-sonnet-4-5"]);
        assert_eq!(table.model(&EngineKind::Scripted.engine_name(), EngineKind::Scripted, "opus"), "strong");
    }
}
