"""Operations: the engine that queues, assigns, fences and ends work on any target, and receives the reports of
controllers.

A target is anything with a lifecycle, in a scope, worked on by an app and paid for by a payer. The target's room
implements `targets.Target`, and `api/` registers the target. The engine does not depend on the kind of target.
"""
