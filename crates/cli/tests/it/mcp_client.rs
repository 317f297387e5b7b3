//! A client of `proctor mcp` on standard input and output, for tests.

use std::path::Path;

use proctor_testkit::{Background, Output, World, wait_for};
use serde_json::{Value, json};

use crate::procedures::LIMIT;

/// A client with its server.
pub(crate) struct Client {
    server: Background,
    asked: u64,
    /// The tools, as they are listed.
    pub(crate) tools: Value,
}

impl Client {
    /// Starts a server in the repository and shakes hands.
    pub(crate) fn start(world: &World) -> Self {
        Self::start_in(world, world.repository())
    }

    pub(crate) fn start_in(world: &World, folder: impl AsRef<Path>) -> Self {
        let mut client = Self { server: world.start_to_speak_with(folder, &["mcp"]), asked: 0, tools: Value::Null };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } });
        assert_eq!(client.ask("initialize", hello)["result"]["serverInfo"]["name"], "proctor");
        client.server.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client.tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
        client
    }

    /// What the server answers, as a whole.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.server.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        let mut answer = None;
        wait_for("an answer", LIMIT, || {
            answer = self.messages().into_iter().find(|message| message["id"] == id);
            answer.is_some()
        });
        answer.expect("an answer")
    }

    /// Everything that the server has printed so far: each line is a message.
    fn messages(&self) -> Vec<Value> {
        let printed = self.server.stdout_so_far();
        let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("only messages on stdout")).collect()
    }

    /// The result of a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// What a tool says that did what was asked, and its object, which is as the tool's schema says.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        let described = self.tools.as_array().expect("tools").iter().find(|described| described["name"] == tool).expect("the tool");
        if let Err(error) = jsonschema::validate(&described["outputSchema"], &result["structuredContent"]) {
            panic!("{tool}: {error}: {result}");
        }
        (text(&result), result["structuredContent"].clone())
    }

    /// What a tool says that did not.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        text(&result)
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Hangs up, and says how the server ended.
    pub(crate) fn end(mut self) -> Output {
        self.server.hang_up();
        self.server.wait(LIMIT)
    }
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}
