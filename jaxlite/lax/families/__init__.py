"""The kinds of primitive.  A family supplies the rules that follow from being of that kind; members write the maths."""
