"""Generates the contracts and reference pages (OpenAPI, AsyncAPI, access matrix, tables for clients), and detects
breaking changes."""
