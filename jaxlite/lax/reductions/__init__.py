"""Reductions: arrays folded along axes, each with its public function."""
