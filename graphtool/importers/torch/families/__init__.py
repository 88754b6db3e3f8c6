"""The handlers of the ATen ops, one file a family. Importing a file fills the table."""
