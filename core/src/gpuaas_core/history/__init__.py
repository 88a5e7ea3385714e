"""Reading the ledger: event lists and streams with resume, and the audit trail."""
