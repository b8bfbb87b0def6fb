"""Conditions as people have them: SQL text, Columns, UDFs; read with Catalyst's own eyes."""
