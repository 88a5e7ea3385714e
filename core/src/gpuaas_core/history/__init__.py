"""Reads of the ledger: event lists, resumable streams, and the audit trail."""
