"""The controller loop of an app: claim operations, reconcile them, observe running instances, report."""
