"""Looks whether the store still keeps its promises, without changing anything: doctor, audit verify."""
