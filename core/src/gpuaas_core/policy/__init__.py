"""Policies for deployments: rules that only restrict, the evaluator of these rules, and the modes in which an instance
runs."""
