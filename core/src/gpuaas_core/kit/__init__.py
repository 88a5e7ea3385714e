"""Boring helpers without product words: ids, clock, transactions, paging, lifecycles, wake-ups."""
