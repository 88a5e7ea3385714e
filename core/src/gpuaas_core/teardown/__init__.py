"""Teardown of machines: evidence, departure certificates, and orphan records of machines that were not cleaned."""
