//! What a run must have come to, read from its recorded events alone: backwards, by what was last, where the state
//! machine goes forwards.

use proctor_domain::SessionId;
use proctor_domain::Timestamp;
use proctor_domain::procedure::{Answer, Evidence, Outcome, RunEvent, Severity, StepId, StepPlan, Verdict};
use proctor_domain::session::{Phase, SessionEnd, SessionReport, Work};

/// One session of a step, from its two events.
#[derive(Debug, Clone)]
pub(crate) struct Sat {
    pub(crate) phase: Phase,
    pub(crate) work: Work,
    evidence: Option<Evidence>,
    /// `None` while it runs, and when its host was lost.
    pub(crate) end: Option<(SessionReport, Option<Verdict>)>,
}

impl Sat {
    /// Whether it counts: it was neither lost, interrupted nor cut off by a limit, and did not end with a question.
    pub(crate) fn counts(&self) -> bool {
        let cut =
            |end: &SessionEnd| matches!(end, SessionEnd::Interrupted | SessionEnd::RateLimited { .. } | SessionEnd::UsageLimit { .. });
        self.end.as_ref().is_some_and(|(report, _)| !cut(&report.end)) && !self.asks()
    }

    /// Whether its agent asks a person. A judge is no agent.
    fn asks(&self) -> bool {
        let question = self.report().and_then(|report| report.agent.as_ref()?.told.question.as_ref());
        matches!(self.work, Work::Agent(_) | Work::Repair) && question.is_some()
    }

    fn report(&self) -> Option<&SessionReport> {
        self.end.as_ref().map(|(report, _)| report)
    }

    fn said(&self) -> Option<bool> {
        self.end.as_ref().and_then(|(_, verdict)| verdict.as_ref()).map(|verdict| verdict.passed)
    }

    fn exit(&self) -> Option<i32> {
        self.report().filter(|report| report.end == SessionEnd::Completed).and_then(SessionReport::exit_code)
    }

    pub(crate) fn responded(&self) -> bool {
        self.report().and_then(|report| report.agent.as_ref()).is_some_and(|agent| agent.responded)
    }
}

/// Whether `session` gave no answer where it went on with a conversation, which its engine may not know any more: then
/// one without it follows, once.
pub(crate) fn is_tried_afresh(earlier: &[Sat], session: &Sat) -> bool {
    let same = |other: &Sat| match session.work {
        Work::Agent(_) => other.work == session.work,
        Work::Repair => matches!(other.work, Work::Repair | Work::Agent(_)),
        Work::Shells | Work::Judge(_) => false,
    };
    let before = earlier.iter().rev().find(|other| same(other));
    session.counts() && !session.responded() && before.is_some_and(|before| before.end.is_none() || before.responded())
}

/// Whether somebody killed the program of `session` after it had answered, for the first time: then it goes on.
pub(crate) fn is_tried_again(earlier: &[Sat], session: &Sat) -> bool {
    let killed = |sat: &Sat| sat.responded() && sat.report().is_some_and(|report| report.killed_by.is_some());
    let may_go_on = matches!(session.work, Work::Agent(_) | Work::Repair);
    may_go_on && killed(session) && !earlier.iter().any(|other| other.work == session.work && killed(other))
}

/// Those of the sessions of a step whose end means something for it.
pub(crate) fn that_count(events: &[RunEvent]) -> Vec<Sat> {
    let all = sessions(events);
    let again = |place: usize| is_tried_afresh(&all[..place], &all[place]) || is_tried_again(&all[..place], &all[place]);
    let counts = |place: usize| all[place].counts() && !again(place);
    (0..all.len()).filter(|place| counts(*place)).map(|place| all[place].clone()).collect()
}

/// The sessions that these events open, in order.
pub(crate) fn sessions(events: &[RunEvent]) -> Vec<Sat> {
    let mut sat: Vec<(SessionId, Sat)> = Vec::new();
    for event in events {
        if let RunEvent::SessionOpened { session, phase, work, evidence, .. } = event {
            sat.push((session.clone(), Sat { phase: *phase, work: *work, evidence: evidence.clone(), end: None }));
        }
        if let RunEvent::SessionEnded { session, report, verdict } = event
            && let Some((_, open)) = sat.iter_mut().find(|(id, _)| id == session)
        {
            open.end = Some(((**report).clone(), verdict.clone()));
        }
    }
    sat.into_iter().map(|(_, session)| session).collect()
}

/// The steps that `event` names as begun, skipped or rejected.
fn begins(event: &RunEvent) -> Option<&StepId> {
    if let RunEvent::StepBegan { step, .. } | RunEvent::StepSkipped { step, .. } | RunEvent::StepRejected { step, .. } = event {
        Some(step)
    } else {
        None
    }
}

/// Whether a run judges again after `event`, given whether it did before.
pub(crate) fn is_judging_again(before: bool, event: &RunEvent) -> bool {
    *event == RunEvent::RejudgeAsked || (before && !matches!(event, RunEvent::Ended { .. }))
}

