"""The compiler: named passes from traced programs to loop nests, every step open to view."""
