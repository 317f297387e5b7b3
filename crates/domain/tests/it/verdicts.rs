//! What reports mean, enumerated against a table written by hand.

use proctor_domain::procedure::{CheckResult, Failure, PrecheckResult, Severity, judge_precheck, judge_run, judge_validate};
use proctor_domain::session::{Phase, SessionEnd, SessionReport};

use crate::fixtures::report;

#[test]
fn exit_codes_mean_what_the_phase_says() {
    for code in [0, 1, 75, 130, 255] {
        let fail = |phase| Failure::Exit { phase, shell: 1, code };

        let precheck = match code {
            0 => PrecheckResult::Pass,
            75 => PrecheckResult::Skip,
            _ => PrecheckResult::Fail(fail(Phase::Precheck)),
        };
        assert_eq!(judge_precheck(&report(code)), precheck, "precheck, {code}");
        assert_eq!(judge_run(&report(code)), (code != 0).then(|| fail(Phase::Run)), "run, {code}");
        for (severity, negative) in
            [(Severity::Warn, CheckResult::Warn), (Severity::Review, CheckResult::Fail), (Severity::Abort, CheckResult::Fail)]
        {
            let expected = if code == 0 { (CheckResult::Pass, None) } else { (negative, Some(fail(Phase::Validate))) };
            assert_eq!(judge_validate(&report(code), severity), expected, "validate, {code}, {severity:?}");
        }
    }
}

#[test]
fn a_phase_that_reached_its_limit_fails_and_never_skips() {
    let timed_out = SessionReport { end: SessionEnd::Timeout, ..report(75) };

    assert_eq!(judge_precheck(&timed_out), PrecheckResult::Fail(Failure::Timeout { phase: Phase::Precheck }));
    assert_eq!(judge_run(&timed_out), Some(Failure::Timeout { phase: Phase::Run }));
}

#[test]
fn unusable_outputs_fail_the_run_phase() {
    let broken = SessionReport { output_error: Some("line 3 has no `=`".into()), ..report(0) };

    assert_eq!(judge_run(&broken), Some(Failure::Outputs { reason: "line 3 has no `=`".into() }));
}

#[test]
fn an_end_that_no_shell_can_have_is_never_a_pass() {
    for end in [SessionEnd::NoResult, SessionEnd::Refused, SessionEnd::Silent, SessionEnd::Interrupted] {
        let odd = SessionReport { end, ..report(0) };

        assert!(matches!(judge_run(&odd), Some(Failure::Crashed { .. })));
    }
}
