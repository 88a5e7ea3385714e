"""Typed ids that many rooms use in their rows. Path parameters are plain `str`; only rows have typed ids."""

from typing import NewType

TenantId = NewType("TenantId", str)
ProjectId = NewType("ProjectId", str)
PrincipalId = NewType("PrincipalId", str)
