"""Enrolment of machines as nodes: invitations, the first key and host certificate, and a new identity later."""
