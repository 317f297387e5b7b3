//! Runs of procedures: start, drive, stop, resume, remove.

mod at_rest;
mod commit;
mod driver;
mod error;
mod folder;
mod gc;
mod inputs;
mod lookup;
mod notice;
mod paths;
mod pin;
mod record;
mod restore;
mod resume;
mod since;
mod start;
mod step;
mod stop;

pub use driver::{RunEnd, Standing, Stop};
pub use error::{ProcedureError, Refusal};
pub use gc::{GcReport, collect_garbage, plan_garbage};
pub use lookup::{LoadedRun, find_run, is_alive, load_run, newest_run};
pub use notice::Notice;
pub use pin::{Keep, keep_run};
pub use resume::{Attitude, NewDefinition, ResumeRequest, Resumption, resume_run};
pub use start::{Dirty, Plan, PlannedStep, StartRequest, WhenBusy, plan_run, start_run};
pub use stop::{StopEnd, stop_run};
