// Nothing to include: the software device knows Metal's library from a file's first line.
