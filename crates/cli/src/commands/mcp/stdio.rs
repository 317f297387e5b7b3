//! The protocol on standard input and output, where nothing else is printed.

use proctor_domain::ExitCode;
use rmcp::ServiceExt;

use super::caller::Seat;
use super::server::Server;
use crate::report::{Kind, Report};

/// Serves the client that started this process, until that goes.
pub(super) fn serve(seat: Seat) -> Result<ExitCode, Report> {
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let serving = Server(seat).serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
        serving.waiting().await.map_err(|error| error.to_string())
    });
    // A read of standard input can't be called off; this process is over all the same.
    runtime.shutdown_background();
    match served {
        Ok(_) => Ok(ExitCode::Done),
        Err(error) => Err(Report::new(Kind::Environment, format!("failed to speak with the client: {error}"))),
    }
}

/// One thread, and others only while a tool works.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Report> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = builder.enable_all().max_blocking_threads(4).thread_keep_alive(std::time::Duration::from_secs(2));
    builder.build().map_err(|error| Report::new(Kind::Environment, "failed to begin").because(&error))
}
