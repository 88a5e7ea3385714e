"""Assembly of the core: lists the rooms' routers, loops and targets. Contains no logic."""
