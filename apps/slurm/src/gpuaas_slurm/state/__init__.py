"""What the app itself remembers between two breaths."""
