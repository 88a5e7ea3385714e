"""What may be deployed where: overlays that only narrow, one evaluator, and the modes an instance runs in."""
