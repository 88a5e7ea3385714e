"""Enrolment of machines as nodes: invitations, the node's first key and host certificate,
and readmission with a new identity."""
