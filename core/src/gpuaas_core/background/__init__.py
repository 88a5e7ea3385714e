"""Background loops: level-triggered, they read rows and do not ask what woke them."""
