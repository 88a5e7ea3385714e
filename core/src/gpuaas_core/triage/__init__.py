"""Triage: a timeline of everything recorded under one correlation id, with a verdict and what to do."""
