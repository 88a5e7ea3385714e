"""Operations: the engine that queues, hands out, fences, reports and ends work on any target.

A target is anything with a lifecycle, in a scope, worked on by an app, paid for by a payer. What it is, only its own
room knows: it implements `targets.Target`, and `api/` registers it.
"""
