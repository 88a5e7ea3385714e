"""The HTTP edge between clients and rooms: verifies callers, opens one transaction per request, replays repeated
requests and formats answers."""
