"""Policies for deployments: overlays that only restrict, one evaluator, and the modes in which an instance runs."""
