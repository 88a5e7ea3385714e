"""What may be deployed where: overlays that only restrict, one evaluator, and the modes an instance runs in."""