/// The events of each time that a step was begun: from its beginning to that of the next step, judging again apart.
pub(crate) fn begun(events: &[(Timestamp, RunEvent)]) -> Vec<(StepId, Vec<RunEvent>)> {
    let mut parts: Vec<(StepId, Vec<RunEvent>)> = Vec::new();
    let mut judging_again = false;
    for (_, event) in events {
        if let Some(step) = begins(event) {
            parts.push((step.clone(), Vec::new()));
        }
        judging_again = is_judging_again(judging_again, event);
        if let (false, Some((_, part))) = (judging_again, parts.last_mut()) {
            part.push(event.clone());
        }
    }
    parts
}

/// How a step came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Through,
    Skipped,
    Unjudged,
    Failed,
}

/// How a step came out that was begun, and went through, `events`. What judges said to it later is in `later`.
pub(crate) fn came(plan: &StepPlan, events: &[RunEvent], later: &[Sat]) -> Came {
    if events.iter().any(|event| matches!(event, RunEvent::StepSkipped { .. })) {
        return Came::Skipped;
    }
    let stops = |event: &RunEvent| {
        matches!(
            event,
            RunEvent::StepRejected { .. }
                | RunEvent::CommitRefused { .. }
                | RunEvent::Answered { answer: Answer::Reject, .. }
                | RunEvent::Collected { failure: Some(_), .. }
                | RunEvent::Surveyed { failure: Some(_), .. }
        )
    };
    let stopped = events.iter().any(stops);
    let mut sat = that_count(events);
    // A judge that was asked again after it had given no answer has been heard since. One that gives none when it judges
    // again leaves the work as unjudged as it was.
    let unanswered = |place: usize| match sat[place].work {
        Work::Shells => false,
        Work::Judge(_) => !sat[place].responded() && place + 1 == sat.len(),
        Work::Agent(_) | Work::Repair => !sat[place].responded(),
    };
    let silent = (0..sat.len()).any(unanswered);
    sat.extend(later.iter().filter(|session| session.counts()).cloned());
    let last = |wanted: &dyn Fn(&Sat) -> bool| sat.iter().rev().find(|session| wanted(session));
    let shells = |phase| last(&|session: &Sat| session.work == Work::Shells && session.phase == phase).map(Sat::exit);

    let checked = plan.judged || plan.phases.contains(&Phase::Validate);
    let cut = |end: &SessionEnd| ["timeout", "silent", "crashed", "no-result"].contains(&end.name());
    let unchecked = sat
        .iter()
        .filter(|session| matches!(session.work, Work::Agent(_)))
        .any(|session| session.report().is_some_and(|report| report.output_error.is_some() || (!checked && cut(&report.end))));
    let precheck = shells(Phase::Precheck);
    let failed_shells = |exit: Option<Option<i32>>| exit.is_some_and(|exit| exit != Some(0));
    let check = last(&|session: &Sat| session.phase == Phase::Validate);
    let negative = check.is_some_and(|check| match check.work {
        Work::Judge(_) => check.said() == Some(false),
        Work::Shells => check.exit() != Some(0),
        Work::Agent(_) | Work::Repair => false,
    });
    let unjudged = check.is_some_and(|check| matches!(check.work, Work::Judge(_)) && check.said().is_none());

    if stopped || silent || unchecked {
        Came::Failed
    } else if precheck == Some(Some(75)) {
        Came::Skipped
    } else if failed_shells(precheck) || failed_shells(shells(Phase::Run)) || (negative && plan.severity != Severity::Warn) {
        Came::Failed
    } else if unjudged {
        Came::Unjudged
    } else {
        Came::Through
    }
}

/// How each step of the plan came out that was begun at all.
pub(crate) fn all_came(plans: &[StepPlan], events: &[(Timestamp, RunEvent)]) -> Vec<(StepId, Came)> {
    let parts = begun(events);
    plans
        .iter()
        .filter_map(|plan| {
            let place = parts.iter().rposition(|(step, _)| *step == plan.id)?;
            let (_, part) = &parts[place];
            Some((plan.id.clone(), came(plan, part, &judged_again(part, events))))
        })
        .collect()
}

/// The sessions in which the step with these events was judged again later: those on its own evidence.
fn judged_again(part: &[RunEvent], events: &[(Timestamp, RunEvent)]) -> Vec<Sat> {
    let Some(evidence) = sessions(part).into_iter().rev().find_map(|session| session.evidence) else { return Vec::new() };
    let asked = events.iter().position(|(_, event)| *event == RunEvent::RejudgeAsked).unwrap_or(events.len());
    let later: Vec<RunEvent> = events[asked..].iter().map(|(_, event)| event.clone()).collect();
    sessions(&later).into_iter().filter(|session| session.evidence.as_ref() == Some(&evidence)).collect()
}

/// The outcome of a run whose steps came out like this.
pub(crate) fn outcome(came: &[(StepId, Came)]) -> Outcome {
    let any = |wanted: Came| came.iter().any(|(_, came)| *came == wanted);
    if any(Came::Failed) {
        Outcome::Failed
    } else if any(Came::Unjudged) {
        Outcome::Inconclusive
    } else if any(Came::Through) {
        Outcome::Completed
    } else {
        Outcome::Skipped
    }
}
