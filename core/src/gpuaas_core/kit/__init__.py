"""Generic helpers without product terms: ids, clock, transactions, paging, lifecycles, wake-ups."""
