"""Reconcile functions, one per kind of operation. Each reads the whole state, runs the missing steps, and never
sleeps."""
