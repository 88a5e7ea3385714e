"""Triage: a timeline of everything recorded with one correlation id, and a verdict on what failed and what to do."""
