"""Layout primitives: the same elements under other indices, each with its public function."""
