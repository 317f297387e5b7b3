//! `proctor trust`

use proctor_domain::ExitCode;
use serde::Serialize;

use super::question::{Answer, confirm, refuse_under_session};
use crate::Invocation;
use crate::args::setup::TrustArgs;
use crate::place::Place;
use crate::printer::visible_line;
use crate::report::Report;
use crate::settings::Sensitive;
use crate::settings::trust::{self, Consent};

#[derive(Serialize)]
struct Trust<'asks> {
    version: u32,
    file: Option<String>,
    /// What it asks for that needs consent.
    asks: Vec<Asked<'asks>>,
    /// `not-needed`, `given` or `missing`.
    consent: &'static str,
}

#[derive(Serialize)]
struct Asked<'asks> {
    key: &'static str,
    values: &'asks [String],
}

/// Shows what the repository asks for, and accepts it, or takes back what was accepted.
pub fn run(invocation: &Invocation, args: &TrustArgs) -> Result<ExitCode, Report> {
    let place = Place::find(invocation)?;
    let sensitive = place.layers.sensitive();
    if args.revoke {
        refuse_under_session(invocation)?;
        if let Some(state) = place.find_state(invocation)? {
            trust::revoke(state.root())?;
        }
        invocation.printer.say("nothing that this repository's settings ask for is accepted any more");
        return Ok(finish(invocation, args, &place, &sensitive, place.consent(None)?));
    }
    let consent = place.consent(place.find_state(invocation)?.as_ref())?;
    match consent {
        Consent::NotNeeded => invocation.printer.say("this repository's settings ask for nothing that needs your consent"),
        Consent::Given => {
            invocation.printer.say("you have accepted these values");
            if !args.json {
                describe(invocation, &place, &sensitive);
            }
        }
        Consent::Missing if args.json && !args.yes => {}
        Consent::Missing => {
            refuse_under_session(invocation)?;
            describe(invocation, &place, &sensitive);
            if !args.yes && confirm(invocation, "Accept?", "--yes")? == Answer::No {
                invocation.printer.say("nothing was accepted");
                return Ok(ExitCode::Failed);
            }
            trust::accept(&sensitive, place.establish_state(invocation)?.root())?;
            invocation.printer.say("accepted; when these values change, you are asked again");
            return Ok(finish(invocation, args, &place, &sensitive, Consent::Given));
        }
    }
    Ok(finish(invocation, args, &place, &sensitive, consent))
}

fn describe(invocation: &Invocation, place: &Place, sensitive: &Sensitive) {
    let file = place.layers.repository_file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
    invocation.printer.insist(&format!("{} asks:", visible_line(&file)));
    for ask in &sensitive.asks {
        let values = visible_line(&ask.values.join(", ")).into_owned();
        invocation.printer.insist(&format!("  {} ({}): {values}", ask.purpose(), ask.key.name()));
    }
}

fn finish(invocation: &Invocation, args: &TrustArgs, place: &Place, sensitive: &Sensitive, consent: Consent) -> ExitCode {
    if args.json {
        invocation.printer.json(&Trust {
            version: 1,
            file: place.layers.repository_file.as_deref().map(|file| file.display().to_string()),
            asks: sensitive.asks.iter().map(|ask| Asked { key: ask.key.name(), values: &ask.values }).collect(),
            consent: match consent {
                Consent::NotNeeded => "not-needed",
                Consent::Given => "given",
                Consent::Missing => "missing",
            },
        });
    }
    ExitCode::Done
}
