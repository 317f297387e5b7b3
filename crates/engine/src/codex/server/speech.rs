//! What we say to the app-server. A test holds each message against the schema that Codex prints of its protocol.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::schema::strict;
use crate::agent::{Access, Opening, Permission};

/// What is asked first, each once.
pub(super) const INITIALIZE: u64 = 1;
pub(super) const THREAD: u64 = 2;
/// The first turn; what is asked later has further ids.
pub(super) const FIRST_TURN: u64 = 3;

/// JSON-RPC's word for a method that nobody serves.
const NO_SUCH_METHOD: i64 = -32601;

/// Parts of what comes whole later. A secret could not be found in what is cut into parts, and a line for each few letters would
/// make a transcript of many times its size.
const NOT_WANTED: [&str; 9] = [
    "command/exec/outputDelta",
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "turn/diff/updated",
];

pub(super) fn initialize() -> Value {
    let params = json!({
        "clientInfo": { "name": "proctor", "title": "Proctor", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "experimentalApi": false, "requestAttestation": false, "optOutNotificationMethods": NOT_WANTED },
    });
    request(INITIALIZE, "initialize", params)
}

pub(super) fn initialized() -> Value {
    json!({ "method": "initialized" })
}

/// Begins a thread, or goes on with one.
///
/// A directory is named only where a thread goes on, which may have been elsewhere. One that is named at the beginning Codex takes
/// as trusted from then on: it writes that down, and takes in what the repository's `.codex/config.toml` says.
pub(super) fn thread(opening: &Opening) -> Value {
    let instructions = Some(&opening.system).filter(|system| !system.is_empty());
    let mut params = json!({
        "model": opening.model,
        "approvalPolicy": "never",
        "sandbox": sandbox(opening.access, opening.permission),
        // Beside the client's own instructions about its tools.
        "developerInstructions": instructions,
    });
    match &opening.resume {
        None => request(THREAD, "thread/start", params),
        Some(id) => {
            params["threadId"] = json!(id);
            params["cwd"] = json!(opening.directory.to_string_lossy());
            params["excludeTurns"] = json!(true);
            request(THREAD, "thread/resume", params)
        }
    }
}

/// The client's own box, which holds for what its commands write. Within a box that lets an agent write, one of its own can't
/// always be made, and would forbid what that allows.
fn sandbox(access: Access, permission: Permission) -> &'static str {
    match (access, permission) {
        (Access::ReadOnly, _) => "read-only",
        (Access::Full, Permission::Ask) => "workspace-write",
        (Access::Full, Permission::Bypass) => "danger-full-access",
    }
}

pub(super) fn turn(id: u64, thread: &str, text: &str, schema: Option<&str>) -> Value {
    let schema: Option<Value> = schema.and_then(|schema| serde_json::from_str(&strict(schema)).ok());
    request(id, "turn/start", json!({ "threadId": thread, "input": input(text), "outputSchema": schema }))
}

pub(super) fn steer(id: u64, thread: &str, turn: &str, text: &str) -> Value {
    request(id, "turn/steer", json!({ "threadId": thread, "expectedTurnId": turn, "input": input(text) }))
}

pub(super) fn interrupt(id: u64, thread: &str, turn: &str) -> Value {
    request(id, "turn/interrupt", json!({ "threadId": thread, "turnId": turn }))
}

fn input(text: &str) -> Value {
    json!([{ "type": "text", "text": text, "text_elements": [] }])
}

/// What is answered to a request of the server; `None` where it is not served.
///
/// Codex is told to ask nobody, and asks all the same where a hook or the rules of an administrator say so. What is allowed would run
/// outside of its box, so that it is allowed only where there is none. Questions are answered by nobody.
pub(super) fn answer(method: &str, access: Access, permission: Permission) -> Option<Value> {
    let is_allowed = matches!((access, permission), (Access::Full, Permission::Bypass));
    let decision = if is_allowed { "accept" } else { "decline" };
    Some(match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => json!({ "decision": decision }),
        "item/permissions/requestApproval" => json!({ "permissions": {}, "scope": "turn" }),
        "item/tool/requestUserInput" => json!({ "answers": {} }),
        "mcpServer/elicitation/request" => json!({ "action": "decline", "content": null, "_meta": null }),
        _ => return None,
    })
}

/// An answer, which is that nobody serves that where there is none.
pub(super) fn reply(id: &RawValue, answer: Option<Value>) -> Value {
    match answer {
        Some(result) => json!({ "id": id, "result": result }),
        None => json!({ "id": id, "error": { "code": NO_SUCH_METHOD, "message": "Method not found" } }),
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "id": id, "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_that_needs_no_box_is_allowed_anything() {
        let cases = [
            (Access::ReadOnly, Permission::Ask),
            (Access::ReadOnly, Permission::Bypass),
            (Access::Full, Permission::Ask),
            (Access::Full, Permission::Bypass),
        ];
        let decisions = |method| cases.map(|(access, permission)| answer(method, access, permission).unwrap()["decision"].clone());

        for method in ["item/commandExecution/requestApproval", "item/fileChange/requestApproval"] {
            assert_eq!(decisions(method), ["decline", "decline", "decline", "accept"], "{method}");
        }
        assert_eq!(
            cases.map(|(access, permission)| sandbox(access, permission)),
            ["read-only", "read-only", "workspace-write", "danger-full-access"]
        );
        for (access, permission) in cases {
            assert_eq!(answer("mcpServer/elicitation/request", access, permission).unwrap()["action"], "decline");
            assert_eq!(answer("item/tool/call", access, permission), None);
        }
    }

    #[test]
    fn a_new_thread_names_no_directory_and_one_that_goes_on_does() {
        let new = Opening { directory: "/w".into(), system: "Be exact.".to_owned(), ..Opening::default() };
        let going_on = Opening { resume: Some("t".to_owned()), ..new.clone() };

        let (new, going_on) = (thread(&new), thread(&going_on));

        assert_eq!((&new["method"], new["params"].get("cwd")), (&json!("thread/start"), None));
        assert_eq!(new["params"]["developerInstructions"], "Be exact.");
        assert_eq!(
            (&going_on["method"], &going_on["params"]["cwd"], &going_on["params"]["threadId"]),
            (&json!("thread/resume"), &json!("/w"), &json!("t"))
        );
    }
}
