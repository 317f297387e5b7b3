//! The hidden command `proctor tools SOCKET`: a server of the Model Context Protocol on standard input and output.
//!
//! It has an asynchronous runtime because the protocol's own library wants one: of one thread, in this process alone.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::Value;

use super::bridge::{Bridge, BridgeError};
use super::message::OfferedTool;
use super::server::ToolServer;
use crate::words::in_words;

/// Serves the tools of a session to the client that started this process, until that goes. `arguments` come after the command.
pub fn run_session_tools(arguments: &[OsString]) -> ExitCode {
    let [socket] = arguments else { return complain("it is for proctor itself: it takes the socket of a session") };
    match open(Path::new(socket)) {
        Ok(server) => serve(server),
        Err(error) => complain(&in_words(&error)),
    }
}

fn open(socket: &Path) -> Result<SessionTools, BridgeError> {
    let mut bridge = Bridge::connect(socket)?;
    let offered = bridge.offer()?;
    Ok(SessionTools { offered, bridge: Mutex::new(bridge) })
}

/// An agent's client shows this, or keeps it in a log.
fn complain(reason: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "proctor tools: failed to {reason}");
    ExitCode::FAILURE
}

fn serve(server: SessionTools) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("begin: {error}")),
    };
    let served = runtime.block_on(async {
        let serving = server.serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
        serving.waiting().await.map_err(|error| error.to_string())
    });
    // A read of standard input can't be called off; this process is over all the same.
    runtime.shutdown_background();
    match served {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("speak with the agent's client: {error}")),
    }
}

/// What is offered in this session, and the way to its host.
struct SessionTools {
    offered: Vec<OfferedTool>,
    bridge: Mutex<Bridge>,
}

impl ServerHandler for SessionTools {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        let mut info = rmcp::model::ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info.server_info = Implementation::new(ToolServer::NAME, env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: self.offered.iter().map(described).collect(), ..ListToolsResult::default() })
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let input = request.arguments.map_or(Value::Null, Value::Object);
        // The host answers at once, and nothing else goes on here.
        let called = self.bridge.lock().unwrap_or_else(PoisonError::into_inner).call(&request.name, input);
        let (failed, text) = match called {
            Ok(answer) => (answer.failed, answer.text),
            Err(error) => (true, format!("failed to {}", in_words(&error))),
        };
        let content = vec![ContentBlock::text(text)];
        Ok(if failed { CallToolResult::error(content) } else { CallToolResult::success(content) }.into())
    }
}

/// A tool in the protocol's words. There are clients that ask a person about whatever may change something outside.
fn described(tool: &OfferedTool) -> Tool {
    let input = tool.input.as_object().cloned().unwrap_or_default();
    let harmless = ToolAnnotations::from_raw(None, Some(false), Some(false), Some(false), Some(false));
    Tool::new(tool.name.clone(), tool.description.clone(), Arc::new(input)).with_annotations(harmless)
}
