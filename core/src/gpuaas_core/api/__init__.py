"""Assembly: lists the rooms, holds no logic."""
