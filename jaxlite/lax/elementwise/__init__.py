"""Elementwise primitives, by kind, each with its public function."""
