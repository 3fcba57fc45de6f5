"""Its presence puts this folder on the path, so that the tests can import the kit here."""
