"""Triage: one correlation id leads to everything that is known of it, in order, with a verdict and a way out."""
