"""The step engine: brings hosts to a desired state, resumes after a kill at any moment, and records what it did.

    reconcile function of an app
        │  stages of steps (step.py: probe, act, verify, undo)
        ▼
    Runner (runner.py) ──► Journal (journal.py)      intent before an act, result after it
        │                  Reporter (reporter.py)    progress that people read
        ▼
    Host (host.py) ──► host.sh                       fence by claim, host's own journal, act, verify, diagnose
        │
        ▼
    errors.py, evidence.py, outcomes.py, breaker.py  what failed, what it looked like, what to do, when to stop trying

An app configures the engine with a `HostProfile` (profile.py): its name, its services, its failure codes.
"""
