"""What the transformations do to one primitive at a time: eval, stage, jvp, batch, linearize, transpose."""
