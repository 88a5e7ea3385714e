"""Machines: how they enrol, what they are trusted with, and which project holds which one."""
