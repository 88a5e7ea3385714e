"""Operations: the engine that queues, assigns, fences and ends work on any target, and receives its reports.

A target is anything with a lifecycle, in a scope, worked on by an app and paid for by a payer. Its room implements
`targets.Target`, and `api/` registers it; the engine does not depend on what it is.
"""
