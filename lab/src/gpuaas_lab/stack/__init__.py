"""The whole platform on one machine: core and controllers under a small supervisor, the lab, a demo tenant.

`make up` and the journeys in `tests/` use it. It uses the product only as users do: processes, CLI and SDK.
"""
