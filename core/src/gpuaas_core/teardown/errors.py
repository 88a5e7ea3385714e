"""Errors of teardown evidence."""

from ..kit.problems import Problem


class EvidenceNotClean(Problem):
    status, code, title = 422, "teardown_not_clean", "The teardown evidence contains failed checks"
    way_out = (
        "Remove what the failed checks found, check again and complete the operation; or fail the operation with an "
        "error."
    )


class EvidenceMissing(Problem):
    status, code, title = 422, "teardown_evidence_missing", "Teardown evidence is missing"
    way_out = "Send `evidence` with an entry for each allocation the instance was placed on, each with its `checks`."


class EvidenceUnverifiable(Problem):
    status, code, title = 422, "teardown_evidence_unverifiable", "Teardown evidence cannot be verified"
    way_out = (
        "Report `checks` for each allocation: one row per check, with `check` (its name), `ok` (true or"
        " false) and `detail`. You still hold the claim; report again."
    )
